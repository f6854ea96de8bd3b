import Database
import MicroHTTP
import Realtime
import Rows
import Values

extension StreamHub {
    /// The shard's clock. Windows use real time, even if a test sets another time for requests.
    private var milliseconds: Int64 { Int64(shard.now / 1_000_000) }

    // MARK: Row changes

    /// Delivers a change: stale keys to scopes that may know them, rows to matching subscriptions.
    ///
    /// The cost is proportional to the number of receivers. It checks either the streams that may see the row or the
    /// subscriptions that its values find, whichever are fewer.
    func deliver(_ encoded: EncodedEvent) {
        let event = encoded.event
        recentChanges.append(encoded)
        let hasReceivers = hub.find(event.audience, tenant: event.tenant).streamCount > 0
        let isWatched = rows.watchedTables.contains(event)
        guard hasReceivers || isWatched, let change = encoded.change else { return }
        if hasReceivers { invalidate(change.value, tenant: event.tenant) }
        guard isWatched else { return }
        let streams = deliver(change, of: event, at: encoded.cursor)
        if streams > 0 { endDelivery(of: encoded, to: streams) }
    }

    private func invalidate(_ change: RowChange, tenant: ID<Tenant>) {
        let now = milliseconds
        for invalidation in change.invalidations {
            let streams = hub.streams(withAnyOf: hub.find(invalidation.audience, tenant: tenant))
            guard !streams.isEmpty else { continue }
            let readers = hub.find(invalidation.causeAudience, tenant: tenant)
            var (knowing, others): ([Int32], [Int32]) = ([], [])
            for slot in streams {
                if hub.hasKey(slot, anyOf: readers) { knowing.append(slot) } else { others.append(slot) }
            }
            let window = Duration.milliseconds(change.windowMilliseconds)
            rows.coalescer.offer(invalidation.key, cause: change.cause, to: knowing, window: window, at: now)
            rows.coalescer.offer(invalidation.key, cause: nil, to: others, window: window, at: now)
        }
    }

    /// Sends one stream the changes between the end of its replay and now.
    private func deliverMissed(after sequence: Int64, to slot: Int32) {
        for encoded in recentChanges.after(sequence) where rows.watchedTables.contains(encoded.event) {
            if let change = encoded.change { deliver(change, of: encoded.event, at: nil, only: slot) }
        }
        rows.noteDelivered(through: head, to: slot)
    }

    /// Delivers a change to the subscriptions that match it.
    ///
    /// - Parameter slot: Nil for all streams; otherwise the stream that missed the change.
    /// - Returns: The number of streams that it concerns.
    @discardableResult
    private func deliver(
        _ change: PublishedChange, of event: StreamEvent, at cursor: Cursor?, only slot: Int32? = nil
    ) -> Int {
        var encoder = RowChangeEncoder(change, of: event, cursor: cursor)
        let (oldKeys, newKeys, losses) = (change.value.oldReaders, change.value.newReaders, change.value.losses)
        let oldReaders = hub.find(oldKeys, tenant: event.tenant)
        // Most changes leave the readers as they are.
        let newReaders = newKeys == oldKeys ? oldReaders : hub.find(newKeys, tenant: event.tenant)
        let matches = matches(of: encoder.row, only: slot, among: oldReaders.union(newReaders))
        // Local copies, because nothing changes them from here on. As members of a class, they would be retained again
        // for each match.
        let (hub, index) = (hub, rows.index)
        func seesNew(_ slot: Int32) -> Bool {
            guard hub.hasKey(slot, anyOf: newReaders) else { return false }
            guard !losses.isEmpty else { return true }
            let readers = change.value.newReaders { hub.hasKey(slot, anyOf: hub.find([$0], tenant: event.tenant)) }
            return hub.hasKey(slot, anyOf: hub.find(readers, tenant: event.tenant))
        }
        var deliveries: [(slot: Int32, delivery: RowDelivery)] = []
        for match in matches where hub.contains(match.slot) {
            let seesNew = seesNew(match.slot)
            let seesOld = hub.hasKey(match.slot, anyOf: oldReaders)
            guard let transition = match.transition(seesOld: seesOld, seesNew: seesNew) else { continue }
            if deliveries.last?.slot != match.slot { deliveries.append((match.slot, RowDelivery())) }
            deliveries[deliveries.count - 1].delivery
                .add(index.subscription(match), transition, of: change.value, seesNew: seesNew)
        }
        for (slot, delivery) in deliveries where rows.isNew(event.sequence, to: slot) {
            for part in delivery.parts { deliver(part, &encoder, event.sequence, to: slot) }
        }
        return deliveries.count
    }

