import Database
import MicroHTTP
import Realtime
import Rows
import Values

/// The streams of one shard: the routing of events to them, and the replay state of each.
///
/// Every method runs on the shard's thread, so nothing here needs a lock. A stream's slot is the index of its handle.
final class StreamHub: StreamProgram {
    typealias Message = StreamMessage

    /// The data of a stream besides its entry in the hub and its subscription.
    struct Session {
        /// The user of the stream; its lease is returned when the session ends. It is a reference, because the places
        /// of thousands of streams are in one array, and half of them may be free.
        var opener: StreamOpener
        var lifetime: TokenLifetime
        /// In monotonic nanoseconds; 0 for never.
        var lastOverflowAt: UInt64 = 0
        /// The reason why the server ends the stream. The last event has been queued, and nothing may follow it.
        var ending: StreamNotice.ClosingReason?

        var isEnding: Bool { ending != nil }
        var caller: Caller { opener.caller }
    }

    let shard: StreamShard<StreamHub>
    let dependencies: StreamDependencies
    var hub = Hub()
    var sessions: [Session?] = []
    var handles: [StreamHandle] = []
    var subscriptions: [StreamReplay<SharedBytes>] = []
    /// The delivery figures of each slot's stream.
    var figures: [StreamFigures] = []
    /// The next token deadline of each slot, in microseconds since 1970. It is separate from the sessions, so that the
    /// check of all of them, four times a second, reads a single array.
    var deadlines: [Int64] = []
    /// Slots whose replay waits for the socket.
    var replaying: Set<Int32> = []
    /// Streams whose granted keys are being read, with the changes of those keys that the log has brought meanwhile.
    var readingKeys: [Int32: [KeyGrantChange]] = [:]
    /// The row subscriptions of the streams, and their waiting deliveries.
    var rows: RowSubscriptions
    /// States that arrived before the beginning of their streams, and are sent after it.
    var early: [Int32: [EncodedState]] = [:]
    var recentChanges: RecentChanges
    /// Keys of the wide scopes of streams in the hub (`StreamLimits.wideKeysMax`).
    var wideKeyCount = 0
    /// The last event that this shard has handled.
    var head: Int64
    /// The encoder of ids for the log of `head`. The process may already have another log, whose head arrives with it.
    var ids: EventIDs
    /// The memberships at `head`.
    var memberships: KnownMemberships
    /// The shard's clock at its last tick.
    var monotonicNow: UInt64 = 0

    /// Creates the hub of a shard.
    ///
    /// - Parameter head: The newest event of the log; the first published event must be the next one.
    init(shard: StreamShard<StreamHub>, dependencies: StreamDependencies, head: Int64) {
        self.shard = shard
        self.dependencies = dependencies
        self.head = head
        ids = dependencies.ids
        memberships = dependencies.memberships.known
        recentChanges = RecentChanges(since: head)
        rows = RowSubscriptions(shards: dependencies.settings.shards)
    }

    // MARK: Opening and closing

    func streamOpened(_ stream: StreamHandle, context: any Sendable) {
        guard var opener = context as? StreamOpener else { preconditionFailure("only StreamRoute opens streams") }
        // Memberships may have changed since the token was verified; later changes arrive as messages. The process may
        // already know them, but the events before them belong to the earlier scope.
        opener = opener.renewed(for: scoped(opener.caller))
        let slot = Int32(stream.index)
        let session = Session(
            opener: opener, lifetime: TokenLifetime(expiresAt: opener.caller.expiresAt.microseconds))
        occupy(slot, stream, session)
        // First join the hub, then note the head, then read the log. So an event that commits in between is either read
        // or received.
        hub.join(slot, tenant: opener.caller.tenant, scope: opener.caller.scope.keys, topics: opener.topics)
        noteKeys(of: opener.caller, instead: nil)
        StreamMetrics.add(hub.topics(of: slot).count, to: dependencies.metrics.topics)
        StreamMetrics.add(1, to: dependencies.metrics.open)
        StreamMetrics.add(1, to: dependencies.metrics.opened)
        // A revocation is recorded before it is posted. So it is either seen here, or its message arrives after this
        // opening.
        guard !dependencies.revocations.isRevoked(opener.caller) else { return end(slot, .revoked) }
        // The same applies if all streams end because this replica is cut off.
        guard dependencies.revocations.isTrusted else { return end(slot, .unavailable) }
        guard hasRoomForScope(of: slot) else { return }
        guard !dependencies.live.isEmpty else { return begin(stream, keys: opener.caller.scope.keys) }
        readKeys(
            stream,
            StreamReader(dependencies: dependencies, ids: ids, caller: opener.caller, topics: opener.topics))
    }

