import CMicroHTTPD
import Glibc
import Threads

/// A queue with one consumer thread and many producers, for messages and newly opened streams, in one order.
///
/// It has no bound of its own. An accepted message cannot be dropped without breaking the order that programs rely on,
/// and a producer that waited for a shard could wait for itself. The producers bound it: openings by the limit on
/// streams, answers of workers by their queue, events by the rate of committed transactions. Its depth is a metric, so
/// that overload is visible.
final class StreamInbox<Message: Sendable>: Sendable {
    enum Item {
        case message(Message)
        case opening(descriptor: Int32, context: any Sendable)
    }

    /// Wakes the consumer from `epoll_wait`. It is registered edge-triggered, so it is never read. It stays open as
    /// long as the inbox, so that a late producer cannot write into a reused descriptor.
    let wakeDescriptor: Int32

    private struct State {
        var items: [Item] = []
        /// True from the consumer's decision to sleep until it is woken. There is one write to the descriptor per
        /// sleep.
        var isConsumerAsleep = false
        var stopDeadline: UInt64?
        /// The counters as last published by the consumer.
        var counters = StreamCounters()
    }

    /// No function is called while it is locked.
    private let state = Locked(State())

    /// Storage beyond this number of items is freed after a burst; otherwise it would stay forever.
    private static var storedCapacityMax: Int { 4_096 }

    init() throws(ServerError) {
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        if wakeDescriptor < 0 { throw ServerError("eventfd", errno) }
    }

    deinit { Glibc.close(wakeDescriptor) }

    /// Adds an item. Returns false if the consumer must stop; then the caller keeps the item.
    func put(_ item: Item) -> Bool {
        var isWakeDue = false
        let isTaken = state.withLock { state in
            guard state.stopDeadline == nil else { return false }
            state.items.append(item)
            isWakeDue = state.isConsumerAsleep
            state.isConsumerAsleep = false
            return true
        }
        if isWakeDue { wake() }
        return isTaken
    }

    func put(messages: some Sequence<Message>) {
        let isWakeDue = state.withLock { state in
            guard state.stopDeadline == nil else { return false }
            for message in messages { state.items.append(.message(message)) }
            guard state.isConsumerAsleep, !state.items.isEmpty else { return false }
            state.isConsumerAsleep = false
            return true
        }
        if isWakeDue { wake() }
    }

    /// Makes the consumer stop after everything queued so far. Later items are refused.
    func requestStop(deadline: UInt64) {
        state.withLock { state in
            if state.stopDeadline == nil { state.stopDeadline = deadline }
            state.isConsumerAsleep = false
        }
        wake()
    }

    /// Prepares the consumer to wait, and publishes its counters. This happens once per round, under a lock that is
    /// taken anyway, so that counting costs the sending loop nothing. Returns false if there is something to take
    /// instead.
    func prepareToSleep(publishing counters: StreamCounters) -> Bool {
        state.withLock { state in
            state.counters = counters
            state.isConsumerAsleep = state.items.isEmpty && state.stopDeadline == nil
            return state.isConsumerAsleep
        }
    }

    /// Exchanges `batch`, which must be empty, for all waiting items. Returns the deadline if the consumer must stop.
    func take(into batch: inout [Item]) -> UInt64? {
        state.withLock { state in
            state.isConsumerAsleep = false
            swap(&state.items, &batch)
            return state.stopDeadline
        }
    }

    /// Returns the remaining items after a stop was requested. No more follow.
    func takeAll() -> [Item] {
        var rest: [Item] = []
        _ = take(into: &rest)
        return rest
    }

    /// The consumer's counters of its last round, with the current depth.
    var counters: StreamCounters {
        state.withLock { state in
            var counters = state.counters
            counters.inboxDepth = state.items.count
            return counters
        }
    }

    /// Publishes the consumer's final counters.
    func publish(_ counters: StreamCounters) { state.withLock { $0.counters = counters } }

    /// Empties a handled batch for reuse.
    func reuse(_ batch: inout [Item]) {
        batch.removeAll(keepingCapacity: batch.capacity <= Self.storedCapacityMax)
    }

    private func wake() {
        var one: UInt64 = 1
        // It can fail only if the counter is full, and then the descriptor is readable anyway.
        _ = write(wakeDescriptor, &one, MemoryLayout<UInt64>.size)
    }
}
