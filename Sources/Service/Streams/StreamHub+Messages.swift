import MicroHTTP
import Realtime
import Rows
import Values

extension StreamHub {
    func received(_ message: StreamMessage) {
        switch message {
        case .events(let events): deliver(events)
        case .keysRead(let stream, let result): keysRead(stream, result)
        case .grantChanged(let change): apply(change)
        case .opened(let stream, let result): opened(stream, result)
        case .loaded(let stream, let result): loaded(stream, result)
        case .flushed(let stream):
            guard isPresent(stream) else { return }
            advanceReplay(Int32(stream.index))
        case .revoked(let revocation): revoke(revocation)
        case .memberships(let holders, let memberships):
            self.memberships = memberships
            renewScopes(withAnyOf: holders)
        case .restart(let head, let ids, let memberships):
            self.head = head
            self.ids = ids
            self.memberships = memberships
            recentChanges = RecentChanges(since: head)
            for slot in sessions.indices where sessions[slot]?.isEnding == false { end(Int32(slot), .unavailable) }
        case .states(let states): deliver(states)
        case .request(let request): request.answer(answer(request))
        case .send(let bytes, let place):
            guard let slot = slot(at: place) else { return }
            sendChunk(bytes, to: slot)
        case .endWindows: endWindows(dueAt: .max)
        }
    }

    // MARK: Events

    private func deliver(_ events: [EncodedEvent]) {
        var rest = events[...]
        while let first = rest.first {
            // The log's order is the stream's order. Events that all streams receive alike are delivered up to the next
            // change of a row.
            let alike = rest.prefix { !$0.isChange }
            deliverAlike(alike)
            rest = rest[alike.endIndex...]
            guard alike.isEmpty else { continue }
            rest = rest.dropFirst()
            guard first.event.sequence > head else { continue }
            head = first.event.sequence
            deliver(first)
        }
    }

    private func deliverAlike(_ events: ArraySlice<EncodedEvent>) {
        var (deliveries, bytes) = (0, 0)
        let shard = shard
        withStreams { subscriptions, figures in
            for encoded in events {
                let event = encoded.event
                // A batch that a retry repeats must not be delivered twice.
                guard event.sequence > head else { continue }
                head = event.sequence
                let before = deliveries
                var made: SharedBytes?
                hub.forEachMatch(event) { slot in
                    let payload = made ?? encoded.bytes
                    made = payload
                    let size = payload.count
                    let isLive = subscriptions[Int(slot)].receive(sequence: event.sequence) {
                        .init(
                            sequence: event.sequence, collapse: event.collapse, byteCount: size, payload: payload)
                    }
                    guard isLive else { return }
                    figures[Int(slot)].add(1, bytes: size)
                    shard.send(payload, to: handles[Int(slot)], collapse: event.collapse)
                    deliveries += 1
                    bytes += size
                }
                if deliveries > before { endDelivery(of: encoded, to: deliveries - before) }
            }
        }
        StreamMetrics.add(deliveries, to: dependencies.metrics.deliveries)
        StreamMetrics.add(bytes, to: dependencies.metrics.deliveredBytes)
    }

    /// Ends the span of a traced delivery, now that it waits at the sockets of its streams. Each shard has its own
    /// span.
    func endDelivery(of encoded: EncodedEvent, to streams: Int) {
        guard let span = encoded.span?.beginSibling() else { return }
        span.end(
            "deliver \(encoded.event.name)", .producer,
            attributes: [
                "bellhop.event.id": .text(encoded.cursor.text), "bellhop.streams": .number(streams),
                "bellhop.tenant": .text(encoded.event.tenant.text),
            ])
    }

    /// Gives access to the streams' replay states and figures, without array checks for each stream and event.
    private func withStreams(
        _ body: (
            UnsafeMutableBufferPointer<StreamReplay<SharedBytes>>, UnsafeMutableBufferPointer<StreamFigures>
        ) -> Void
    ) {
        subscriptions.withUnsafeMutableBufferPointer { subscriptions in
            figures.withUnsafeMutableBufferPointer { figures in body(subscriptions, figures) }
        }
    }

    private func deliver(_ states: [EncodedState]) {
        var deliveries = 0
        for encoded in states {
            hub.forEachStream(tenant: encoded.state.tenant, key: encoded.state.key) { slot in
                if subscriptions[Int(slot)].phase == .opening {
                    early[slot, default: []].removeAll { $0.state.collapse == encoded.state.collapse }
                    early[slot, default: []].append(encoded)
                } else {
                    send(encoded.bytes, to: slot, collapse: encoded.state.collapse)
                    deliveries += 1
                }
            }
        }
        StreamMetrics.add(deliveries, to: dependencies.metrics.deliveries)
    }

    // MARK: Opening and replay

    private func opened(_ stream: StreamHandle, _ result: Result<StreamStart, any Error>) {
        let slot = Int32(stream.index)
        guard isPresent(stream), sessions[Int(slot)]?.isEnding == false else { return }
        let start: StreamStart
        switch result {
        case .success(let read): start = read
        case .failure(let error): return fail(slot, .opening, error)
        }
        if start.isResumed { StreamMetrics.add(1, to: dependencies.metrics.replays) }
        StreamMetrics.add(start.replayed, to: dependencies.metrics.replayedEvents)
        if start.resync != nil { StreamMetrics.add(1, to: dependencies.metrics.resyncs) }
        perform(subscriptions[Int(slot)].opened(position: start.position, chunks: start.chunks), on: slot)
        for encoded in early.removeValue(forKey: slot) ?? [] {
            send(encoded.bytes, to: slot, collapse: encoded.state.collapse)
        }
    }

