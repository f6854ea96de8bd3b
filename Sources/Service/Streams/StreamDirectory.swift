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
    func publish(_ events: [StreamEvent]) {
        guard !events.isEmpty else { return }
        let epoch = surroundings.epoch
        let encoded = events.map { EncodedEvent($0, epoch: epoch) }
        lock.withLock {
            for shard in shards { shard.post(.events(encoded)) }
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
        answer: @escaping @Sendable (Result<[String], Failure>) -> Void
    ) {
        if let replicas = elsewhere(id) { return replicas.ask(id, as: asker, kind, answer: answer) }
        do throws(Failure) {
            let (shard, name) = try find(id)
            shard.post(.request(StreamRequest(stream: name, asker: asker, kind: kind, answer: answer)))
        } catch {
            answer(.failure(error))
        }
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
