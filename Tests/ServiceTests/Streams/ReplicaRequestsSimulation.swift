import Database
import MicroHTTP
import Realtime
import Rows
import TestSupport
import Threads
import Values

@testable import Service

/// Replicas that ask one another about their streams, under a seeded schedule of requests, writes that fail or whose
/// outcome is unknown, events that arrive late, threads that stand still, clocks that differ, streams that end, and
/// replicas that are killed or miss events.
///
/// Requests, directory, hub, shards and workers are the real ones. The log, the time and the threads are simulated.
///
/// Invariants: every request is answered once. A request that was reported as failed is not performed afterwards, and
/// no request is performed twice. A success reports the state after the request. A failure has a reason: the stream is
/// not there, its replica did not answer in time, or the request could not be stored. Once nothing disturbs the
/// replicas, each reaches every stream. Bytes that are sent to a stream arrive in order, and at most once.
final class ReplicaRequestsSimulation {
    private final class Ask: Sendable {
        let number: Int
        let replica: Int
        let stream: String
        let isOwner: Bool
        let kind: StreamRequest.Kind
        let askedAt: Duration
        let answers = Locked([Result<StreamDescription, Failure>]())

        init(
            _ number: Int, through replica: Int, about stream: String, isOwner: Bool, _ kind: StreamRequest.Kind,
            at now: Duration
        ) {
            (self.number, self.replica, self.stream, self.isOwner) = (number, replica, stream, isOwner)
            (self.kind, askedAt) = (kind, now)
        }

        var isFailed: Bool { answers.withLock { $0.contains { (try? $0.get()) == nil } } }
    }

    private struct Write {
        let name: StaticString
        let tenant: ID<Tenant>
        let data: [UInt8]
        let completion: @Sendable (Result<Void, any Error>) -> Void
        /// The request that it relays; nil for an answer, and for bytes.
        let ask: Int?
    }

    struct Stream {
        let id: String
        let name: String
        let user: ID<User>
        let client: SteppedClient
        /// The last requests that it was seen to have performed: for topics, and for a token; 0 if it has performed no
        /// request.
        var held = [0, 0]
        var performed: Set<Int> = [0]
        var isOpen = true
    }

    /// The outcome of a write.
    enum Outcome: CaseIterable {
        case stored
        case refused
        /// The database does not answer the commit.
        case unknownStored
        case unknownLost
    }

    private struct Replica {
        let parts: SteppedReplica
        /// How many entries of the log it has received.
        var read: Int
        var isAlive = true
        /// Its stream, which has slot 0; nil before it has opened one.
        var stream: Stream?
    }

    /// What the callbacks of the service change.
    private struct Shared {
        var uptime = Duration.zero
        /// The differences of the replicas' clocks.
        var skews: [Duration] = []
        var writes: [[Write]] = []
        /// The request that is being made.
        var asking: Int?
    }

    private static let users: [ID<User>] = ["ada", "ben"]
    private static let replicasMax = 4
    /// The greatest difference between two clocks. `ReplicaRequests` allows for it.
    private static let skewMax = Duration.milliseconds(500)
    /// A request may be late after this time, less the difference between the clocks.
    private static let lifetime = Duration.seconds(2)
    private static let begin = Timestamp(rfc3339: TestService.morning)!

    private let schedule: Schedule
    private let service: SteppedService
    private let shared = Locked(Shared())
    private var replicas: [Replica] = []
    private var log: [StreamEvent] = []
    private var asks: [Ask] = []
    /// Requests whose write was reported as failed.
    private var unstored: Set<Int> = []
    private var ended: [Stream] = []
    private var probes = 0
    /// The violated invariant.
    private(set) var found: String?

