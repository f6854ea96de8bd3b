import MicroHTTP
import Realtime
import Values

/// Requests about an open stream, wherever it is: answered by this process, or by the replica that has it.
protocol StreamRequests: Sendable {
    /// Asks the shard of a stream. The answer comes on a thread that must not be kept waiting.
    func ask(
        _ id: String, as asker: Caller, _ kind: StreamRequest.Kind,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void)

    /// Replaces what a stream subscribed to; with a cursor, what its rows' subscriptions have missed is read from the log
    /// and sent first, so that nothing falls between.
    func replace(
        _ draft: SubscriptionDraft, of id: String, as asker: Caller,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void)

    /// Sends bytes to a stream that may be gone by now.
    func send(_ bytes: SharedBytes, to id: String, tenant: String)
}

/// The streams of this process, found by their names.
struct StreamDirectory: StreamRequests {
    private let shards: StreamShards<StreamHub>
    private let dependencies: StreamDependencies

    init(shards: StreamShards<StreamHub>, dependencies: StreamDependencies) {
        self.shards = shards
        self.dependencies = dependencies
    }

    /// Whether the name is of a stream of this process, which may be gone by now.
    func contains(_ id: String) -> Bool { StreamName(id)?.nonce == dependencies.nonce }

    func ask(
        _ id: String, as asker: Caller, _ kind: StreamRequest.Kind,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        guard let (shard, name) = find(id) else { return answer(.failure(.notFound("stream"))) }
        shard.post(.request(StreamRequest(stream: name, asker: asker, kind: kind, answer: answer)))
    }

    func replace(
        _ draft: SubscriptionDraft, of id: String, as asker: Caller,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        guard draft.lastEventID != nil, draft.tables?.isEmpty == false else {
            return ask(id, as: asker, .replace(draft), answer: answer)
        }
        ask(id, as: asker, .describe) { result in
            guard case .success(let found) = result, let caller = found.caller else { return answer(result) }
            replay(draft, of: id, as: asker, to: caller, rounds: StreamLimits.replayRoundsMax, answer)
        }
    }

    private func replay(
        _ draft: SubscriptionDraft, of id: String, as asker: Caller, to caller: Caller, rounds: Int,
        _ answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        let isAdmitted = dependencies.workers.submit {
            let reader = StreamReader(
                dependencies: dependencies, caller: caller, topics: [], tables: draft.tables ?? [])
            let replay: TableReplay
            do {
                replay = try reader.missedRows(after: draft.lastEventID)
            } catch {
                dependencies.failures.note(.replay, error)
                return answer(.failure(.tooMany))
            }
            // In the last round without the floor: the shard has delivered more than can be read in time, which is said.
            let read = draft.with(rounds > 0 ? replay : nil)
            ask(id, as: asker, .replace(read)) { result in
                if case .success(let found) = result, found.isReplayBehind {
                    return self.replay(draft, of: id, as: asker, to: caller, rounds: rounds - 1, answer)
                }
                if rounds == 0, case .success = result {
                    send(StreamNotice.resync(.overflow), to: id, tenant: asker.tenant)
                }
                answer(result)
            }
        }
        if !isAdmitted {
            dependencies.failures.note(.congestion)
            answer(.failure(.tooMany))
        }
    }

    func send(_ bytes: SharedBytes, to id: String, tenant: String) {
        guard let (shard, name) = find(id) else { return }
        shard.post(.send(bytes, to: name))
    }

    private func find(_ id: String) -> (StreamShard<StreamHub>, StreamName)? {
        guard let name = StreamName(id), name.nonce == dependencies.nonce, name.shard < shards.all.count else {
            return nil
        }
        return (shards.all[name.shard], name)
    }
}
