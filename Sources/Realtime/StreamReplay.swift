/// The replay of one stream. It brings the stream from its cursor to the present, and delivers each event exactly once.
///
/// It is a pure state machine: the shard that owns the stream passes in events and performs the returned actions.
///
/// ```
///  opening ── opened(position, chunks) ──▶ replaying ── all chunks out, nothing missed ──▶ live ──▶ closed
///                                              ▲   │
///                                              └───┘ loaded(…): the log is read again for what did not fit the queue
/// ```
/// The stream first joins the hub, while the shard's last event is H. From then on every live event reaches
/// ``receive(_:)``. A worker reads the log up to H. So each event is either ≤ H and replayed, or > H and received live:
/// never both, never neither. Live events that arrive during the replay wait in a bounded queue. If the queue
/// overflows, it is discarded, and the log, which stores the same events, is read once more up to the newest of them.
/// The client does not notice. Only a client that stays behind for ``roundsMax`` rounds receives `stream:resync`.
public struct StreamReplay<Payload: Sendable>: Sendable {
    public enum Phase: Sendable, Hashable {
        case opening, replaying, live, closed
    }

    /// An encoded live event.
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
        /// Read the log with `after < sequence ≤ through` for the events that the stream may see, and answer with
        /// ``loaded``.
        case load(after: Int64, through: Int64)
        /// Send `stream:resync`, after which the client fetches everything again. `position` is the cursor to send with
        /// it.
        case resync(ResyncReason, position: Int64)
    }

    /// Bytes of live events that may wait for a replay to end. Without this limit, a client that reads its replay
    /// slowly would keep every later event in memory. Above the limit, the events are read from the log instead.
    static var queueBytesMax: Int { 16 * 1024 }
    /// Rounds of reading the log before the client has to resync. Without this limit, a client that always reads more
    /// slowly than events arrive would be served from disk forever.
    public static var roundsMax: Int { 4 }

    public private(set) var phase: Phase = .opening
    /// Live events up to this sequence are not sent: a replay contains them, or the client's cursor is past them.
    private var floor: Int64
    /// Live events in arrival order, all > `floor`, while the stream is not live.
    private var queue: [Item] = []
    private var queueBytes = 0
    /// Set if the queue overflowed and the log must be read again up to this sequence.
    private var missedThrough: Int64?
    /// Chunks that the worker has read and the stream has not sent yet.
    private var chunks: [Payload] = []
    private var rounds: UInt8 = 1
    private var isReading = true

    /// Creates the replay of a new stream.
    ///
    /// - Parameter head: The sequence of the last event that the shard has handled.
    public init(head: Int64) {
        floor = head
    }

    /// Records that the worker has read the log up to the head. The chunks begin with `stream:ready`. Each chunk is
    /// sent once the one before it has left the process.
    ///
    /// - Parameter position: The client's position after all chunks. It is usually the head. It is higher if the client
    ///   comes from a shard that was ahead of this one; then the client already has the events that this shard is about
    ///   to receive.
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

    /// Records that the worker has read the events that did not fit the queue. Nil means that they are too many to
    /// replay, or that the log could not be read.
    public mutating func loaded(_ chunks: [Payload]?) -> [Action] {
        guard phase == .replaying, isReading else { return [] }
        isReading = false
        guard let chunks else { return giveUp() }
        self.chunks = chunks
        return advance()
    }

    /// Records that everything sent so far has left the process.
    public mutating func drained() -> [Action] {
        guard phase == .replaying, !isReading else { return [] }
        return advance()
    }

    /// Takes a live event of this stream. Returns true if it must be sent now, false if it waits here or the client
    /// already has it.
    ///
    /// `item` is called only if the event must wait. On a live stream, this function is one comparison.
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

    /// Records that the socket's backlog for a slow client was discarded, and that the client was sent a resync at
    /// `position`, the newest event that the shard has handled. The events that wait here are discarded too.
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
        // The last chunk need not have left before the queue follows: both together fit the socket's buffer.
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