    /// Creates two replicas, each with a stream.
    init(_ schedule: Schedule, _ service: SteppedService) throws {
        (self.schedule, self.service) = (schedule, service)
        for _ in 0..<2 { try startReplica() }
    }

    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule, _ service: SteppedService) -> String? {
        do {
            let simulation = try ReplicaRequestsSimulation(schedule, service)
            try simulation.run()
            return simulation.found
        } catch {
            return "\(error)"
        }
    }

    private func run() throws {
        for _ in 0..<schedule.count(15...60) where found == nil {
            schedule.step()
            try act()
            check()
        }
        schedule.step()
        if found == nil { settle() }
        if found == nil { reachAll() }
    }

    private var uptime: Duration { shared.withLock { $0.uptime } }

    private func number(_ bound: Int) -> Int { schedule.number(bound) }

    // MARK: Steps

    private func act() throws {
        let index = number(replicas.count)
        switch number(24) {
        case 0...4: ask(through: index)
        case 5: probe(through: index)
        case 6...8: commit(index, outcome: number(8) > 3 ? .stored : Outcome.allCases[number(4)])
        case 9, 10: deliver(index, 1 + number(4))
        case 11, 12: handle(index)
        case 13, 14: turn(index)
        case 15: _ = replicas[index].isAlive && replicas[index].parts.work()
        case 16...19: goOn(index)
        case 20, 21: pass(.milliseconds(100 * (1 + number(20))))
        case 22: shared.withLock { $0.skews[index] = .milliseconds(125 * (number(5) - 2)) }
        default: try disturb(index)
        }
    }

    private func disturb(_ index: Int) throws {
        switch number(5) {
        case 0: kill(index)
        case 1: if replicas.count < Self.replicasMax { try startReplica() }
        case 2: miss(index)
        case 3: try openStream(index)
        default: disconnect(index)
        }
    }

    /// Starts a replica, with a stream.
    private func startReplica() throws {
        let index = replicas.count
        shared.withLock {
            $0.skews.append(.zero)
            $0.writes.append([])
        }
        let clock = Clock(
            now: { [shared] in
                let passed = shared.withLock { $0.uptime + $0.skews[index] }
                return Timestamp(microseconds: Self.begin.microseconds + Int64(passed / .microseconds(1)))
            },
            uptime: { [shared] in shared.withLock { $0.uptime } })
        let parts = try SteppedReplica(of: service, clock: clock, head: service.start.head) {
            [shared] name, tenant, data, completion in
            shared.withLock {
                let write = Write(name: name, tenant: tenant, data: data, completion: completion, ask: $0.asking)
                $0.writes[index].append(write)
            }
        }
        replicas.append(Replica(parts: parts, read: log.count))
        schedule.tell("replica \(index) starts")
        try openStream(index)
    }

    private func caller(_ user: ID<User>, keys: Set<String> = []) -> Caller {
        Caller(
            tenant: "default", userId: user, role: "", isService: false,
            scope: Scope(tenant: "default", keys: keys.union(["user:\(user)", "everyone"])))
    }

    /// The stream of a replica.
    func stream(_ index: Int) throws -> Stream { try replicas[index].stream.required("stream") }

    private func openStream(_ index: Int) throws {
        let parts = replicas[index].parts
        guard replicas[index].isAlive, replicas[index].stream?.isOpen != true else { return }
        turn(index)
        let user = Self.users[index % 2]
        let client = parts.connect(caller(user))
        repeat { parts.turn() } while parts.work()
        client.read()
        if let old = replicas[index].stream { ended.append(old) }
        guard let id = client.streamId else { throw Failure(.invalid, "stream.unopened", "a stream did not open") }
        replicas[index].stream = Stream(
            id: id, name: "the stream of \(user) on replica \(index)", user: user, client: client)
        schedule.tell("\(user) opens a stream on replica \(index)")
    }

    private func kill(_ index: Int) {
        guard replicas.count(where: \.isAlive) > 1 else { return }
        replicas[index].isAlive = false
        replicas[index].stream?.isOpen = false
        shared.withLock { $0.writes[index] = [] }
        schedule.tell("replica \(index) is killed")
    }

    /// Lets a replica miss events of the log, so that it ends its streams.
    private func miss(_ index: Int) {
        guard replicas[index].isAlive, replicas[index].read < log.count else { return }
        replicas[index].read = log.count
        replicas[index].parts.router.restartStreams(after: service.start.head + Int64(log.count))
        schedule.tell("replica \(index) misses events")
    }

    private func disconnect(_ index: Int) {
        replicas[index].stream?.client.close()
        schedule.tell("the client of replica \(index) disconnects")
    }

    func pass(_ duration: Duration) {
        shared.withLock { $0.uptime += duration }
        schedule.tell("\(duration) pass")
    }

    // MARK: Requests

    private func ask(through index: Int) {
        let streams = replicas.compactMap(\.stream) + ended
        let stream = streams[number(streams.count)]
        let kinds = [describing, replacing, replacing, replacingWithReplay, renewing]
        let kind = kinds[number(kinds.count)]
        ask(kind(stream.user), through: index, about: stream, as: number(8) > 0 ? stream.user : "eve")
    }

    private func describing(_: ID<User>) -> StreamRequest.Kind { .describe }

    /// Returns a request for a topic that names the request.
    func replacing(_: ID<User>) -> StreamRequest.Kind {
        .replace(SubscriptionDraft(topics: ["queue:\(asks.count + 1)"]))
    }

    /// Returns a request for a topic and a table, whose missed changes a worker reads.
    func replacingWithReplay(_: ID<User>) -> StreamRequest.Kind {
        .replace(
            SubscriptionDraft(
                topics: ["queue:\(asks.count + 1)"], tables: [TableSubscription(id: "orders", table: "orders")],
                lastEventID: service.start.log.ids.cursor(service.start.head).text))
    }

    /// Returns a request with a newer token, whose scope has a key that names the request.
    private func renewing(_ user: ID<User>) -> StreamRequest.Kind {
        .renew(caller(user, keys: ["renewal:\(asks.count + 1)"]))
    }

    func ask(_ kind: StreamRequest.Kind, through index: Int, about stream: Stream, as asker: ID<User>) {
        guard replicas[index].isAlive else { return }
        let ask = Ask(
            asks.count + 1, through: index, about: stream.id, isOwner: asker == stream.user, kind, at: uptime)
        asks.append(ask)
        schedule.tell("\(asker) makes request \(ask.number) through replica \(index) about \(stream.name): \(kind)")
        shared.withLock { $0.asking = ask.number }
        replicas[index].parts.requests.ask(stream.id, as: caller(asker), kind) { result in
            ask.answers.withLock { $0.append(result) }
        }
        shared.withLock { $0.asking = nil }
    }

    /// Sends bytes to a stream.
    private func probe(through index: Int) {
        let streams = replicas.compactMap(\.stream)
        probe(through: index, to: streams[number(streams.count)])
    }

    private func probe(through index: Int, to stream: Stream) {
        guard replicas[index].isAlive else { return }
        probes += 1
        let bytes = SharedBytes(Array(": probe \(probes)\n\n".utf8))
        replicas[index].parts.requests.send(bytes, to: stream.id, tenant: "default")
        schedule.tell("probe \(probes) is sent through replica \(index) to \(stream.name)")
    }

    // MARK: Replicas

    /// Ends the oldest write of a replica.
    func commit(_ index: Int, outcome: Outcome) {
        let first = shared.withLock { shared in shared.writes[index].isEmpty ? nil : shared.writes[index].removeFirst()
        }
        guard let write = first else { return }
        if outcome == .stored || outcome == .unknownStored {
            log.append(
                StreamEvent(
                    sequence: service.start.head + Int64(log.count) + 1, tenant: write.tenant,
                    name: write.name.description, audience: [], data: write.data))
        }
        schedule.tell("replica \(index) stores \(write.name) of request \(write.ask ?? 0), outcome \(outcome)")
        guard outcome != .stored else { return write.completion(.success(())) }
        if let ask = write.ask { unstored.insert(ask) }
        write.completion(
            .failure(DatabaseError(outcome == .refused ? .unavailable : .undecided, "the simulated database failed")))
    }

    func deliver(_ index: Int, _ count: Int) {
        guard replicas[index].isAlive else { return }
        let events = log[replicas[index].read...].prefix(count).map { LoggedEvent(event: $0) }
        guard !events.isEmpty else { return }
        replicas[index].read += events.count
        replicas[index].parts.router.publish(events)
        schedule.tell("replica \(index) receives \(events.map(\.event.name))")
    }

    func handle(_ index: Int) {
        guard replicas[index].isAlive else { return }
        replicas[index].parts.requests.handle()
        schedule.tell("replica \(index) handles its requests")
    }

    func turn(_ index: Int) {
        guard replicas[index].isAlive else { return }
        replicas[index].parts.turn()
        observe(index)
        schedule.tell("the shard of replica \(index) goes on")
    }

    /// A replica does all that it can.
    func goOn(_ index: Int) {
        guard replicas[index].isAlive else { return }
        while shared.withLock({ !$0.writes[index].isEmpty }) { commit(index, outcome: .stored) }
        deliver(index, .max)
        handle(index)
        turn(index)
        while replicas[index].parts.work() { turn(index) }
    }

    // MARK: Invariants

    /// Notes which request the stream has performed last.
    private func observe(_ index: Int) {
        let hub = replicas[index].parts.hubs[0].hub
        guard var stream = replicas[index].stream, stream.isOpen else { return }
        stream.isOpen = hub.contains(0)
        if stream.isOpen {
            let held = ["queue:", "renewal:"].map { prefix in
                (hub.topics(of: 0) + hub.scope(of: 0)).first { $0.hasPrefix(prefix) }
                    .flatMap { Int($0.dropFirst(prefix.count)) } ?? 0
            }
            for (old, new) in zip(stream.held, held) where old != new { perform(new, &stream) }
            stream.held = held
        }
        replicas[index].stream = stream
    }

    /// Whether a request has been performed.
    func isPerformed(_ request: Int) -> Bool {
        (replicas.compactMap(\.stream) + ended).contains { $0.performed.contains(request) }
    }

    private func perform(_ request: Int, _ stream: inout Stream) {
        guard request > 0 else { return found = found ?? "\(stream.name) has lost a request" }
        if asks[request - 1].stream != stream.id {
            found = found ?? "request \(request) is performed on another stream"
        }
        if asks[request - 1].isFailed {
            found = found ?? "request \(request) is performed after it was reported as failed"
        }
        if !stream.performed.insert(request).inserted { found = found ?? "request \(request) is performed twice" }
    }

    func check() {
        for ask in asks {
            let answers = ask.answers.withLock { $0 }
            if answers.count > 1 { found = found ?? "request \(ask.number) is answered \(answers.count) times" }
            guard let answer = answers.first else { continue }
            switch answer {
            case .success(let description):
                if !ask.isOwner { found = found ?? "request \(ask.number) of another user succeeds" }
                if case .replace = ask.kind, description.topics != ["queue:\(ask.number)"] {
                    found = found ?? "request \(ask.number) leads to \(description.topics)"
                }
            case .failure(let failure): judge(failure, of: ask)
            }
        }
        asks.indices.forEach { if asks[$0].answers.withLock({ !$0.isEmpty }) { judged.insert($0) } }
    }

    private var judged: Set<Int> = []

    /// Checks a failure when it is reported.
    private func judge(_ failure: Failure, of ask: Ask) {
        guard !judged.contains(ask.number - 1) else { return }
        let stream = (replicas.compactMap(\.stream) + ended).first { $0.id == ask.stream }
        let age = uptime - ask.askedAt
        let isExplained =
            failure.kind == .unavailable
            ? unstored.contains(ask.number) || age >= Self.lifetime - Self.skewMax
            : failure.kind == .notFound
                && (!ask.isOwner || stream?.isOpen != true || age >= ReplicaRequests.patience)
        if !isExplained {
            found = found ?? "request \(ask.number) fails without a reason: \(failure.detail)"
        }
    }

    /// Lets everything end: writes are stored, events arrive, and time passes.
    private func settle() {
        schedule.tell("everything goes on")
        for _ in 0..<10 where found == nil {
            for index in replicas.indices { goOn(index) }
            pass(.milliseconds(500))
            check()
        }
        for ask in asks where replicas[ask.replica].isAlive && ask.answers.withLock({ $0.isEmpty }) {
            found = found ?? "request \(ask.number) is not answered"
        }
        for (index, replica) in replicas.enumerated() where replica.isAlive && replica.parts.requests.waitingCount > 0 {
            found = found ?? "replica \(index) keeps requests that are over"
        }
    }

    /// Asks about every stream through every replica, and sends it bytes.
    private func reachAll() {
        schedule.tell("each replica asks for every stream")
        let streams = replicas.compactMap(\.stream).filter(\.isOpen)
        let (before, firstProbe) = (asks.count, probes)
        for index in replicas.indices where replicas[index].isAlive {
            for stream in streams {
                ask(.describe, through: index, about: stream, as: stream.user)
                probe(through: index, to: stream)
            }
        }
        for _ in 0..<3 { for index in replicas.indices { goOn(index) } }
        check()
        for ask in asks[before...] where found == nil {
            let held = streams.first { $0.id == ask.stream }?.held[0] ?? 0
            let topics = ask.answers.withLock { $0.first.flatMap { try? $0.get().topics } }
            if topics != (held == 0 ? [] : ["queue:\(held)"]) {
                found = "replica \(ask.replica) is told \(topics ?? ["nothing"]) of a stream with the topic of \(held)"
            }
        }
        for stream in streams where found == nil {
            stream.client.read()
            let arrived = stream.client.lines.filter { $0.hasPrefix(": probe ") }.compactMap { Int($0.dropFirst(8)) }
            let sent = asks.count - before
            if Set(arrived).count < arrived.count { found = "bytes arrive twice: \(arrived)" }
            if arrived.count(where: { $0 > firstProbe }) * streams.count < sent { found = "bytes are lost: \(arrived)" }
        }
    }
}
