import Database
import MicroHTTP
import Realtime
import Rows
import Values

/// The beginning of a new stream, read by a worker in one transaction: `stream:ready`, the replay, and the states of
/// topics.
///
/// The id of `stream:ready` is the position **before** the replayed events. A client that is disconnected during the
/// replay has the id of the last event that it received, or of `ready` if it received no other, and resumes right
/// there. With the position after the replay as its id, such a client would skip events that it never received. Without
/// a cursor nothing is replayed, and the id is the newest event of the client's tenant up to the head.
///
/// A cursor is not a secret and grants nothing. It names a position in the log of all tenants, and the replay contains
/// only what **this** token may see after it. Another user's `Last-Event-ID` is therefore worthless (R-SCH-EC4).
struct StreamStart: Sendable {
    /// The client's position once it has all chunks.
    let position: Int64
    let chunks: [SharedBytes]
    let replayed: Int
    let resync: ResyncReason?
    /// Whether a usable cursor was given.
    let isResumed: Bool
}

/// A reader of the log for streams, on a worker.
struct StreamReader: Sendable {
    let dependencies: StreamDependencies
    /// For the same log as the head at which the stream begins, which its shard knows.
    let ids: EventIDs
    let caller: Caller
    let topics: [String]
    /// The row subscriptions of the stream.
    var tables: [TableSubscription] = []
    /// All keys of the caller, from the token and from memberships; nil to read them with the rest.
    var keys: Set<String>?

    /// Returns the keys that rows of the service grant the caller now.
    func grantedKeys() throws -> Set<String> { try read(grantedKeys) }

    private func grantedKeys(_ tx: Transaction) throws -> Set<String> {
        Set(try KeyGrants.origins(of: caller.scope, by: dependencies.live, in: tx.db).keys)
    }

    private func allKeys(_ tx: Transaction) throws -> Set<String> {
        try keys ?? caller.scope.keys.union(grantedKeys(tx))
    }

    private func read<Value>(_ body: (Transaction) throws -> Value) throws -> Value {
        try dependencies.reader.read(as: caller, body)
    }

    /// Reads the beginning of a stream.
    ///
    /// - Parameters:
    ///   - head: The last event that the stream's shard had handled when the stream joined the hub. Everything up to it
    ///     is read here; everything after it reaches the stream live.
    func start(streamId: String, lastEventID: String?, head: Int64) throws -> StreamStart {
        let known = knownPosition
        let start = try read { tx in
            try self.start(tx, streamId: streamId, lastEventID: lastEventID, head: head, known: known)
        }
        // The scope lives as long as the stream and is hardly used again, so its cached predicates can be released.
        caller.scope.forgetPredicates()
        return start
    }

    /// Returns the events with `after < sequence ≤ through` that the stream may see; nil if they exceed the replay
    /// limit, or are gone.
    func chunks(after: Int64, through: Int64) throws -> [SharedBytes]? {
        try read { tx in
            let keys = try allKeys(tx)
            guard try EventLog.oldestSequence(in: tx.db) <= after + 1,
                let events = try replay(tx, keys: keys, after: after, through: through)
            else { return nil }
            var writer = ChunkWriter()
            append(events, keys: keys, to: &writer)
            return writer.finish()
        }
    }

    /// Returns the current states of topics, as events without an id, because they are not rows of the log.
    func topicStates(of topics: [String]) throws -> SharedBytes? {
        var writer = ChunkWriter()
        try read { tx in try appendStates(of: topics, tx, to: &writer) }
        let bytes = writer.finish().flatMap { chunk in chunk.withUnsafeBytes { Array($0) } }
        return bytes.isEmpty ? nil : SharedBytes(bytes)
    }

    /// Returns the row changes from a cursor to the head of the stream's shard, in the form of the stream's
    /// subscriptions. They have no ids, because the stream's cursor is further on.
    func missedRows(after lastEventID: String?, through head: Int64) throws -> TableReplay {
        let known = knownPosition
        return try read { tx in
            let resumption = Resumption.decide(
                lastEventID: lastEventID, ids: ids, oldest: try oldestSequence(tx, known),
                newest: try EventLog.newestSequence(in: tx.db))
            var (writer, through) = (ChunkWriter(), head)
            switch resumption {
            case .fresh: break
            case .resync(let reason): writer.append { $0 += StreamNotice.resync(reason, at: nil) }
            case .after(let sequence):
                // The client may come from a shard that was ahead of this one.
                through = max(sequence, head)
                let keys = try allKeys(tx)
                if let recent = try recentChanges(tx, through: sequence, routes: routes(of: tables.filter(hasCounts))),
                    let events = try self.replay(
                        tx, keys: keys, after: sequence, through: through, routes: routes(of: tables))
                {
                    appendRows(events, since: recent, keys: keys, at: nil, to: &writer)
                } else {
                    writer.append { $0 += StreamNotice.resync(.gap, at: nil) }
                }
            }
            return TableReplay(through: through, chunks: writer.finish())
        }
    }

