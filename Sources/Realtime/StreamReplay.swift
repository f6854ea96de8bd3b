/// The replay of one stream: it brings the stream from its cursor to the present, and delivers each event exactly once.
///
/// A pure state machine: the shard that owns the stream passes in what happens and carries out the returned actions.
///
/// ```
///  opening ── opened(position, chunks) ──▶ replaying ── all chunks out, nothing missed ──▶ live ──▶ closed
///                                              ▲   │
///                                              └───┘ loaded(…): the log is read again for what did not fit the queue
/// ```
/// The stream joins the hub first, while the shard's last event is H; from then on every live event reaches
/// ``receive(_:)``. A worker reads the log up to H. So each event is either ≤ H and in the replay, or > H and received:
/// never both, never neither. What is received meanwhile waits in a bounded queue. If the queue overflows it is
/// discarded and the log, which stores the same events, is read once more up to the newest of them; the client does not
/// notice. Only a client that stays behind through ``roundsMax`` rounds receives `stream:resync`.
public struct StreamReplay<Payload: Sendable>: Sendable {
    public enum Phase: Sendable, Hashable {
        case opening, replaying, live, closed
    }

    /// A live event, encoded.
    public struct Item: Sendable {
        public let sequence: Int64
        public let collapse: UInt64
        public let byteCount: Int
        public let payload: Payload

        public init(sequence: Int64, collapse: UInt64, byteCount: Int, payload: Payload) {
            self.sequence = sequence
            self.collapse = collapse
            self.byteCount = byteCount
            self.payload = payload
        }
    }

    public enum Action {
        case send(Payload, collapse: UInt64)
        /// Read the log for what the stream may see with `after < sequence ≤ through`, and answer with ``loaded``.
        case load(after: Int64, through: Int64)
        /// Send `stream:resync`, after which the client fetches everything again; `position` is the cursor to send with
        /// it.
        case resync(ResyncReason, position: Int64)
    }

    /// Bytes of live events that may wait for a replay to end. Without a bound a client that reads its replay slowly
    /// would store every later event in memory; above it the log is read instead.
    static var queueBytesMax: Int { 16 * 1024 }
    /// Rounds of reading the log before the client has to resync. Without it a client that always reads more slowly
    /// than events arrive would be served from disk for ever.
    public static var roundsMax: Int { 4 }

    public private(set) var phase: Phase = .opening
    /// Live events up to here are not sent: a replay contains them, or the client's cursor says that it has them.
    private var floor: Int64
    /// Live events in the order they came, all > `floor`, while the stream is not live.
    private var queue: [Item] = []
    private var queueBytes = 0
    /// Not nil: the queue overflowed, and the log must be read again up to here.
    private var missedThrough: Int64?
    /// What the worker has read and the stream has not sent yet.
    private var chunks: [Payload] = []
    private var rounds: UInt8 = 1
    private var isReading = true

    /// - Parameter head: the sequence of the last event that the shard has handled.
    public init(head: Int64) {
        floor = head
    }

    /// The worker has read the log up to the head. The chunks begin with `stream:ready`; each is sent when the one
    /// before it has left the process.
    ///
    /// - Parameter position: where the client stands once it has all chunks. Usually the head; more if the client's
    ///   cursor is ahead of this shard (it comes from one that was faster): the client already has the events that
    ///   this shard is about to receive.
    public mutating func opened(position: Int64, chunks: [Payload]) -> [Action] {
        guard phase == .opening else { return [] }
        phase = .replaying
        isReading = false
        if position > floor {
            floor = position
            queue.removeAll { $0.sequence <= position }
            queueBytes = queue.reduce(0) { $0 + $1.byteCount }
            if let missed = missedThrough, missed <= position { missedThrough = nil }
        }
        self.chunks = chunks
        return advance()
    }

    /// The worker has read again what did not fit the queue. Nil: it is more than may be replayed, or the log could not
    /// be read.
    public mutating func loaded(_ chunks: [Payload]?) -> [Action] {
        guard phase == .replaying, isReading else { return [] }
        isReading = false
        guard let chunks else { return giveUp() }
        self.chunks = chunks
        return advance()
    }

    /// Everything sent so far has left the process.
    public mutating func drained() -> [Action] {
        guard phase == .replaying, !isReading else { return [] }
        return advance()
    }

    /// A live event that this stream gets. True: send it now. False: it waits here, or the client has it.
    ///
    /// `item` is made only if it must wait: on a live stream this is one comparison.
    public mutating func receive(sequence: Int64, _ item: () -> Item) -> Bool {
        guard sequence > floor else { return false }
        switch phase {
        case .live: return true
        case .closed: return false
        case .opening, .replaying:
            enqueue(item())
            return false
        }
    }

    /// What waited for a slow client in the socket's buffer was discarded, and the client was sent a resync at
    /// `position`, the newest event that the shard has handled. Whatever waits here belongs to what was discarded.
    public mutating func overflowed(at position: Int64) {
        guard phase == .replaying || phase == .live else { return }
        floor = max(floor, position)
        clear()
        phase = .live
    }

    public mutating func close() {
        phase = .closed
        clear()
    }

    // MARK: Steps

    private mutating func advance() -> [Action] {
        guard !chunks.isEmpty else { return finish() }
        let chunk = chunks.removeFirst()
        // The last chunk need not be out before the queue follows: both together fit the socket's buffer.
        return [.send(chunk, collapse: 0)] + (chunks.isEmpty ? finish() : [])
    }

    private mutating func finish() -> [Action] {
        guard let missed = missedThrough else { return goLive() }
        guard rounds < StreamReplay.roundsMax else { return giveUp() }
        rounds += 1
        isReading = true
        missedThrough = nil
        let after = floor
        floor = missed
        return [.load(after: after, through: missed)]
    }

    private mutating func giveUp() -> [Action] {
        floor = missedThrough ?? floor
        missedThrough = nil
        return [.resync(.overflow, position: floor)] + goLive()
    }

    private mutating func goLive() -> [Action] {
        let actions = queue.map { Action.send($0.payload, collapse: $0.collapse) }
        clear()
        phase = .live
        return actions
    }

    private mutating func enqueue(_ item: Item) {
        guard missedThrough == nil else {
            missedThrough = item.sequence
            return
        }
        if item.collapse != 0, let older = queue.firstIndex(where: { $0.collapse == item.collapse }) {
            queueBytes -= queue[older].byteCount
            queue.remove(at: older)
        }
        queue.append(item)
        queueBytes += item.byteCount
        guard queueBytes > StreamReplay.queueBytesMax else { return }
        queue = []
        queueBytes = 0
        missedThrough = item.sequence
    }

    private mutating func clear() {
        queue = []
        queueBytes = 0
        chunks = []
        missedThrough = nil
        isReading = false
    }
}