    /// Makes a worker read the beginning of the stream, now that the hub has all of its keys.
    func begin(_ stream: StreamHandle, keys: Set<String>) {
        let slot = Int32(stream.index)
        guard let opener = sessions[Int(slot)]?.opener else { return }
        let reader = StreamReader(
            dependencies: dependencies, ids: ids, caller: opener.caller, topics: opener.topics, keys: keys)
        let streamId = dependencies.names.name(of: stream).text
        let (head, lastEventID) = (head, opener.lastEventID)
        onWorker(slot) { shard in
            shard.post(
                .opened(stream, Result { try reader.start(streamId: streamId, lastEventID: lastEventID, head: head) }))
        }
    }

    /// Runs work that waits for the database. Ends the stream if the queue of the workers is full.
    func onWorker(_ slot: Int32, _ body: @escaping @Sendable (StreamShard<StreamHub>) -> Void) {
        let shard = shard
        let owner = sessions[Int(slot)]?.caller.workOwner
        if !dependencies.workers.submit(of: owner, { body(shard) }) {
            dependencies.failures.note(.congestion)
            end(slot, .unavailable)
        }
    }

    /// Ends a stream that cannot be served.
    func fail(_ slot: Int32, _ reason: StreamFailures.Reason, _ error: any Error) {
        dependencies.failures.note(reason, error)
        end(slot, .unavailable)
    }

    func streamClosed(_ stream: StreamHandle, reason: StreamCloseReason) {
        let slot = Int32(stream.index)
        guard isPresent(stream) else { return }
        leave(slot)
        dependencies.metrics.closed(StreamEnding(reason, as: sessions[Int(slot)]?.ending))
        sessions[Int(slot)] = nil
        StreamMetrics.add(-1, to: dependencies.metrics.open)
    }

    func shardWillStop() {
        // A few shared texts: each stream gets one, and clients reconnect spread over the given time.
        let steps = 16
        let notices = (1...steps).map { step in
            let milliseconds = StreamLimits.shutdownSpreadMilliseconds * step / steps
            return SharedBytes(StreamNotice.closing(.shutdown, retryAfterMilliseconds: milliseconds))
        }
        for slot in sessions.indices where sessions[slot]?.isEnding == false {
            finish(Int32(slot), .shutdown, with: notices[slot % steps])
        }
    }

    func isPresent(_ stream: StreamHandle) -> Bool {
        let slot = Int(stream.index)
        return slot < sessions.count && sessions[slot] != nil && handles[slot] == stream
    }

    private func occupy(_ slot: Int32, _ stream: StreamHandle, _ session: Session) {
        while sessions.count <= Int(slot) {
            sessions.append(nil)
            handles.append(stream)
            subscriptions.append(StreamReplay(head: head))
            figures.append(StreamFigures())
            deadlines.append(.max)
        }
        precondition(sessions[Int(slot)] == nil, "a slot belongs to one stream at a time")
        sessions[Int(slot)] = session
        handles[Int(slot)] = stream
        subscriptions[Int(slot)] = StreamReplay(head: head)
        figures[Int(slot)] = StreamFigures()
        deadlines[Int(slot)] = session.lifetime.nextStepAt
    }

    /// Sends the reason, and closes. The stream gets nothing more; its slot is free when the socket is closed.
    func end(_ slot: Int32, _ reason: StreamNotice.ClosingReason) {
        // With jitter, because the cause (a full worker queue, a revoked user) often ends many streams at once.
        let retry = StreamLimits.retryMilliseconds + Int.random(in: 0...StreamLimits.retryMilliseconds)
        finish(slot, reason, with: SharedBytes(StreamNotice.closing(reason, retryAfterMilliseconds: retry)))
    }

    private func finish(_ slot: Int32, _ reason: StreamNotice.ClosingReason, with notice: SharedBytes) {
        guard sessions[Int(slot)]?.isEnding == false else { return }
        sessions[Int(slot)]?.ending = reason
        leave(slot)
        send(notice, to: slot)
        shard.close(handles[Int(slot)])
    }

