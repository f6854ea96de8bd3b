import Database
import Domain
import MicroHTTP
import Realtime
import Rows
import Values
import Visibility

extension StreamHub {
    /// The shard's clock. Windows are of real time, whatever time requests are made to believe in.
    private var milliseconds: Int64 { Int64(shard.now / 1_000_000) }

    // MARK: Rows that changed

    /// Delivers a change to those it concerns: stale keys to scopes that may know them, rows to subscriptions that match.
    ///
    /// It costs in proportion to those who receive it: of the streams that may see the row and the subscriptions that its
    /// values find, the fewer are asked.
    func deliver(_ encoded: EncodedEvent) {
        let event = encoded.event
        recentChanges.append(encoded)
        let hasReceivers = hub.find(event.audience, tenant: event.tenant).streamCount > 0
        let isWatched = rows.isWatched(event)
        guard hasReceivers || isWatched, let change = encoded.change else { return }
        if hasReceivers { invalidate(change, tenant: event.tenant) }
        if isWatched {
            tellRow(RowChangeEncoder(change, tenant: event.tenant, cursor: cursor(event.sequence)), event.sequence)
        }
    }

    private func invalidate(_ change: RowChange, tenant: String) {
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

    /// Tells one stream the changes that came between its replay's end and now.
    private func tellMissed(after sequence: Int64, to slot: Int32) {
        for encoded in recentChanges.after(sequence) where rows.isWatched(encoded.event) {
            guard let change = encoded.change else { continue }
            tellRow(
                RowChangeEncoder(change, tenant: encoded.event.tenant, cursor: nil), encoded.event.sequence, only: slot)
        }
        rows.noteTold(through: head, to: slot)
    }

    /// - Parameter slot: nil for all streams; else one that has missed it.
    private func tellRow(_ telling: RowChangeEncoder, _ sequence: Int64, only slot: Int32? = nil) {
        var telling = telling
        let (row, change) = (telling.row, telling.change)
        let oldReaders = hub.find(change.oldReaders, tenant: row.tenant)
        let newReaders = hub.find(change.newReaders, tenant: row.tenant)
        let matches = matches(of: row, only: slot, among: change.oldReaders + change.newReaders)
        // From here on nothing changes them: as members of a class they would be retained anew for each match.
        let (hub, index) = (hub, rows.index)
        func seesNew(_ slot: Int32) -> Bool {
            guard hub.hasKey(slot, anyOf: newReaders) else { return false }
            guard !change.losses.isEmpty else { return true }
            let readers = change.newReaders { hub.hasKey(slot, anyOf: hub.find([$0], tenant: row.tenant)) }
            return hub.hasKey(slot, anyOf: hub.find(readers, tenant: row.tenant))
        }
        var news: [(slot: Int32, news: RowDelivery)] = []
        for match in matches where hub.contains(match.slot) {
            let seesNew = seesNew(match.slot)
            let seesOld = hub.hasKey(match.slot, anyOf: oldReaders)
            guard let transition = match.transition(seesOld: seesOld, seesNew: seesNew) else { continue }
            let subscription = index.subscription(match)
            if transition == .leave, !change.mayLeave(subscription, seesNew: seesNew) { continue }
            if news.last?.slot != match.slot { news.append((match.slot, RowDelivery())) }
            news[news.count - 1].news.add(subscription, transition)
        }
        for (slot, news) in news where rows.isNew(sequence, to: slot) {
            tell(news, of: &telling, sequence, slot)
        }
    }

    /// The subscriptions that a row's values find; of those who may read it, if these are fewer.
    private func matches(of row: RowVersions, only slot: Int32?, among readers: [String]) -> [SubscriptionMatch] {
        var matches: [SubscriptionMatch] = []
        if let slot {
            rows.index.forEachMatch(row, in: slot) { matches.append($0) }
            return matches
        }
        let readers = hub.find(readers, tenant: row.tenant)
        if readers.streamCount < rows.index.candidateCount(row) {
            for slot in hub.streams(withAnyOf: readers) {
                rows.index.forEachMatch(row, in: slot) { matches.append($0) }
            }
        } else {
            rows.forEachMatch(row) { matches.append($0) }
        }
        return matches
    }

    private func tell(_ news: RowDelivery, of telling: inout RowChangeEncoder, _ sequence: Int64, _ slot: Int32) {
        for part in news.parts {
            guard !telling.isOnlyCounts(part.transition) else {
                guard let record = telling.change.cause.recordId else { continue }
                rows.offer(
                    telling.counts(part.selection), of: record, to: slot,
                    dueAt: milliseconds + Int64(telling.change.windowMilliseconds))
                continue
            }
            if let record = telling.change.cause.recordId {
                rows.refresh(part.transition == .leave ? nil : telling.counts(part.selection), of: record, to: slot)
            }
            let bytes = telling.event(part.transition, part.selection, for: part.subscriptionIds)
            // Missed before: it goes out with the replay that it follows.
            if !telling.hasPlace {
                send(bytes, to: slot)
                continue
            }
            let isLive = subscriptions[Int(slot)].receive(sequence: sequence) {
                .init(sequence: sequence, collapse: 0, byteCount: bytes.count, payload: bytes)
            }
            if isLive { send(bytes, to: slot) }
        }
    }

    private func send(_ bytes: SharedBytes, to slot: Int32) {
        shard.send(bytes, to: handles[Int(slot)], collapse: 0)
        StreamMetrics.add(1, to: dependencies.metrics.deliveries)
        StreamMetrics.add(bytes.count, to: dependencies.metrics.deliveredBytes)
    }

    // MARK: The end of a window

    var wakesAt: UInt64? { rows.nextDue.map { UInt64(max(0, $0)) * 1_000_000 } }

    func woken(_ now: UInt64) {
        let now = Int64(now / 1_000_000)
        var telling = InvalidationEncoder()
        for batch in rows.coalescer.takeDue(at: now) {
            guard hub.contains(batch.stream) else { continue }
            if batch.isOverflow {
                StreamMetrics.add(1, to: dependencies.metrics.resyncs)
                let notice = StreamNotice.resync(.overflow, at: cursor(head))
                shard.send(notice, to: handles[Int(batch.stream)], collapse: 0)
            } else {
                send(telling.event(batch, at: liveCursor(of: batch.stream)), to: batch.stream)
            }
        }
        for (slot, updates) in rows.takeCounts(at: now) where hub.contains(slot) {
            send(SharedBytes(StreamNotice.engagement(updates, at: liveCursor(of: slot))), to: slot)
        }
    }

    /// Where the stream stands, if it has got all that came before; what waits for it in a replay it has not.
    private func liveCursor(of slot: Int32) -> Cursor? {
        subscriptions[Int(slot)].phase == .live ? cursor(head) : nil
    }

    // MARK: Subscriptions and scopes

    /// Replaces what a stream asked for, all of it at once.
    ///
    /// - Returns: the topics that are new.
    func replace(_ draft: SubscriptionDraft, of slot: Int32) throws(Failure) -> [String] {
        if let wanted = draft.tables {
            let counts = rows.counts(waitingFor: slot)
            try rows.replace(
                slot, tenant: hub.tenant(of: slot), with: wanted, floor: draft.replay?.through)
            // What was watched and waits for its window must not get lost because the user scrolled on.
            if !counts.isEmpty {
                send(SharedBytes(StreamNotice.engagement(counts, at: liveCursor(of: slot))), to: slot)
            }
            if let replay = draft.replay {
                for chunk in replay.chunks { shard.send(chunk, to: handles[Int(slot)], collapse: 0) }
                tellMissed(after: replay.through, to: slot)
                // What was missed has no ids of its own: now the client has all up to here, and resumes behind it.
                if let cursor = liveCursor(of: slot) {
                    shard.send(SharedBytes(SSE.place(cursor)), to: handles[Int(slot)], collapse: 0)
                }
            }
        }
        guard let topics = draft.topics else { return [] }
        let before = hub.topics(of: slot)
        hub.replaceTopics(of: slot, with: topics)
        return topics.filter { !before.contains($0) }
    }

    /// Gives each stream that has one of the keys the scope that it has now.
    func renewScopes(withAnyOf holders: Set<MembershipUpdate.Holders>) {
        var slots: Set<Int32> = []
        for holder in holders {
            hub.forEachStream(tenant: holder.tenant, key: holder.key) { slots.insert($0) }
        }
        for slot in slots.sorted() { renewScope(of: slot) }
    }

    func renewScope(of slot: Int32) {
        guard let session = sessions[Int(slot)], !session.isEnding else { return }
        let caller = dependencies.memberships.scoped(session.caller)
        guard caller.scope.keys != session.caller.scope.keys else { return }
        sessions[Int(slot)]?.opener = session.opener.speaking(for: caller)
        replaceScope(of: slot, from: session.caller.scope.keys, to: caller.scope.keys)
        shard.send(StreamNotice.scope(caller.scope.keys.sorted()), to: handles[Int(slot)], collapse: 0)
    }
}