    /// The position of the caller's tenant, to be noted before a snapshot begins.
    private var knownPosition: TenantPositions.Known { dependencies.reader.positions.known(of: caller.tenant) }

    private func oldestSequence(_ tx: Transaction, _ known: TenantPositions.Known) throws -> Int64 {
        guard known.ids.epoch == ids.epoch else { return try EventLog.oldestSequence(in: tx.db) }
        return try EventLog.oldestSequence(known: known, in: tx.db)
    }

    private func start(
        _ tx: Transaction, streamId: String, lastEventID: String?, head: Int64, known: TenantPositions.Known
    ) throws -> StreamStart {
        var resumption = Resumption.decide(
            lastEventID: lastEventID, ids: ids, oldest: try oldestSequence(tx, known),
            newest: try EventLog.newestSequence(in: tx.db))
        let keys = try allKeys(tx)
        var events: [StreamEvent] = []
        var invalidation: Coalescer.Batch?
        if case .after(let sequence) = resumption {
            if let recent = try recentChanges(tx, through: sequence, routes: EventRoutes(keys: caller.scope.keys)),
                let found = try sequence < head ? replay(tx, keys: keys, after: sequence, through: head) : []
            {
                events = found.filter { !$0.isChange }
                invalidation = staleKeys(of: recent + found.filter(\.isChange))
            } else {
                resumption = .resync(.gap)
            }
            if invalidation?.isOverflow == true { resumption = .resync(.gap) }
        }
        var (position, reason, isResumed) = (head, ResyncReason?.none, false)
        // The client receives the position of its tenant, after which the tenant had no event up to the head.
        var readyAt = dependencies.reader.positions.position(of: caller.tenant, upTo: head, in: ids)
        switch resumption {
        case .fresh: break
        case .after(let sequence): (readyAt, position, isResumed) = (sequence, max(sequence, head), true)
        case .resync(let why): reason = why
        }
        var writer = ChunkWriter()
        let badges = try tx.badges(of: caller.userId)
        writer.append { bytes in
            SSE.appendRetry(milliseconds: StreamLimits.retryMilliseconds, to: &bytes)
            bytes += StreamNotice.event("stream:ready", at: ids.cursor(readyAt)) { writer in
                writer.member("streamId", streamId)
                writer.member("userId", caller.userId)
                writer.member("tenant", caller.tenant)
                writer.member("identity", caller.identity)
                writer.member("topics", [StreamTopics.personal] + topics)
                writer.member("replayed", events.count)
                if caller.omittedKeys > 0 { writer.member("omittedKeys", caller.omittedKeys) }
                writer.member("badges", badges)
                writer.member("serverTime", tx.now)
            }
            if let reason { bytes += StreamNotice.resync(reason, at: ids.cursor(readyAt)) }
        }
        // First, and without an id: a client that loses the stream during the replay asks for all of it again.
        if reason == nil, let invalidation {
            writer.append { $0 += StreamNotice.invalidation(invalidation, at: nil) }
        }
        append(events, keys: keys, to: &writer)
        // After the replay, so that no older state from the log follows the current one.
        try appendStates(of: topics, tx, to: &writer)
        for state in try dependencies.ownStates(tx) {
            writer.append { SSE.append(state.name, data: state.data, to: &$0) }
        }
        return StreamStart(
            position: position, chunks: writer.finish(), replayed: events.count, resync: reason, isResumed: isResumed)
    }

    // MARK: Row changes

    private func routes(of tables: [TableSubscription]) -> EventRoutes { EventRoutes(topics: topics(of: tables)) }

    private func topics(of tables: [TableSubscription]) -> [String] {
        tables.map { EventLog.topic(schema: $0.schema, table: $0.table) }
    }

    /// Whether changes of the table may wait as counts for the end of a window.
    private func hasCounts(_ subscription: TableSubscription) -> Bool {
        // Undeclared tables are the service's own.
        dependencies.memberships.catalog.find(schema: subscription.schema, table: subscription.table)?.counts.isEmpty
            != true
    }

    /// Returns changes whose window may not have ended when the stream broke after `sequence`. A key is sent at the end
    /// of its window, so these keys are sent again. A repeated key only makes a client fetch once more.
    private func recentChanges(
        _ tx: Transaction, through sequence: Int64, routes: EventRoutes
    ) throws -> [StreamEvent]? {
        // An additional second for the time between the change and the beginning of its window.
        let age = dependencies.memberships.longestWindow + .seconds(1)
        return try EventLog.recentChanges(
            of: routes, in: caller.tenant, through: sequence,
            Lookback(age: age, countMax: StreamLimits.replayEventsMax), in: tx.db)
    }

    /// Returns the queries that the changes made stale, limited to the queries that the caller may know, or nil.
    private func staleKeys(of changes: [StreamEvent]) -> Coalescer.Batch? {
        var coalescer = Coalescer()
        // One at a time, because a thousand parsed changes take megabytes.
        for case let change? in changes.lazy.map({ RowChange(reading: $0.data) }) {
            for invalidation in change.invalidations where !caller.scope.keys.isDisjoint(with: invalidation.audience) {
                let knows = !caller.scope.keys.isDisjoint(with: invalidation.causeAudience)
                coalescer.offer(
                    invalidation.key, cause: knows ? change.cause : nil, to: [0], window: .zero, at: 0)
            }
        }
        return coalescer.takeDue(at: .max).first
    }

