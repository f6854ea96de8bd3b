import CMicroHTTPD
import Foundation
import Glibc

/// What one thread takes and all others put in: messages and newly opened streams, in one order.
///
/// It has no bound of its own: a message that was accepted cannot be dropped without breaking the order that programs
/// rely on, and a poster that waited for a shard could wait for itself. What bounds it are its posters: openings by the
/// limit on streams, answers of workers by their queue, events by the rate of committed transactions. Its depth is a
/// counter, so that overload is seen.
///
/// `@unchecked Sendable`: the variables are only touched while `lock` is held.
final class StreamInbox<Message: Sendable>: @unchecked Sendable {
    enum Item {
        case message(Message)
        case opening(descriptor: Int32, context: any Sendable)
    }

    /// Wakes the taker out of `epoll_wait`. Registered edge-triggered, so it is never read. It stays open as long as the
    /// inbox, so that a late poster cannot write into somebody else's descriptor.
    let wakeDescriptor: Int32

    /// Guards everything below. Nothing is called while it is held.
    private let lock = NSLock()
    private var items: [Item] = []
    /// True from the taker's decision to sleep until somebody wakes it: one write to the descriptor per sleep.
    private var isTakerAsleep = false
    private var stopDeadline: UInt64?

    /// Storage above this many items is given back after a burst, because it would stay for ever.
    private static var keptCapacityMax: Int { 4_096 }

    init() throws(StreamShardError) {
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        if wakeDescriptor < 0 { throw StreamShardError("eventfd", errno) }
    }

    deinit { Glibc.close(wakeDescriptor) }

    /// False if the taker is to stop; the item is the caller's then.
    func put(_ item: Item) -> Bool {
        lock.lock()
        guard stopDeadline == nil else {
            lock.unlock()
            return false
        }
        items.append(item)
        let isWakeDue = isTakerAsleep
        isTakerAsleep = false
        lock.unlock()
        if isWakeDue { wake() }
        return true
    }

    func put(messages: some Sequence<Message>) {
        lock.lock()
        guard stopDeadline == nil else { return lock.unlock() }
        for message in messages { items.append(.message(message)) }
        let isWakeDue = isTakerAsleep && !items.isEmpty
        if isWakeDue { isTakerAsleep = false }
        lock.unlock()
        if isWakeDue { wake() }
    }

    /// After everything put so far the taker stops; what is put from here on is refused.
    func requestStop(deadline: UInt64) {
        lock.lock()
        if stopDeadline == nil { stopDeadline = deadline }
        isTakerAsleep = false
        lock.unlock()
        wake()
    }

    /// The taker is about to wait. False if there is something to take instead.
    func prepareToSleep() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        isTakerAsleep = items.isEmpty && stopDeadline == nil
        return isTakerAsleep
    }

    /// Exchanges `batch`, which must be empty, for everything that waits. Answers when to stop, if it is to stop.
    func take(into batch: inout [Item]) -> UInt64? {
        lock.lock()
        defer { lock.unlock() }
        isTakerAsleep = false
        swap(&items, &batch)
        return stopDeadline
    }

    /// What is left, once stopping was requested: nothing comes after it.
    func takeAll() -> [Item] {
        var rest: [Item] = []
        _ = take(into: &rest)
        return rest
    }

    var depth: Int { lock.withLock { items.count } }

    /// Empties a batch that was handled, to be filled again.
    func reuse(_ batch: inout [Item]) {
        batch.removeAll(keepingCapacity: batch.capacity <= Self.keptCapacityMax)
    }

    private func wake() {
        var one: UInt64 = 1
        // It can only fail when the counter is full, and then the descriptor is readable anyway.
        _ = write(wakeDescriptor, &one, MemoryLayout<UInt64>.size)
    }
}