    /// Returns the subscriptions that a row's values find, or only the subscriptions of its readers, if these are
    /// fewer.
    private func matches(of row: RowVersions, only slot: Int32?, among readers: Hub.Keys) -> [SubscriptionMatch] {
        var matches: [SubscriptionMatch] = []
        if let slot {
            rows.index.forEachMatch(row, in: slot) { matches.append($0) }
            return matches
        }
        if rows.forEachMatch(row, candidatesMax: readers.streamCount, { matches.append($0) }) { return matches }
        for slot in hub.streams(withAnyOf: readers) {
            rows.index.forEachMatch(row, in: slot) { matches.append($0) }
        }
        return matches
    }

    private func deliver(
        _ part: RowDelivery.Part, _ encoder: inout RowChangeEncoder, _ sequence: Int64, to slot: Int32
    ) {
        if encoder.isOnlyCounts(part.transition) {
            guard let record = encoder.change.value.cause.recordId else { return }
            let dueAt = milliseconds + Int64(encoder.change.value.windowMilliseconds)
            return rows.offer(encoder.counts(part.selection), of: record, to: slot, dueAt: dueAt)
        }
        if let record = encoder.change.value.cause.recordId {
            rows.refresh(part.transition == .leave ? nil : encoder.counts(part.selection), of: record, to: slot)
        }
        let bytes = encoder.event(part)
        // It was missed before and has no position in the log; it is sent with the replay that it follows.
        let isLive =
            encoder.cursor == nil
            || subscriptions[Int(slot)].receive(sequence: sequence) {
                .init(sequence: sequence, collapse: 0, byteCount: bytes.count, payload: bytes)
            }
        if isLive { sendLive(bytes, to: slot) }
    }

    private func sendLive(_ bytes: SharedBytes, to slot: Int32) {
        send(bytes, to: slot)
        StreamMetrics.add(1, to: dependencies.metrics.deliveries)
        StreamMetrics.add(bytes.count, to: dependencies.metrics.deliveredBytes)
    }

    // MARK: The end of a window

    var wakesAt: UInt64? { rows.nextDue.map { UInt64(max(0, $0)) * 1_000_000 } }

    func woken(_ now: UInt64) { endWindows(dueAt: Int64(now / 1_000_000)) }

    /// Sends the deliveries whose windows end at `now`, in milliseconds, or before.
    func endWindows(dueAt now: Int64) {
        var encoder = InvalidationEncoder()
        var cursors: [ID<Tenant>: Cursor] = [:]
        func here(_ slot: Int32) -> Cursor {
            guard let tenant = sessions[Int(slot)]?.caller.tenant else { return ids.cursor(head) }
            if let found = cursors[tenant] { return found }
            let made = cursor(head, of: slot)
            cursors[tenant] = made
            return made
        }
        for batch in rows.coalescer.takeDue(at: now) {
            guard hub.contains(batch.stream) else { continue }
            if batch.isOverflow {
                StreamMetrics.add(1, to: dependencies.metrics.resyncs)
                notify(batch.stream, StreamNotice.resync(.overflow, at: here(batch.stream)))
            } else {
                sendLive(encoder.event(batch, at: isLive(batch.stream) ? here(batch.stream) : nil), to: batch.stream)
            }
        }
        for (slot, updates) in rows.takeCounts(at: now) where hub.contains(slot) {
            sendLive(SharedBytes(StreamNotice.engagement(updates, at: isLive(slot) ? here(slot) : nil)), to: slot)
        }
    }

