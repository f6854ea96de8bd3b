/// A trailing-edge throttle of invalidations by stream and query key, with fixed windows. The first invalidation opens
/// a window. At its end the stream receives the key once, however many invalidations arrived meanwhile.
///
/// Later invalidations do not extend the window, so a steady flow is delivered once per window. The key is delivered
/// after the last change of a burst, so no change is missed. It is a pure state machine with one owner: time is a
/// parameter, in milliseconds of any monotonic clock.
public struct Coalescer: Sendable {
    /// The keys to send to one stream now.
    public struct Batch: Sendable, Hashable {
        public let stream: Int32
        /// In the order in which they were first offered.
        public internal(set) var keys: [[String]] = []
        /// Unique causes; see ``isComplete``.
        public internal(set) var causes: [InvalidationCause] = []
        /// False if a cause was withheld or left out. Then the client must not treat the batch as the echo of its own
        /// write.
        public internal(set) var isComplete = true
        /// Whether more keys arrived than may wait for a stream, and were discarded. Then everything is stale.
        public internal(set) var isOverflow = false
    }

    /// The grid on which windows end, so that the keys of one burst are sent in one event. It is part of the 50 ms that
    /// delivery may take in addition to the window.
    static let gridMilliseconds: Int64 = 10

    /// A cause, shared by all streams that receive it.
    private final class Shared: Sendable {
        let cause: InvalidationCause

        init(_ cause: InvalidationCause) {
            self.cause = cause
        }
    }

    private struct Pending {
        var due: Int64
        var causes: [Shared] = []
        var isComplete = true

        mutating func add(_ cause: Shared?) {
            if let cause, causes.count < TableLimits.causesPerKeyMax {
                causes.append(cause)
            } else {
                isComplete = false
            }
        }
    }

    private struct Stream {
        var pending: [Int32: Pending] = [:]
        /// The due time of the message that everything is stale, if the stream overflowed.
        var overflowDue: Int64?
    }

    /// A batch under construction, and the causes that it already contains.
    private struct Draft {
        var batch: Batch
        var causes: Set<InvalidationCause> = []

        mutating func add(_ cause: InvalidationCause) {
            guard !causes.contains(cause) else { return }
            guard causes.count < TableLimits.causesPerBatchMax else {
                batch.isComplete = false
                return
            }
            causes.insert(cause)
            batch.causes.append(cause)
        }
    }

    private struct Address {
        let stream: Int32
        let key: Int32
    }

    private struct Key {
        var key: [String]
        /// The number of streams for which it waits.
        var uses: Int
    }

    /// Stands for the overflow of a stream instead of a key.
    private static let overflowKey: Int32 = -1

    /// Indexed by slot, because slots are dense.
    private var streams: [Stream] = []
    private var keys: [Key] = []
    private var freeKeys: [Int32] = []
    private var keyNumbers: [QueryKey: Int32] = [:]
    /// The deliveries due at each time. An address whose time has changed stays here and is skipped.
    private var buckets: [Int64: [Address]] = [:]
    /// The times of `buckets`, in descending order.
    private var times: [Int64] = []

    public init() {}

    /// The next due time; nil if nothing is due.
    public var nextDue: Int64? { times.last }

    /// The number of waiting keys, counted once per stream.
    public var pendingCount: Int { streams.reduce(0) { $0 + $1.pending.count } }

    /// The number of query keys that wait for at least one stream. No others are stored.
    public var keyCount: Int { keyNumbers.count }

    // MARK: Input

    /// Adds a stale key for the streams that may receive it.
    ///
    /// - Parameters:
    ///   - cause: Nil for streams that may not see the row.
    ///   - window: The length of the window. If the key already waits, the earlier end counts.
    public mutating func offer(
        _ key: [String], cause: InvalidationCause?, to slots: some Sequence<Int32>, window: Duration, at now: Int64
    ) {
        let due = Self.end(of: window, from: now)
        let number = retain(key)
        let shared = cause.map(Shared.init)
        for slot in slots { add(number, shared, to: slot, due: due) }
        release(number)
    }

