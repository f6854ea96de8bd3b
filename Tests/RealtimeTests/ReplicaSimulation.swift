import Realtime
import TestSupport

/// An entry of the simulated log. Two entries with the same sequence number always differ in content, even across
/// failovers.
struct SimulatedEntry: LogEntry, Equatable {
    let sequence: Int64
    /// 0 once it is erased.
    let content: Int

    func isSame(as other: SimulatedEntry) -> Bool { self == other }
    var isErased: Bool { content == 0 }
    /// Some entries revoke a token.
    static func isRevocation(_ content: Int) -> Bool { content % 3 == 1 }
}

/// The simulated database server. A failover removes the last entries and starts a new timeline.
struct SimulatedServer {
    /// How long entries stay before they may be erased (`ErasureLimits.logPauseSeconds`).
    static let erasurePause = Duration.seconds(10)

    var entries: [SimulatedEntry] = []
    /// The original contents of the entries, and the times of their commits.
    private var written: [(content: Int, at: Duration)] = []
    /// The contents that were erased, with the times.
    private(set) var gone: [Int: Duration] = [:]
    /// The number of entries that retention has removed.
    var pruned = 0
    var (epoch, epochTimeline, timeline) = (0, 0, 0)
    private(set) var names = 0
    private var contents = 0

    var newest: Int64 { Int64(entries.count) }

    mutating func append(_ count: Int, at now: Duration) -> [SimulatedEntry] {
        for _ in 0..<count {
            contents += 1
            entries.append(SimulatedEntry(sequence: newest + 1, content: contents))
            written.append((contents, now))
        }
        return Array(entries.suffix(count))
    }

    /// Erases some of the entries that are old enough.
    ///
    /// - Parameter step: the distance between erased entries
    mutating func erase(each step: Int, at now: Duration) {
        for index in stride(from: 0, to: entries.count, by: step) where now - written[index].at >= Self.erasurePause {
            if gone[written[index].content] == nil { gone[written[index].content] = now }
            entries[index] = SimulatedEntry(sequence: entries[index].sequence, content: 0)
        }
    }

    /// The revocations in the database. No erasure removes them.
    var revocations: Set<Int> { Set(written.lazy.map(\.content).filter(SimulatedEntry.isRevocation)) }

    /// Returns a revocation that was committed before a time, except the given ones.
    func revocation(before time: Duration, besides known: Set<Int>) -> Int? {
        written.first { $0.at < time && SimulatedEntry.isRevocation($0.content) && !known.contains($0.content) }?
            .content
    }

    /// Promotes a standby.
    ///
    /// - Parameter lost: how many of the last entries the promoted server lacks.
    mutating func failOver(losing lost: Int) {
        entries.removeLast(min(lost, entries.count - pruned))
        written = Array(written.prefix(entries.count))
        timeline += 1
    }

    /// Renews the log's epoch if it is still `old`, like the service's single SQL statement.
    mutating func renew(_ old: String) {
        guard old == "\(epoch)" else { return }
        names += 1
        (epoch, epochTimeline) = (names, timeline)
    }

    func state(lookingAt sequence: Int64, comparesOrigin: Bool) -> LogState<SimulatedEntry> {
        let isRetained = sequence > pruned && sequence <= newest
        return LogState(
            newest: newest, epoch: "\(epoch)", content: isRetained ? entries[Int(sequence) - 1] : nil,
            isMoved: comparesOrigin && timeline != epochTimeline)
    }

    func following(_ sequence: Int64, limit: Int) -> (entries: [SimulatedEntry], isAll: Bool) {
        let start = min(max(Int(sequence), pruned), entries.count)
        return (Array(entries[start...].prefix(limit)), entries.count - start <= limit)
    }
}

/// One replica: the state of its pump between two steps of the scheduler, and the entries its streams have received.
struct SimulatedReplica {
    typealias Follower = LogFollower<SimulatedEntry>

