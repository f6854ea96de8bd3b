import MicroHTTP
import Realtime
import Values

/// Requests about an open stream, answered by this process or by the replica that owns the stream.
protocol StreamRequests: Sendable {
    /// Sends a request to the shard of a stream. The answer arrives on a thread that must not block.
    ///
    /// If subscriptions are replaced with a cursor, the changes that the new subscriptions missed are first read from
    /// the log and sent, so that nothing is lost in between.
    func ask(_ id: String, as asker: Caller, _ kind: StreamRequest.Kind, answer: @escaping StreamRequest.Completion)

    /// Sends bytes to a stream, which may have ended by now.
    func send(_ bytes: SharedBytes, to id: String, tenant: ID<Tenant>)
}

/// The streams of this process, found by their names.
struct StreamDirectory: StreamRequests {
    let shards: StreamShards<StreamHub>
    let dependencies: StreamDependencies

    /// Whether the name belongs to a stream of this process, which may have ended by now.
    func contains(_ id: String) -> Bool { StreamName(id)?.nonce == dependencies.names.nonce }

    func ask(_ id: String, as asker: Caller, _ kind: StreamRequest.Kind, answer: @escaping StreamRequest.Completion) {
        ask(id, as: asker, kind, until: nil, answer: answer)
    }

    /// - Parameter until: The time until which the request may be performed; nil for as long as its requester waits.
    func ask(
        _ id: String, as asker: Caller, _ kind: StreamRequest.Kind, until: Timestamp?,
        answer: @escaping StreamRequest.Completion
    ) {
        guard let (shard, place) = find(id) else { return answer(.failure(.notFound("stream"))) }
        let request = StreamRequest(stream: place, asker: asker, kind: kind, until: until, answer: answer)
        guard case .replace(let draft) = kind, draft.lastEventID != nil, draft.tables?.isEmpty == false else {
            return shard.post(.request(request))
        }
        let description = request.asking(.describe) { result in
            guard case .success(let found) = result else { return answer(result) }
            replay(draft, for: request, on: shard, found, rounds: StreamLimits.replayRoundsMax)
        }
        shard.post(.request(description))
    }

    /// Reads the missed changes up to the last event that the shard had handled, by the keys that the stream had then.
    /// If the log was read further, changes that follow a new key would be left out.
    private func replay(
        _ draft: SubscriptionDraft, for request: StreamRequest, on shard: StreamShard<StreamHub>,
        _ stream: StreamDescription, rounds: Int
    ) {
        guard let caller = stream.caller else { return request.answer(.failure(.notFound("stream"))) }
        let isAdmitted = dependencies.workers.submit(of: caller.workOwner) {
            let reader = StreamReader(
                dependencies: dependencies, ids: dependencies.ids, caller: caller, topics: [],
                tables: draft.tables ?? [])
            var draft = draft
            do {
                let replay = try reader.missedRows(after: draft.lastEventID, through: stream.head)
                // The last round uses no replay: the shard has delivered more than can be read in time, and the stream
                // is asked to resync.
                draft.replay = rounds > 0 ? replay : nil
            } catch {
                dependencies.failures.note(.replay, error)
                return request.answer(.failure(.tooMany))
            }
            let replacement = request.asking(.replace(draft)) { [draft] result in
                if case .success(let found) = result, found.isReplayBehind {
                    return self.replay(draft, for: request, on: shard, found, rounds: rounds - 1)
                }
                if rounds == 0, case .success = result {
                    let notice = SharedBytes(StreamNotice.resync(.overflow, at: nil))
                    shard.post(.send(notice, to: request.stream))
                }
                request.answer(result)
            }
            shard.post(.request(replacement))
        }
        if !isAdmitted {
            dependencies.failures.note(.congestion)
            request.answer(.failure(.tooMany))
        }
    }

    func send(_ bytes: SharedBytes, to id: String, tenant _: ID<Tenant>) {
        guard let (shard, place) = find(id) else { return }
        shard.post(.send(bytes, to: place))
    }

    private func find(_ id: String) -> (StreamShard<StreamHub>, StreamNames.Location)? {
        guard let name = StreamName(id), let place = dependencies.names.location(of: name),
            place.shard < shards.all.count
        else { return nil }
        return (shards.all[place.shard], place)
    }
}