    private mutating func add(_ number: Int32, _ cause: Shared?, to slot: Int32, due: Int64) {
        let index = Int(slot)
        while streams.count <= index { streams.append(Stream()) }
        if let overflowDue = streams[index].overflowDue {
            if due < overflowDue { overflow(slot, at: due) }
            return
        }
        if let place = streams[index].pending.index(forKey: number) {
            streams[index].pending.values[place].add(cause)
            guard due < streams[index].pending.values[place].due else { return }
            streams[index].pending.values[place].due = due
            schedule(Address(stream: slot, key: number), at: due)
            return
        }
        guard streams[index].pending.count < TableLimits.pendingKeysPerStreamMax else {
            let earliest = streams[index].pending.values.reduce(due) { min($0, $1.due) }
            remove(slot)
            overflow(slot, at: earliest)
            return
        }
        var pending = Pending(due: due)
        pending.add(cause)
        streams[index].pending[number] = pending
        keys[Int(number)].uses += 1
        schedule(Address(stream: slot, key: number), at: due)
    }

    private mutating func overflow(_ slot: Int32, at due: Int64) {
        streams[Int(slot)].overflowDue = due
        schedule(Address(stream: slot, key: Self.overflowKey), at: due)
    }

    /// Discards the waiting keys of a closed stream.
    public mutating func remove(_ slot: Int32) {
        guard slot >= 0, Int(slot) < streams.count else { return }
        let pending = streams[Int(slot)].pending
        streams[Int(slot)] = Stream()
        for number in pending.keys { release(number) }
    }

    // MARK: Output

    /// Returns the keys due until now, as one batch per stream, ordered by stream number.
    public mutating func takeDue(at now: Int64) -> [Batch] {
        var drafts: [Int32: Draft] = [:]
        while let time = times.last, time <= now {
            times.removeLast()
            for address in buckets.removeValue(forKey: time) ?? [] { take(address, due: time, into: &drafts) }
        }
        return drafts.values.map(\.batch).sorted { $0.stream < $1.stream }
    }

    private mutating func take(_ address: Address, due: Int64, into drafts: inout [Int32: Draft]) {
        let index = Int(address.stream)
        if address.key == Self.overflowKey {
            guard streams[index].overflowDue == due else { return }
            streams[index].overflowDue = nil
            drafts[address.stream, default: Draft(batch: Batch(stream: address.stream))].batch.isOverflow = true
            drafts[address.stream]?.batch.isComplete = false
            return
        }
        guard let pending = streams[index].pending[address.key], pending.due == due else { return }
        streams[index].pending[address.key] = nil
        var draft = drafts.removeValue(forKey: address.stream) ?? Draft(batch: Batch(stream: address.stream))
        draft.batch.keys.append(keys[Int(address.key)].key)
        draft.batch.isComplete = draft.batch.isComplete && pending.isComplete
        for shared in pending.causes { draft.add(shared.cause) }
        drafts[address.stream] = draft
        release(address.key)
    }

    // MARK: Time

    private static func end(of window: Duration, from now: Int64) -> Int64 {
        let length = window.components.seconds * 1_000 + window.components.attoseconds / 1_000_000_000_000_000
        return (now + length + gridMilliseconds - 1) / gridMilliseconds * gridMilliseconds
    }

    private mutating func schedule(_ address: Address, at due: Int64) {
        if buckets[due] == nil {
            // Later times are at the front, and most new times are the latest.
            let place = times.firstIndex { $0 < due } ?? times.endIndex
            times.insert(due, at: place)
        }
        buckets[due, default: []].append(address)
    }

    // MARK: Keys

    private mutating func retain(_ key: [String]) -> Int32 {
        let name = QueryKey(key)
        if let number = keyNumbers[name] {
            keys[Int(number)].uses += 1
            return number
        }
        let number = freeKeys.popLast() ?? Int32(keys.count)
        if Int(number) == keys.count {
            keys.append(Key(key: key, uses: 1))
        } else {
            keys[Int(number)] = Key(key: key, uses: 1)
        }
        keyNumbers[name] = number
        return number
    }

    private mutating func release(_ number: Int32) {
        keys[Int(number)].uses -= 1
        guard keys[Int(number)].uses == 0 else { return }
        keyNumbers[QueryKey(keys[Int(number)].key)] = nil
        keys[Int(number)].key = []
        freeKeys.append(number)
    }
}