    /// Whether the stream has received everything before the head. It has not during a replay.
    private func isLive(_ slot: Int32) -> Bool { subscriptions[Int(slot)].phase == .live }

    // MARK: Subscriptions and scopes

    /// Replaces everything to which a stream subscribes, at once.
    ///
    /// - Returns: The topics that are new.
    func replace(_ draft: SubscriptionDraft, of slot: Int32) throws(Failure) -> [String] {
        if let wanted = draft.tables, let owner = sessions[Int(slot)]?.caller.owner {
            let counts = rows.counts(waitingFor: slot)
            try changeTables { () throws(Failure) in
                try rows.replace(slot, of: owner, with: wanted, floor: draft.replay?.through)
            }
            // Counts of rows that were watched until now must not get lost because the user has scrolled on.
            if !counts.isEmpty {
                let here = isLive(slot) ? cursor(head, of: slot) : nil
                sendLive(SharedBytes(StreamNotice.engagement(counts, at: here)), to: slot)
            }
            if let replay = draft.replay {
                for chunk in replay.chunks { sendChunk(chunk, to: slot) }
                deliverMissed(after: replay.through, to: slot)
                // Missed changes have no ids of their own. The client now has everything up to this position, and
                // resumes after it.
                if isLive(slot) { notify(slot, SSE.place(cursor(head, of: slot))) }
            }
        }
        guard let topics = draft.topics else { return [] }
        let before = hub.topics(of: slot)
        hub.replaceTopics(of: slot, with: topics)
        StreamMetrics.add(hub.topics(of: slot).count - before.count, to: dependencies.metrics.topics)
        return topics.filter { !before.contains(where: $0.hasBytes) }
    }

    /// Changes the row subscriptions, and their number in the metrics.
    func changeTables<Failed>(_ change: () throws(Failed) -> Void) throws(Failed) {
        let before = rows.index.subscriptionCount
        defer { StreamMetrics.add(rows.index.subscriptionCount - before, to: dependencies.metrics.tables) }
        try change()
    }

    /// Recomputes the scope of each stream that has one of the keys.
    func renewScopes(withAnyOf holders: Set<MembershipUpdate.Holders>) {
        var slots: Set<Int32> = []
        for holder in holders {
            hub.forEachStream(tenant: holder.tenant, key: holder.key) { slots.insert($0) }
        }
        for slot in slots.sorted() { renewScope(of: slot) }
    }

    private func renewScope(of slot: Int32) {
        guard let session = sessions[Int(slot)], !session.isEnding else { return }
        let caller = scoped(session.caller)
        guard caller.scope.keys != session.caller.scope.keys || caller.omittedKeys != session.caller.omittedKeys
        else { return }
        sessions[Int(slot)]?.opener = session.opener.renewed(for: caller)
        replaceScope(of: slot, from: session.caller, to: caller)
    }
}

/// The encoder of invalidations whose windows end at one time. It encodes each batch once for all streams that receive
/// the same, for example the streams of a class.
struct InvalidationEncoder {
    private struct Form: Hashable {
        let keys: [QueryKey]
        let causes: [InvalidationCause]
        let isComplete: Bool
        let cursor: Cursor?
    }

    private var encoded: [Form: SharedBytes] = [:]

    /// Returns a `query:invalidate` event.
    mutating func event(_ batch: Coalescer.Batch, at cursor: Cursor?) -> SharedBytes {
        let form = Form(
            keys: batch.keys.map(QueryKey.init), causes: batch.causes, isComplete: batch.isComplete, cursor: cursor)
        if let bytes = encoded[form] { return bytes }
        let bytes = SharedBytes(StreamNotice.invalidation(batch, at: cursor))
        encoded[form] = bytes
        return bytes
    }
}
