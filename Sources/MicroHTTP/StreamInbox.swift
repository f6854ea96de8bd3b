import CMicroHTTPD
import Glibc
import Threads

/// What one thread takes and all others put in: messages and newly opened streams, in one order.
///
/// It has no bound of its own: a message that was accepted cannot be dropped without breaking the order that programs
/// rely on, and a poster that waited for a shard could wait for itself. What bounds it are its posters: openings by the
/// limit on streams, answers of workers by their queue, events by the rate of committed transactions. Its depth is a
/// counter, so that overload is seen.
final class StreamInbox<Message: Sendable>: Sendable {
    enum Item {
        case message(Message)
        case opening(descriptor: Int32, context: any Sendable)
    }

    /// Wakes the taker out of `epoll_wait`. Registered edge-triggered, so it is never read. It stays open as long as the
    /// inbox, so that a late poster cannot write into somebody else's descriptor.
    let wakeDescriptor: Int32

    private struct State {
        var items: [Item] = []
        /// True from the taker's decision to sleep until somebody wakes it: one write to the descriptor per sleep.
        var isTakerAsleep = false
        var stopDeadline: UInt64?
        /// What the taker last published.
        var counters = StreamCounters()
    }

    /// Nothing is called while it is locked.
    private let state = Locked(State())

    /// Storage above this many items is given back after a burst, because it would stay for ever.
    private static var storedCapacityMax: Int { 4_096 }

    init() throws(ServerError) {
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        if wakeDescriptor < 0 { throw ServerError("eventfd", errno) }
    }

    deinit { Glibc.close(wakeDescriptor) }

    /// False if the taker is to stop; the item is the caller's then.
    func put(_ item: Item) -> Bool {
        var isWakeDue = false
        let isTaken = state.withLock { state in
            guard state.stopDeadline == nil else { return false }
            state.items.append(item)
            isWakeDue = state.isTakerAsleep
            state.isTakerAsleep = false
            return true
        }
        if isWakeDue { wake() }
        return isTaken
    }

    func put(messages: some Sequence<Message>) {
        let isWakeDue = state.withLock { state in
            guard state.stopDeadline == nil else { return false }
            for message in messages { state.items.append(.message(message)) }
            guard state.isTakerAsleep, !state.items.isEmpty else { return false }
            state.isTakerAsleep = false
            return true
        }
        if isWakeDue { wake() }
    }

    /// After everything put so far the taker stops; what is put from here on is refused.
    func requestStop(deadline: UInt64) {
        state.withLock { state in
            if state.stopDeadline == nil { state.stopDeadline = deadline }
            state.isTakerAsleep = false
        }
        wake()
    }

    /// The taker is about to wait, and publishes what it has counted: once per round, with the lock that it takes anyway,
    /// so that counting costs the sending loop nothing. False if there is something to take instead.
    func prepareToSleep(publishing counters: StreamCounters) -> Bool {
        state.withLock { state in
            state.counters = counters
            state.isTakerAsleep = state.items.isEmpty && state.stopDeadline == nil
            return state.isTakerAsleep
        }
    }

    /// Exchanges `batch`, which must be empty, for everything that waits. Answers when to stop, if it is to stop.
    func take(into batch: inout [Item]) -> UInt64? {
        state.withLock { state in
            state.isTakerAsleep = false
            swap(&state.items, &batch)
            return state.stopDeadline
        }
    }

    /// What is left, once stopping was requested: nothing comes after it.
    func takeAll() -> [Item] {
        var rest: [Item] = []
        _ = take(into: &rest)
        return rest
    }

    /// What the taker has counted, as of its last round, and how much waits now.
    var counters: StreamCounters {
        state.withLock { state in
            var counters = state.counters
            counters.inboxDepth = state.items.count
            return counters
        }
    }

    /// Publishes what the taker has counted to its end.
    func publish(_ counters: StreamCounters) { state.withLock { $0.counters = counters } }

    /// Empties a batch that was handled, to be filled again.
    func reuse(_ batch: inout [Item]) {
        batch.removeAll(keepingCapacity: batch.capacity <= Self.storedCapacityMax)
    }

    private func wake() {
        var one: UInt64 = 1
        // It can only fail when the counter is full, and then the descriptor is readable anyway.
        _ = write(wakeDescriptor, &one, MemoryLayout<UInt64>.size)
    }
}
