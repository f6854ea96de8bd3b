import Database
import Domain
import Foundation
import MicroHTTP
import Realtime

/// All shards of this process: events go in here, and questions about single streams.
///
/// `@unchecked Sendable`: `shards` is only touched while `lock` is held.
final class StreamDirectory: @unchecked Sendable {
    let surroundings: StreamSurroundings
    let metrics = StreamMetrics()
    let admission = StreamAdmission()
    let revocations: RevocationList
    /// Tells this process's stream names from those of the one before it.
    let nonce = String(UInt32.random(in: .min ... .max), radix: 36)
    /// Guards `shards`, and the order in which events are posted to them: with it released between two shards, two
    /// publishers could post in different orders.
    private let lock = NSLock()
    private var shards: [StreamShard<StreamHub>] = []
    /// Nil where this process is the only one.
    private var replicas: ReplicaMessages?

    init(surroundings: StreamSurroundings, revocations: RevocationList) {
        self.surroundings = surroundings
        self.revocations = revocations
    }

    /// Other replicas hold streams too: questions about those go to them.
    func setReplicas(_ replicas: ReplicaMessages) {
        guard surroundings.store.engine == .postgreSQL else { return }
        lock.withLock { self.replicas = replicas }
    }

    /// For `Server`: makes the program of one shard.
    ///
    /// - Parameter head: the newest event of the log when the service starts; what is published first must follow it.
    func makeProgram(on shard: StreamShard<StreamHub>, head: Int64) -> StreamHub {
        lock.withLock { shards.append(shard) }
        return StreamHub(shard: shard, directory: self, head: head)
    }

    /// Brings committed events to every shard. Call in commit order, from any thread; each event is encoded once.
    func publish(_ events: some Collection<StreamEvent>) {
        guard !events.isEmpty else { return }
        let epoch = surroundings.epoch
        let encoded = events.map { EncodedEvent($0, epoch: epoch) }
        let pieces = Self.pieces(of: encoded).map(StreamMessage.events)
        lock.withLock {
            for shard in shards { shard.post(contentsOf: pieces) }
        }
    }

    /// The events in pieces between which a shard sends what is queued.
    static func pieces(of events: [EncodedEvent]) -> [[EncodedEvent]] {
        var pieces: [[EncodedEvent]] = []
        var (piece, bytes): ([EncodedEvent], Int) = ([], 0)
        for encoded in events {
            let size = encoded.event.data.count
            if !piece.isEmpty, bytes + size > StreamLimits.pieceBytesMax {
                pieces.append(piece)
                (piece, bytes) = ([], 0)
            }
            piece.append(encoded)
            bytes += size
        }
        return pieces + [piece]
    }

    /// Gives streams the scopes that they have after memberships have changed.
    func renewScopes(holding holders: Set<MembershipUpdate.Holders>) {
        guard !holders.isEmpty else { return }
        lock.withLock {
            for shard in shards { shard.post(.memberships(holders)) }
        }
    }

    /// Gives the streams of a user a key that a row has given, or takes it.
    func change(_ change: HeldChange) {
        lock.withLock {
            for shard in shards { shard.post(.holding(change)) }
        }
    }

    /// Sends states to all streams of those they are about, on this replica. They are no rows of the log: they have no
    /// id, and are not replayed.
    func tell(_ states: [OwnState]) {
        let encoded = states.map { EncodedState($0) }
        for shard in lock.withLock({ shards }) { shard.post(.states(encoded)) }
    }

    /// Closes the streams of a revoked token, session or user. The list must hold the revocation already.
    func close(_ revocation: Revocation) {
        for shard in lock.withLock({ shards }) { shard.post(.revoked(revocation)) }
    }

    /// Ends all streams, which resume, or are told that they cannot: what they missed was not kept. What is published next
    /// follows the given event.
    func closeAll(head: Int64) {
        for shard in lock.withLock({ shards }) { shard.post(.begun(head: head)) }
    }

    /// Whether the name is of a stream of this process, which may be gone by now.
    func holds(_ id: String) -> Bool { StreamName(id)?.nonce == nonce }

    /// Asks the shard of a stream, on whichever replica. The answer comes on a thread that must not be held.
    func ask(
        _ id: String, as asker: Caller, _ kind: StreamRequest.Kind,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        if let replicas = elsewhere(id) { return replicas.ask(id, as: asker, kind, answer: answer) }
        do throws(Failure) {
            let (shard, name) = try find(id)
            shard.post(.request(StreamRequest(stream: name, asker: asker, kind: kind, answer: answer)))
        } catch {
            answer(.failure(error))
        }
    }

    /// Replaces what a stream asked for, on whichever replica; with a cursor, what its tables' subscriptions have missed is
    /// read from the log and told first, so that nothing falls between.
    func replace(
        _ wishes: SubscriptionWishes, of id: String, as asker: Caller,
        answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        let isMissing = wishes.lastEventID != nil && wishes.tables?.isEmpty == false
        guard elsewhere(id) == nil, isMissing else { return ask(id, as: asker, .replace(wishes), answer: answer) }
        ask(id, as: asker, .describe) { [self] result in
            guard case .success(let found) = result, let caller = found.caller else { return answer(result) }
            replay(wishes, of: id, as: asker, to: caller, rounds: StreamLimits.replayRoundsMax, answer)
        }
    }

    private func replay(
        _ wishes: SubscriptionWishes, of id: String, as asker: Caller, to caller: Caller, rounds: Int,
        _ answer: @escaping @Sendable (Result<StreamDescription, Failure>) -> Void
    ) {
        let isAdmitted = surroundings.workers.submit { [self] in
            let reader = StreamReader(
                surroundings: surroundings, caller: caller, topics: [], tables: wishes.tables ?? [])
            guard let replay = try? reader.missedRows(after: wishes.lastEventID) else {
                return answer(.failure(.tooMany))
            }
            // In the last round without the floor: the shard has told more than can be read in time, and that is said.
            let told = wishes.with(rounds > 0 ? replay : nil)
            ask(id, as: asker, .replace(told)) { [self] result in
                if case .success(let found) = result, found.isBehind != nil {
                    return self.replay(wishes, of: id, as: asker, to: caller, rounds: rounds - 1, answer)
                }
                if rounds == 0, case .success = result {
                    try? send(StreamNotice.resync(.overflow), to: id, tenant: asker.tenant)
                }
                answer(result)
            }
        }
        if !isAdmitted { answer(.failure(.tooMany)) }
    }

    /// Sends bytes to a stream that may be gone by now.
    func send(_ bytes: SharedBytes, to id: String, tenant: String) throws {
        if let replicas = elsewhere(id) { return replicas.send(bytes, to: id, tenant: tenant) }
        let (shard, name) = try find(id)
        shard.post(.send(bytes, to: name))
    }

    /// The way to the replica that holds a stream, if it is not this one.
    private func elsewhere(_ id: String) -> ReplicaMessages? {
        guard let name = StreamName(id), name.nonce != nonce else { return nil }
        return lock.withLock { replicas }
    }

    private func find(_ id: String) throws(Failure) -> (StreamShard<StreamHub>, StreamName) {
        guard let name = StreamName(id), name.nonce == nonce else { throw .notFound("stream") }
        let shard = lock.withLock { name.shard < shards.count ? shards[name.shard] : nil }
        guard let shard else { throw .notFound("stream") }
        return (shard, name)
    }
}