    /// Sends the next piece of a replay, if the previous one has left the process.
    func advanceReplay(_ slot: Int32) {
        guard replaying.contains(slot), shard.waitingBytes(of: handles[Int(slot)]) == 0 else { return }
        replaying.remove(slot)
        perform(subscriptions[Int(slot)].drained(), on: slot)
    }

    private func perform(_ actions: [StreamReplay<SharedBytes>.Action], on slot: Int32) {
        let handle = handles[Int(slot)]
        var isReading = false
        for action in actions {
            switch action {
            case .send(let bytes, let collapse): sendChunk(bytes, to: slot, collapse: collapse)
            case .resync(let reason, let position):
                StreamMetrics.add(1, to: dependencies.metrics.resyncs)
                notify(slot, StreamNotice.resync(reason, at: cursor(position, of: slot)))
            case .load(let after, let through):
                isReading = true
                load(slot, after: after, through: through)
            }
        }
        guard !isReading, subscriptions[Int(slot)].phase == .replaying else { return }
        // Retried after this batch has been flushed. If the socket is full then, it is retried at each tick.
        replaying.insert(slot)
        shard.post(.flushed(handle))
    }

    private func load(_ slot: Int32, after: Int64, through: Int64) {
        guard let session = sessions[Int(slot)] else { return }
        let reader = StreamReader(
            dependencies: dependencies, ids: ids, caller: session.caller, topics: hub.topics(of: slot),
            tables: rows.index.subscriptions(of: slot), keys: Set(hub.scope(of: slot)))
        let (shard, handle) = (shard, handles[Int(slot)])
        let isAdmitted = dependencies.workers.submit(of: session.caller.workOwner) {
            shard.post(.loaded(handle, Result { try reader.chunks(after: after, through: through) }))
        }
        if !isAdmitted {
            dependencies.failures.note(.congestion)
            shard.post(.loaded(handle, .success(nil)))
        }
    }

    /// Handles a read of missed events. A failed read, or one above the replay limit, is a gap: the client is asked to
    /// resync.
    private func loaded(_ stream: StreamHandle, _ result: Result<[SharedBytes]?, any Error>) {
        guard isPresent(stream) else { return }
        var chunks: [SharedBytes]?
        switch result {
        case .success(let read): chunks = read
        case .failure(let error): dependencies.failures.note(.replay, error)
        }
        perform(subscriptions[Int(stream.index)].loaded(chunks), on: Int32(stream.index))
    }

    // MARK: Requests about a stream

    private func slot(at place: StreamNames.Location) -> Int32? {
        guard place.slot < sessions.count, sessions[place.slot]?.isEnding == false,
            place == StreamNames.Location(handles[place.slot])
        else { return nil }
        return Int32(place.slot)
    }

    private func answer(_ request: StreamRequest) -> Result<StreamDescription, Failure> {
        guard let slot = slot(at: request.stream), let session = sessions[Int(slot)],
            session.caller.tenant == request.asker.tenant, session.caller.userId == request.asker.userId
        else { return .failure(.notFound("stream")) }
        if let until = request.until, dependencies.now >= until {
            dependencies.failures.note(.late, StreamRequest.late)
            return .failure(StreamRequest.late)
        }
        switch request.kind {
        case .describe: return .success(description(of: slot, session))
        case .replace(let draft):
            if let replay = draft.replay, !recentChanges.reach(replay.through) {
                var behind = description(of: slot, session)
                behind.isReplayBehind = true
                return .success(behind)
            }
            return Result { () throws(Failure) in
                let added = try replace(draft, of: slot)
                var description = description(of: slot, session)
                description.addedTopics = added
                return description
            }
        case .renew(let caller):
            renew(slot, session, caller)
            // It may have been revoked since it was verified, here or on another replica.
            if dependencies.revocations.isRevoked(caller) { end(slot, .revoked) }
            return .success(StreamDescription())
        }
    }

    private func description(of slot: Int32, _ session: Session) -> StreamDescription {
        StreamDescription(
            topics: hub.topics(of: slot), tables: rows.index.subscriptions(of: slot), figures: figures[Int(slot)],
            waitingBytes: shard.waitingBytes(of: handles[Int(slot)]), caller: session.caller, head: head)
    }

    private func renew(_ slot: Int32, _ session: Session, _ caller: Caller) {
        let caller = scoped(caller)
        sessions[Int(slot)]?.opener = StreamOpener(
            caller: caller, topics: [], lastEventID: nil, lease: session.opener.lease)
        sessions[Int(slot)]?.lifetime.renew(expiresAt: caller.expiresAt.microseconds)
        deadlines[Int(slot)] = sessions[Int(slot)]?.lifetime.nextStepAt ?? .max
        replaceScope(of: slot, from: session.caller, to: caller)
    }

    // MARK: Revocations

    /// Checks every stream of the shard. Revocations are rare, and an index by token and session would cost memory for
    /// each idle stream.
    private func revoke(_ revocation: Revocation) {
        let seal = dependencies.revocations.seal
        for slot in sessions.indices {
            guard let session = sessions[slot], !session.isEnding, revocation.covers(session.caller, seal) else {
                continue
            }
            end(Int32(slot), .revoked)
        }
    }
}
