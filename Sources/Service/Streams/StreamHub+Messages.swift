import Database
import Domain
import MicroHTTP
import Realtime

extension StreamHub {
    func received(_ message: StreamMessage) {
        switch message {
        case .events(let events): deliver(events)
        case .held(let stream, let keys): learned(stream, keys)
        case .holding(let change): self.change(change)
        case .opened(let stream, let start): opened(stream, start)
        case .loaded(let stream, let chunks):
            guard isPresent(stream) else { return }
            perform(subscriptions[Int(stream.index)].loaded(chunks), on: Int32(stream.index))
        case .flushed(let stream):
            guard isPresent(stream) else { return }
            advanceReplay(Int32(stream.index))
        case .revoked(let revocation): revoke(revocation)
        case .memberships(let holders): renewScopes(holding: holders)
        case .begun(let head):
            self.head = head
            recentChanges = RecentChanges(since: head)
            for slot in sessions.indices where sessions[slot]?.isEnding == false { end(Int32(slot), .unavailable) }
        case .states(let states): deliver(states)
        case .request(let request): request.answer(answer(request))
        case .send(let bytes, let name):
            guard let slot = slot(of: name) else { return }
            shard.send(bytes, to: handles[Int(slot)], collapse: 0)
        }
    }

    // MARK: Events