    /// An answer that the server has given but the replica has not processed yet. It reflects the server's state when
    /// the question was asked.
    enum Pending {
        case read(Follower.Request, [SimulatedEntry], isAll: Bool)
        case poll(Follower.Request, LogState<SimulatedEntry>)
        case adopt(Follower.Request, LogState<SimulatedEntry>)
        case restart(after: Int64)
    }

    var follower: Follower
    var pending: Pending?
    var handOvers: [(entries: [SimulatedEntry], term: Int)] = []
    var announcements: [Int64?] = []
    var pausedUntil = 0
    /// The sequence number before the first entry that the streams received, and those entries.
    var base: Int64
    var received: [SimulatedEntry] = []
    /// The revocations that are known here.
    var revoked: Set<Int>

    init(_ server: SimulatedServer, at now: Duration) {
        follower = Follower(head: server.newest, epoch: "\(server.epoch)", at: now)
        base = server.newest
        revoked = server.revocations
    }
}

/// Two replicas on one server under a seeded schedule of commits, deliveries, polls, failovers, erasures, pauses and
/// crashes.
///
/// Invariants: every stream receives every entry once and in order, or its epoch ends within two seconds of a
/// failover, whatever is announced meanwhile. An id of the log's current epoch names exactly one entry. No stream
/// receives an entry long after its erasure. A replica knows every revocation up to the time that it claims.
struct ReplicaSimulation {
    static let pollPause = Duration.seconds(1)
    /// How far the clock advances with each step of the traffic after the schedule.
    private static let beat = Duration.milliseconds(250)

    private let schedule: Schedule
    private var server = SimulatedServer()
    private var replicas: [SimulatedReplica] = []
    private var now = Duration.zero
    private var step = 0
    /// Every entry that any replica has delivered to streams, including crashed replicas.
    private var told: [(epoch: String, entry: SimulatedEntry)] = []
    private(set) var failure: String?

    private mutating func number(_ bound: Int) -> Int { schedule.number(bound) }

    private func tell(_ text: @autoclosure () -> String) { schedule.tell(text()) }