    private func leave(_ slot: Int32) {
        if hub.contains(slot) {
            StreamMetrics.add(-hub.topics(of: slot).count, to: dependencies.metrics.topics)
            hub.leave(slot)
            noteKeys(of: nil, instead: sessions[Int(slot)]?.caller)
        }
        changeTables { rows.remove(slot) }
        readingKeys[slot] = nil
        subscriptions[Int(slot)].close()
        replaying.remove(slot)
        early[slot] = nil
        deadlines[Int(slot)] = .max
    }

    /// Sends a stream a notice that has no position in the log.
    func notify(_ slot: Int32, _ notice: [UInt8]) { sendChunk(SharedBytes(notice), to: slot) }

    /// Sends a stream one event.
    func send(_ bytes: SharedBytes, to slot: Int32, collapse: UInt64 = 0) {
        figures[Int(slot)].add(1, bytes: bytes.count)
        shard.send(bytes, to: handles[Int(slot)], collapse: collapse)
    }

    /// Sends a stream any number of events, encoded one after the other.
    func sendChunk(_ bytes: SharedBytes, to slot: Int32, collapse: UInt64 = 0) {
        figures[Int(slot)].add(bytes.withUnsafeBytes(SSE.eventCount), bytes: bytes.count)
        shard.send(bytes, to: handles[Int(slot)], collapse: collapse)
    }

    // MARK: Time and slow clients

    func ticked(_ now: UInt64) {
        monotonicNow = now
        for slot in Array(replaying) { advanceReplay(slot) }
        let wallNow = dependencies.machineNow.microseconds
        for slot in deadlines.indices where deadlines[slot] <= wallNow { stepLifetime(Int32(slot), at: wallNow) }
    }

    private func stepLifetime(_ slot: Int32, at now: Int64) {
        // A stream begins with `stream:ready`. The warning of a short token waits for it.
        if subscriptions[Int(slot)].phase == .opening, let session = sessions[Int(slot)],
            now < session.caller.expiresAt.microseconds
        {
            return
        }
        guard let step = sessions[Int(slot)]?.lifetime.step(at: now), let session = sessions[Int(slot)] else { return }
        switch step {
        case .warn:
            deadlines[Int(slot)] = session.lifetime.nextStepAt
            notify(slot, StreamNotice.expiring(at: session.caller.expiresAt))
        case .end: end(slot, .expired)
        }
    }

    /// Handles a client that reads too slowly: discards its backlog, and asks it to fetch everything again. A client
    /// that soon overflows again is disconnected, and resumes from its cursor when it can.
    func streamOverflowed(_ stream: StreamHandle) -> OverflowAction {
        let slot = Int32(stream.index)
        guard isPresent(stream), var session = sessions[Int(slot)], !session.isEnding else { return .close }
        StreamMetrics.add(1, to: dependencies.metrics.overflows)
        let pause = StreamLimits.overflowPauseSeconds * 1_000_000_000
        let isRepeated = session.lastOverflowAt != 0 && monotonicNow &- session.lastOverflowAt < pause
        session.lastOverflowAt = max(1, monotonicNow)
        sessions[Int(slot)] = session
        if isRepeated { return .close }
        subscriptions[Int(slot)].overflowed(at: head)
        replaying.remove(slot)
        StreamMetrics.add(1, to: dependencies.metrics.resyncs)
        let notice = SharedBytes(StreamNotice.resync(.overflow, at: cursor(head, of: slot)))
        figures[Int(slot)].add(1, bytes: notice.count)
        return .discard(thenSend: notice)
    }

    /// Returns the cursor of a position of a stream: the newest event of its tenant up to the given one.
    func cursor(_ sequence: Int64, of slot: Int32) -> Cursor {
        guard let tenant = sessions[Int(slot)]?.caller.tenant else { return ids.cursor(sequence) }
        return ids.cursor(dependencies.reader.positions.position(of: tenant, upTo: sequence, in: ids))
    }
}

extension StreamEnding {
    /// Creates the cause of a stream's end.
    ///
    /// - Parameter told: The reason that the client received before the connection ended, if any.
    init(_ reason: StreamCloseReason, as told: StreamNotice.ClosingReason?) {
        self =
            switch (told, reason) {
            case (.expired?, _): .expired
            case (.revoked?, _): .revoked
            case (.unavailable?, _): .unavailable
            case (.slow?, _), (nil, .overflow): .slow
            case (.shutdown?, _), (nil, .shutdown), (nil, .requested): .shutdown
            case (nil, .peerClosed): .client
            case (nil, .reset): .reset
            case (nil, .timedOut): .timedOut
            }
    }
}