    private func append(_ events: [StreamEvent], keys: Set<String>, to writer: inout ChunkWriter) {
        for event in events {
            let cursor = ids.cursor(event.sequence)
            if event.isChange {
                appendRows([event], keys: keys, at: cursor, to: &writer)
            } else {
                writer.append {
                    SSE.append(event.name, data: event.data, id: cursor, traceparent: event.traceparent, to: &$0)
                }
            }
        }
    }

    /// Appends row changes.
    ///
    /// - Parameters:
    ///   - recent: Earlier changes, whose counts may have been waiting when the stream broke.
    ///   - cursor: The position of all of them in the log. Nil if they are sent out of their place; then the counts of
    ///     several are merged.
    private func appendRows(
        _ events: [StreamEvent], since recent: [StreamEvent] = [], keys: Set<String>, at cursor: Cursor?,
        to writer: inout ChunkWriter
    ) {
        var counts: RowSubscriptions.RecordCounts = [:]
        func appendCounts(_ writer: inout ChunkWriter) {
            guard !counts.isEmpty else { return }
            writer.append { $0 += StreamNotice.engagement(counts, at: cursor) }
            counts = [:]
        }
        let first = events.first?.sequence ?? .max
        for event in recent + events {
            guard let change = RowChange(reading: event.data) else { continue }
            var encoder = RowChangeEncoder(PublishedChange(change), of: event, cursor: cursor)
            for part in delivery(of: encoder, keys: keys).parts {
                if encoder.isOnlyCounts(part.transition), let record = change.cause.recordId {
                    counts[ID(record), default: [:]].merge(encoder.counts(part.selection)) { $1 }
                    if cursor != nil || counts.count >= StreamLimits.countsPerEventMax { appendCounts(&writer) }
                } else if event.sequence >= first {
                    appendCounts(&writer)
                    let bytes = encoder.event(part)
                    writer.append { chunk in bytes.withUnsafeBytes { chunk += $0 } }
                } else if let record = change.cause.recordId {
                    // This change was delivered before the stream broke, and is newer than the counts.
                    counts[ID(record)] = nil
                }
            }
        }
        appendCounts(&writer)
    }

    /// Returns the delivery of a change to the stream's subscriptions.
    private func delivery(of encoder: RowChangeEncoder, keys: Set<String>) -> RowDelivery {
        let (change, row) = (encoder.change.value, encoder.row)
        var delivery = RowDelivery()
        let seesOld = !keys.isDisjoint(with: change.oldReaders)
        let seesNew = !keys.isDisjoint(with: change.newReaders(keys.contains))
        for subscription in tables where subscription.schema == change.schema && subscription.table == change.table {
            let transition = subscription.transition(
                row.event, old: row.old, new: row.new, seesOld: seesOld, seesNew: seesNew)
            if let transition { delivery.add(subscription, transition, of: change, seesNew: seesNew) }
        }
        return delivery
    }

    /// Reads the events to replay.
    ///
    /// - Parameter routes: Nil for all routes of the stream.
    /// - Returns: Nil if the events exceed the replay limit.
    private func replay(
        _ tx: Transaction, keys: Set<String>, after: Int64, through: Int64, routes: EventRoutes? = nil
    ) throws -> [StreamEvent]? {
        let routes = routes ?? EventRoutes(keys: keys, topics: topics + self.topics(of: tables))
        let events = try EventLog.replay(
            LogSpan(after: after, through: through), of: routes, as: Scope(tenant: caller.tenant, keys: keys),
            limit: StreamLimits.replayEventsMax, in: tx.db)
        guard var events else { return nil }
        if !dependencies.withheld.isEmpty { events.removeAll(where: dependencies.withheld.contains) }
        let collapsed = StreamEvent.collapsed(events)
        let bytes = collapsed.reduce(0) { $0 + $1.data.count }
        return bytes <= StreamLimits.replayBytesMax ? collapsed : nil
    }

    private func appendStates(of topics: [String], _ tx: Transaction, to writer: inout ChunkWriter) throws {
        for topic in topics {
            guard let (kind, id) = StreamTopics.split(topic, kinds: dependencies.topicKinds),
                let (name, data) = try state(of: kind, id, tx)
            else { continue }
            writer.append { SSE.append(name, data: data, to: &$0) }
        }
    }

    /// Returns the state of a topic. A topic about something that does not exist, or that the caller may not see, has
    /// no state. The subscription is kept, because the thing may be created later.
    private func state(of kind: TopicKind, _ id: String, _ tx: Transaction) throws -> (String, [UInt8])? {
        do {
            return try kind.initial(tx, id)
        } catch let failure as Failure where failure.kind == .notFound || failure.kind == .forbidden {
            return nil
        }
    }
}

/// Joins encoded events into pieces that fit a socket's buffer.
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