    /// Runs one schedule.
    ///
    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule) -> String? {
        var simulation = ReplicaSimulation(schedule: schedule)
        simulation.run()
        return simulation.failure
    }

    private mutating func run() {
        replicas = [SimulatedReplica(server, at: now), SimulatedReplica(server, at: now)]
        for _ in 0..<schedule.count(8...31) where failure == nil {
            step += 1
            schedule.step()
            act()
            for index in replicas.indices { checkRevocations(index) }
        }
        schedule.step()
        tell("both replicas keep writing")
        for index in replicas.indices { replicas[index].pausedUntil = 0 }
        // Both replicas keep writing, and so announce to each other: the log is never silent for a second.
        for _ in 0..<8 where failure == nil {
            for index in replicas.indices { commit(index, 1) }
            settle()
        }
        for (index, replica) in replicas.enumerated() where replica.follower.epoch != "\(server.epoch)" {
            fail("replica \(index) has epoch \(replica.follower.epoch) two seconds later, the log \(server.epoch)")
        }
        if server.epochTimeline != server.timeline { fail("a failover was not noticed") }
        for _ in 0..<4 where failure == nil { settle() }
        for index in replicas.indices {
            check(index)
            if now - replicas[index].follower.caughtUpAt > Self.pollPause { fail("replica \(index) does not catch up") }
            checkRevocations(index)
        }
        for (epoch, entry) in told where epoch == "\(server.epoch)" {
            let present = entry.sequence <= server.newest ? server.entries[Int(entry.sequence) - 1] : nil
            if present != entry, present?.isErased != true { fail("the id of \(entry) names \(present as Any)") }
        }
    }

    private mutating func fail(_ text: String) { failure = failure ?? text }

    private mutating func check(_ index: Int) {
        let (base, received) = (replicas[index].base, replicas[index].received)
        let expected = server.entries.dropFirst(Int(base))
        if !received.elementsEqual(expected, by: { $0 == $1 || $1.isErased && $0.sequence == $1.sequence }) {
            let (told, log) = (received.map(\.content), expected.map(\.content))
            fail("replica \(index) told \(told) after \(base), the log has \(log)")
        }
    }

    /// A replica accepts tokens by the revocations that it knows, for as long as these are recent enough. A failover that
    /// it has not noticed yet can hide some from it.
    private mutating func checkRevocations(_ index: Int) {
        guard server.timeline == server.epochTimeline, replicas[index].follower.epoch == "\(server.epoch)" else {
            return
        }
        let (caughtUpAt, known) = (replicas[index].follower.caughtUpAt, replicas[index].revoked)
        if let unknown = server.revocation(before: caughtUpAt, besides: known) {
            fail("replica \(index) does not know the revocation in content \(unknown)")
        }
    }

    // MARK: The schedule

    private mutating func act() {
        let index = number(2)
        let isPaused = replicas[index].pausedUntil > step
        switch number(isPaused ? 5 : 18) {
        case 0: pass(number(700))
        case 4: number(2) == 0 ? pass(3000 + number(9000)) : erase()
        case 1: prune()
        case 2: failOver()
        case 3, 5, 6, 16: commit(isPaused ? 1 - index : index, 1 + number(3), isHandedOver: number(8) > 0)
        case 7, 8: handOver(index)
        case 9, 10: hear(index)
        case 11: pause(index, number(12))
        case 12: restart(index)
        default: if replicas[index].pending != nil { work(index) } else { _ = ask(index) }
        }
    }

    private mutating func pass(_ milliseconds: Int) {
        now += .milliseconds(milliseconds)
        if milliseconds > 0 { tell("\(milliseconds) ms pass") }
    }

    private mutating func prune() {
        server.pruned = max(server.pruned, Int(server.newest) - 6)
        tell("the log keeps what follows \(server.pruned)")
    }

    private mutating func erase() {
        server.erase(each: 1 + number(3), at: now)
        tell("the log now has the contents \(server.entries.map(\.content))")
    }

    private mutating func pause(_ index: Int, _ steps: Int) {
        replicas[index].pausedUntil = step + steps
        tell("replica \(index) pauses for \(steps) steps")
    }

    /// Completes all pending work and advances the clock.
    private mutating func settle() {
        now += Self.beat
        for index in replicas.indices {
            while !replicas[index].handOvers.isEmpty { handOver(index) }
            while !replicas[index].announcements.isEmpty { hear(index) }
            for _ in 0..<6 where replicas[index].pending != nil || ask(index) { work(index) }
        }
    }

    private mutating func failOver() {
        let newest = server.newest
        server.failOver(losing: number(5))
        tell("a standby takes over without the entries after \(server.newest) of \(newest)")
        // All connections end, and each replica notices at a different time.
        for index in replicas.indices { replicas[index].announcements.append(nil) }
    }

    /// Commits entries of a replica, and announces them to the other one.
    ///
    /// - Parameter isHandedOver: Whether the replica learns of its commit. It does not if the answer was lost.
    private mutating func commit(_ index: Int, _ count: Int, isHandedOver: Bool = true) {
        let (term, entries) = (replicas[index].follower.term, server.append(count, at: now))
        if isHandedOver { replicas[index].handOvers.append((entries, term)) }
        tell("replica \(index) commits entries up to \(server.newest)\(isHandedOver ? "" : ", and its answer is lost")")
        for other in replicas.indices where other != index { replicas[other].announcements.append(server.newest) }
    }

    /// The process ends and another starts. It compares the timeline first, as `EventLog.epoch` does.
    private mutating func restart(_ index: Int) {
        if server.timeline != server.epochTimeline { server.renew("\(server.epoch)") }
        replicas[index] = SimulatedReplica(server, at: now)
        tell("replica \(index) ends, and another starts at \(server.newest)")
    }

    // MARK: The steps of a replica

    private mutating func publish(_ entries: [SimulatedEntry], by index: Int) {
        for entry in entries {
            let head = replicas[index].base + Int64(replicas[index].received.count)
            if entry.sequence != head + 1 { fail("replica \(index) publishes \(entry.sequence) after \(head)") }
            let isTooLate = server.gone[entry.content].map { now - $0 > SimulatedReplica.Follower.memoryMax } ?? false
            if entry.isErased || isTooLate {
                fail("replica \(index) publishes \(entry.sequence), which was erased")
            }
            if SimulatedEntry.isRevocation(entry.content) { replicas[index].revoked.insert(entry.content) }
            replicas[index].received.append(entry)
            tell("replica \(index) publishes \(entry.sequence), content \(entry.content)")
            told.append((replicas[index].follower.epoch, entry))
        }
    }

    /// Restarts the streams of a replica that has caught up.
    private mutating func begin(_ index: Int) {
        replicas[index].base = replicas[index].follower.head
        replicas[index].received = []
        tell(
            "replica \(index) restarts its streams after \(replicas[index].base), epoch \(replicas[index].follower.epoch)"
        )
        publish(replicas[index].follower.publishable(at: now), by: index)
    }

    private mutating func handOver(_ index: Int) {
        guard !replicas[index].handOvers.isEmpty else { return }
        let (entries, term) = replicas[index].handOvers.removeFirst()
        tell("replica \(index) hands over \(entries.map(\.sequence)) of term \(term)")
        publish(replicas[index].follower.committed(entries, term: term, at: now), by: index)
    }

    private mutating func hear(_ index: Int) {
        guard !replicas[index].announcements.isEmpty else { return }
        let newest = replicas[index].announcements.removeFirst()
        tell("replica \(index) hears \(newest.map { "of \($0)" } ?? "that its connection was lost")")
        replicas[index].follower.announced(newest)
    }

    /// Performs the next step of the polling loop.
    private mutating func work(_ index: Int) {
        guard let pending = replicas[index].pending else { return }
        replicas[index].pending = nil
        switch pending {
        case .read(let request, let entries, let isAll):
            tell("replica \(index) receives the entries \(entries.map(\.sequence))")
            let outcome = replicas[index].follower.read(entries, isAll: isAll, answering: request, at: now)
            publish(outcome.publish, by: index)
            if let missed = outcome.missed { replicas[index].pending = .restart(after: missed) }
        case .poll(let request, let state):
            tell("replica \(index) sees the log at \(state.newest), epoch \(state.epoch)")
            switch replicas[index].follower.polled(state, answering: request) {
            case .unchanged: break
            case .adopt: replicas[index].pending = .adopt(request, state)
            case .renew(let epoch):
                server.renew(epoch)
                replicas[index].pending = .adopt(request, server.state(lookingAt: 0, comparesOrigin: false))
            }
        case .adopt(let request, let state):
            replicas[index].revoked = server.revocations
            guard replicas[index].follower.adopt(state, answering: request) else { return }
            if replicas[index].follower.head != state.newest { fail("replica \(index) goes on after an unknown entry") }
            begin(index)
        case .restart(let sequence):
            replicas[index].revoked = server.revocations
            replicas[index].follower.restart(after: sequence)
            begin(index)
        }
    }

    /// - Returns: false if there is nothing to ask.
    private mutating func ask(_ index: Int) -> Bool {
        guard let request = replicas[index].follower.nextRequest(at: now, pollPause: Self.pollPause) else {
            return false
        }
        if number(16) == 15 {
            replicas[index].follower.failed(request)
            tell("replica \(index) cannot \(request.kind) the log")
            return false
        }
        tell("replica \(index) asks to \(request.kind) after \(request.head)")
        switch request.kind {
        case .read:
            let (entries, isAll) = server.following(request.head - 1, limit: 4)
            replicas[index].pending = .read(request, entries, isAll: isAll)
        case .poll:
            let state = server.state(lookingAt: request.place, comparesOrigin: request.isTimed)
            replicas[index].pending = .poll(request, state)
        }
        return true
    }
}