    private func deliver(_ events: [EncodedEvent]) {
        var rest = events[...]
        while let first = rest.first {
            // The log's order is the stream's order, so what is told alike is told up to the next change of a row.
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
        subscriptions.withUnsafeMutableBufferPointer { subscriptions in
            for encoded in events {
                let event = encoded.event
                // A repeated batch after a retry must not be told twice.
                guard event.sequence > head else { continue }
                head = event.sequence
                let size = encoded.bytes.count
                hub.forEachMatch(event) { slot in
                    let isLive = subscriptions[Int(slot)].receive(sequence: event.sequence) {
                        .init(
                            sequence: event.sequence, collapse: event.collapse, byteCount: size, payload: encoded.bytes)
                    }
                    guard isLive else { return }
                    shard.send(encoded.bytes, to: handles[Int(slot)], collapse: event.collapse)
                    deliveries += 1
                    bytes += size
                }
            }
        }
        StreamMetrics.add(deliveries, to: directory.metrics.deliveries)
        StreamMetrics.add(bytes, to: directory.metrics.deliveredBytes)
    }

    private func deliver(_ states: [EncodedState]) {
        var deliveries = 0
        for encoded in states {
            hub.forEachStream(tenant: encoded.state.tenant, key: encoded.state.key) { slot in
                if subscriptions[Int(slot)].phase == .opening {
                    early[slot, default: []].removeAll { $0.state.collapse == encoded.state.collapse }
                    early[slot, default: []].append(encoded)
                } else {
                    shard.send(encoded.bytes, to: handles[Int(slot)], collapse: encoded.state.collapse)
                    deliveries += 1
                }
            }
        }
        StreamMetrics.add(deliveries, to: directory.metrics.deliveries)
    }

    // MARK: Opening and replay

    private func opened(_ stream: StreamHandle, _ start: StreamStart?) {
        let slot = Int32(stream.index)
        guard isPresent(stream), sessions[Int(slot)]?.isEnding == false else { return }
        guard let start else { return end(slot, .unavailable) }
        if start.isResumed { StreamMetrics.add(1, to: directory.metrics.replays) }
        StreamMetrics.add(start.replayed, to: directory.metrics.replayedEvents)
        if start.resync != nil { StreamMetrics.add(1, to: directory.metrics.resyncs) }
        perform(subscriptions[Int(slot)].opened(position: start.position, chunks: start.chunks), on: slot)
        for encoded in early.removeValue(forKey: slot) ?? [] {
            shard.send(encoded.bytes, to: handles[Int(slot)], collapse: encoded.state.collapse)
        }
    }

    /// Sends the next piece of a replay, if the one before it has left the process.
    func advanceReplay(_ slot: Int32) {
        guard replaying.contains(slot), shard.waitingBytes(of: handles[Int(slot)]) == 0 else { return }
        replaying.remove(slot)
        perform(subscriptions[Int(slot)].drained(), on: slot)
    }

    private func perform(_ actions: [Subscription<SharedBytes>.Action], on slot: Int32) {
        let handle = handles[Int(slot)]
        var isReading = false
        for action in actions {
            switch action {
            case .send(let bytes, let collapse): shard.send(bytes, to: handle, collapse: collapse)
            case .resync(let reason, let position):
                StreamMetrics.add(1, to: directory.metrics.resyncs)
                shard.send(StreamNotice.resync(reason, at: cursor(position)), to: handle, collapse: 0)
            case .load(let after, let through):
                isReading = true
                load(slot, after: after, through: through)
            }
        }
        guard !isReading, subscriptions[Int(slot)].phase == .replaying else { return }
        // Asked again once this batch has been flushed; if the socket is full by then, at each tick.
        replaying.insert(slot)
        shard.post(.flushed(handle))
    }

    private func load(_ slot: Int32, after: Int64, through: Int64) {
        guard let session = sessions[Int(slot)] else { return }
        let reader = StreamReader(
            surroundings: surroundings, caller: session.caller, topics: hub.topics(of: slot),
            tables: tables.index.subscriptions(of: slot), held: Set(hub.scope(of: slot)))
        let (shard, handle) = (shard, handles[Int(slot)])
        let isAdmitted = surroundings.workers.submit {
            let chunks = try? reader.chunks(after: after, through: through)
            shard.post(.loaded(handle, chunks))
        }
        if !isAdmitted { shard.post(.loaded(handle, nil)) }
    }

    // MARK: Requests about a stream

    private func slot(of name: StreamName) -> Int32? {
        guard name.nonce == directory.nonce, name.index < sessions.count, name.names(handles[name.index]),
            sessions[name.index]?.isEnding == false
        else { return nil }
        return Int32(name.index)
    }

    private func answer(_ request: StreamRequest) -> Result<StreamDescription, Failure> {
        guard let slot = slot(of: request.stream), let session = sessions[Int(slot)],
            session.caller.tenant == request.asker.tenant, session.caller.userId == request.asker.userId
        else { return .failure(.notFound("stream")) }
        switch request.kind {
        case .describe: return .success(description(of: slot, session))
        case .replace(let wishes):
            if let replay = wishes.replay, !recentChanges.reach(replay.through) {
                var behind = description(of: slot, session)
                behind.isBehind = head
                return .success(behind)
            }
            do throws(Failure) {
                let added = try replace(wishes, of: slot)
                var description = description(of: slot, session)
                description.addedTopics = added
                return .success(description)
            } catch {
                return .failure(error)
            }
        case .renew(let caller):
            renew(slot, caller)
            // It may have been revoked since it was verified, here or on another replica.
            if directory.revocations.isRevoked(caller) { end(slot, .revoked) }
            return .success(StreamDescription())
        }
    }

    private func description(of slot: Int32, _ session: Session) -> StreamDescription {
        StreamDescription(
            topics: hub.topics(of: slot), tables: tables.index.subscriptions(of: slot), caller: session.caller)
    }

    private func renew(_ slot: Int32, _ caller: Caller) {
        let caller = surroundings.tables.scoped(caller)
        let known = sessions[Int(slot)]?.caller.scope.keys ?? []
        let isScopeNew = known != caller.scope.keys
        let lease = sessions[Int(slot)]?.opener.lease
        sessions[Int(slot)]?.opener = StreamOpener(caller: caller, topics: [], lastEventID: nil, lease: lease)
        sessions[Int(slot)]?.lifetime.renew(expiresAt: caller.expiresAt.microseconds)
        deadlines[Int(slot)] = sessions[Int(slot)]?.lifetime.nextStepAt ?? .max
        guard isScopeNew else { return }
        replaceScope(of: slot, from: known, to: caller.scope.keys)
        shard.send(StreamNotice.scope(caller.scope.keys.sorted()), to: handles[Int(slot)], collapse: 0)
    }

    // MARK: Revocations

    /// Looks at every stream of the shard: revocations are rare, and an index by token and session would cost each
    /// idle stream memory for their sake.
    private func revoke(_ revocation: Revocation) {
        for slot in sessions.indices {
            guard let session = sessions[slot], !session.isEnding, revocation.covers(session.caller) else { continue }
            end(Int32(slot), .revoked)
        }
    }
}
