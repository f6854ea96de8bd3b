import Database
import Domain
import MicroHTTP
import Realtime

/// What a new stream begins with, read by a worker in one transaction: `stream:ready`, the replay, the topics' states.
///
/// `stream:ready` carries as its id the position **before** the replayed events: a client that dies in the middle of
/// the replay has the id of the last event it got, or of `ready` if it got none, and resumes right there. With the
/// position after the replay as its id, such a client would skip what it never received. Without a cursor nothing is
/// replayed, and the id is the head.
///
/// A cursor is no secret and opens nothing: sequence numbers are global, and what is replayed is what **this** token
/// may see after that number. Another user's `Last-Event-ID` is therefore worth nothing (SCH EC4).
struct StreamStart: Sendable {
    /// Where the client stands when it has all chunks.
    let position: Int64
    let chunks: [SharedBytes]
    let replayed: Int
    let resync: ResyncReason?
    /// True if a usable cursor was given.
    let isResumed: Bool
}

/// Reads the log for streams, on a worker.
struct StreamReader: Sendable {
    let surroundings: StreamSurroundings
    let caller: Caller
    let topics: [String]

    /// - Parameters:
    ///   - head: the last event that the stream's shard had handled when the stream joined the hub. Everything up to it
    ///     is read here, everything after it reaches the stream live.
    func start(streamId: String, lastEventID: String?, head: Int64) throws -> StreamStart {
        var start: StreamStart?
        try surroundings.read(caller) { tx in
            start = try self.start(tx, streamId: streamId, lastEventID: lastEventID, head: head)
        }
        guard let start else { throw Failure(.unavailable, "stream.unreadable", "The stream could not be read.") }
        // The scope lives as long as the stream and is hardly asked again: what was made for this reading can go.
        caller.scope.forgetPredicates()
        return start
    }

    /// What the stream may see with `after < sequence ≤ through`; nil if it is more than may be replayed, or is gone.
    func chunks(after: Int64, through: Int64) throws -> [SharedBytes]? {
        var chunks: [SharedBytes]?
        try surroundings.read(caller) { tx in
            guard try EventLog.oldestSequence(in: tx.db) <= after + 1,
                let events = try replay(tx, after: after, through: through)
            else { return }
            var writer = ChunkWriter()
            for event in events { writer.append { SSE.append(event, epoch: surroundings.epoch, to: &$0) } }
            chunks = writer.finish()
        }
        return chunks
    }

    /// The present states of topics, as events without an id: they are no rows of the log.
    func topicStates(of topics: [String]) throws -> SharedBytes? {
        var writer = ChunkWriter()
        try surroundings.read(caller) { tx in try appendStates(of: topics, tx, to: &writer) }
        let bytes = writer.finish().flatMap { chunk in chunk.withUnsafeBytes { Array($0) } }
        return bytes.isEmpty ? nil : SharedBytes(bytes)
    }

    private func start(_ tx: Transaction, streamId: String, lastEventID: String?, head: Int64) throws -> StreamStart {
        var resumption = Resumption.decide(
            lastEventID: lastEventID, epoch: surroundings.epoch, oldest: try EventLog.oldestSequence(in: tx.db),
            newest: try EventLog.newestSequence(in: tx.db))
        var events: [StreamEvent] = []
        if case .after(let sequence) = resumption, sequence < head {
            if let found = try replay(tx, after: sequence, through: head) {
                events = found
            } else {
                resumption = .resync(.gap)
            }
        }
        var (readyAt, position, reason) = (head, head, ResyncReason?.none)
        switch resumption {
        case .fresh: break
        case .after(let sequence): (readyAt, position) = (sequence, max(sequence, head))
        case .resync(let why): reason = why
        }
        var writer = ChunkWriter()
        let ready = try self.ready(tx, streamId: streamId, replayed: events.count)
        writer.append { bytes in
            SSE.appendRetry(milliseconds: StreamLimits.retryMilliseconds, to: &bytes)
            SSE.append("stream:ready", data: ready, id: cursor(readyAt), to: &bytes)
            if let reason { StreamNotice.appendResync(reason, at: cursor(readyAt), to: &bytes) }
        }
        for event in events { writer.append { SSE.append(event, epoch: surroundings.epoch, to: &$0) } }
        // After the replay, so that an older state of the log does not follow the present one.
        try appendStates(of: topics, tx, to: &writer)
        for state in try surroundings.ownStates(tx) {
            writer.append { SSE.append(state.name, data: state.data, to: &$0) }
        }
        var isResumed = false
        if case .after = resumption { isResumed = true }
        return StreamStart(
            position: position, chunks: writer.finish(), replayed: events.count, resync: reason, isResumed: isResumed)
    }

    private func cursor(_ sequence: Int64) -> Cursor { Cursor(epoch: surroundings.epoch, sequence: sequence) }

    private func ready(_ tx: Transaction, streamId: String, replayed: Int) throws -> [UInt8] {
        let badges = try tx.badges(of: caller.userId)
        return JSONWriter.object { writer in
            writer.member("streamId", streamId)
            writer.member("userId", caller.userId)
            writer.member("topics", [StreamTopics.personal] + topics)
            writer.member("replayed", replayed)
            writer.member("badges", badges)
            writer.member("serverTime", tx.now)
        }
    }

    /// Nil: more than may be replayed.
    private func replay(_ tx: Transaction, after: Int64, through: Int64) throws -> [StreamEvent]? {
        let events = try EventLog.replay(
            in: tx.db, tenant: caller.tenant, routes: Array(caller.scope.keys) + topics.map { "#" + $0 },
            scope: caller.scope, after: after, through: through, limit: StreamLimits.replayEventsMax + 1)
        guard events.count <= StreamLimits.replayEventsMax else { return nil }
        let collapsed = StreamEvent.collapsed(events)
        let bytes = collapsed.reduce(0) { $0 + $1.data.count }
        return bytes <= StreamLimits.replayBytesMax ? collapsed : nil
    }

    private func appendStates(of topics: [String], _ tx: Transaction, to writer: inout ChunkWriter) throws {
        for topic in topics {
            guard let (kind, id) = StreamTopics.split(topic, kinds: surroundings.topicKinds),
                let (name, data) = try state(of: kind, id, tx)
            else { continue }
            writer.append { SSE.append(name, data: data, to: &$0) }
        }
    }

    /// A topic about something that is not there, or that the caller may not see, has no state; it stays named, for the
    /// thing may come to be.
    private func state(of kind: TopicKind, _ id: String, _ tx: Transaction) throws -> (String, [UInt8])? {
        do {
            return try kind.initial(tx, id)
        } catch let failure as Failure where failure.kind == .notFound || failure.kind == .forbidden {
            return nil
        }
    }
}

/// Joins encoded events into pieces that a socket's buffer can take.
private struct ChunkWriter {
    private var chunks: [SharedBytes] = []
    private var bytes: [UInt8] = []

    mutating func append(_ body: (inout [UInt8]) -> Void) {
        body(&bytes)
        if bytes.count >= StreamLimits.chunkBytesMax { flush() }
    }

    mutating func finish() -> [SharedBytes] {
        flush()
        return chunks
    }

    private mutating func flush() {
        guard !bytes.isEmpty else { return }
        chunks.append(SharedBytes(bytes))
        bytes = []
    }
}
