import Database
import Glibc
import Logging
import Realtime
import Values

@testable import MicroHTTP
@testable import Service

/// A service whose streams a simulation steps: its database, and what its start reads from it.
struct SteppedService {
    let service: TestService
    let start: ServiceStart
    fileprivate let streams: StreamDependencies

    init(_ overrides: [String: String] = [:]) throws {
        service = try TestService.start(overrides, at: TestService.morning)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let app = service.app
        start = try ServiceStart(
            app.store, settings: app.runner.settings, clock: service.clock.clock, metrics: MetricsRegistry(),
            logger: logger)
        streams = start.streams(
            app.runner.reader, start.workers(), try start.authenticator(), boards: app.boards,
            admission: StreamAdmission())
    }
}

/// The streams of one replica, without threads: the simulation decides when a shard, a worker or the mailbox continues.
/// Everything else is the service's own code, on a real database.
final class SteppedReplica {
    let dependencies: StreamDependencies
    let router: EventRouter
    let requests: ReplicaRequests
    let hubs: [StreamHub]
    private let shards: StreamShards<StreamHub>

    /// - Parameters:
    ///   - head: The newest event of the simulated log.
    ///   - publish: Stores an event for the other replicas.
    init(
        of service: SteppedService, shards count: Int = 1, clock: Clock, head: Int64,
        publish: @escaping ReplicaRequests.Publish
    ) throws {
        let (base, start) = (service.streams, service.start)
        let positions = TenantPositions(head: head, ids: base.ids)
        let reader = TransactionReader(
            store: base.reader.store, clock: clock, settings: base.reader.settings, log: base.log,
            positions: positions, reactions: base.reader.reactions, tables: base.reader.tables,
            limiter: base.reader.limiter)
        let dependencies = StreamDependencies(
            reader: reader, workers: WorkerPool(name: "stepped", threads: 0, queueMax: 100), log: base.log,
            memberships: MembershipRegistry(start.settings.tables),
            revocations: RevocationList([], seal: start.personSeal),
            admission: base.admission, metrics: base.metrics, failures: base.failures,
            authenticator: base.authenticator, tickets: base.tickets, topicKinds: base.topicKinds, live: base.live,
            tables: base.tables, withheld: base.withheld, ownStates: { _ in [] })
        self.dependencies = dependencies
        var configuration = base.settings.serverConfiguration
        configuration.shards = count
        configuration.clock = MonotonicClock { UInt64(clock.uptime() / .nanoseconds(1)) }
        let shards = try StreamShards<StreamHub>(configuration)
        self.shards = shards
        hubs = shards.all.map { StreamHub(shard: $0, dependencies: dependencies, head: head) }
        for shard in shards.all { shard.begin() }
        let mailbox = ReplicaRequests.Mailbox()
        requests = ReplicaRequests(
            directory: StreamDirectory(shards: shards, dependencies: dependencies), mailbox: mailbox,
            publish: publish, uptime: clock.uptime)
        router = EventRouter(
            shards: shards, log: base.log, positions: positions, memberships: dependencies.memberships,
            revocations: dependencies.revocations, tracer: nil, receivers: mailbox.receivers)
    }

    /// Lets a shard handle what waits for it.
    func turn(_ shard: Int = 0) { shards.all[shard].turn(hubs[shard], waiting: 0) }

    /// Lets a worker do its next job. Returns false if it has no job.
    func work() -> Bool { dependencies.workers.runNext() }

    /// Connects a client to a shard, which opens the stream at its next turn.
    ///
    /// - Parameter sendBytes: The size of the socket's buffer, for a slow client; nil for the usual size.
    func connect(
        _ caller: Caller, topics: [String] = [], lastEventID: String? = nil, shard: Int = 0, sendBytes: Int32? = nil
    ) -> SteppedClient {
        var ends: [Int32] = [-1, -1]
        precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "no sockets are left")
        if var size = sendBytes {
            setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        let opener = StreamOpener(caller: caller, topics: topics, lastEventID: lastEventID, lease: nil)
        shards.all[shard].adopt(descriptor: ends[0], context: opener)
        return SteppedClient(ends[1])
    }
}

/// The client's end of a stream. It reads only when it is asked to.
final class SteppedClient {
    private let descriptor: Int32
    private var isOpen = true
    private(set) var received: [UInt8] = []

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    func close() {
        if isOpen { Glibc.close(descriptor) }
        isOpen = false
    }

    /// Reads the bytes that have arrived.
    func read(bytesMax: Int = .max) {
        var (buffer, left) = ([UInt8](repeating: 0, count: 16_384), bytesMax)
        while isOpen, left > 0 {
            let count = recv(descriptor, &buffer, min(buffer.count, left), Int32(MSG_DONTWAIT))
            guard count > 0 else { return }
            received += buffer.prefix(count)
            left -= count
        }
    }

    /// The complete lines that have arrived.
    var lines: [Substring] {
        String(decoding: received, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    }

    /// The stream's name, from `stream:ready`.
    var streamId: String? {
        let field = "data: {\"streamId\":\""
        return lines.first { $0.hasPrefix(field) }.map { String($0.dropFirst(field.count).prefix { $0 != "\"" }) }
    }
}
