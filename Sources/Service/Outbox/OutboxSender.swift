import Database
import Domain
import Logging
import Synchronization
import Threads
import Values

/// The sender of due messages: lanes in parallel, the messages of each lane one after the other.
///
/// One thread looks at the lanes, begins attempts in transactions, reads their content, and stores their outcomes. The
/// requests run on the channels' own threads, so only other messages ever wait for a receiver. With several replicas, each
/// sends the attempts that it has begun. An attempt is leased in the row of its lane; if the process is killed, the
/// message is sent again when the lease expires.
final class OutboxSender: Sendable {
    /// The state of the loop. Times are by the clock's uptime, except for the next due time.
    private struct Progress {
        var turns: [String: OutboxTurns]
        var routes = RouteStates()
        var questions = PresenceQuestions()
        var nextDueAt: Timestamp?
        var nextProbeAt: Duration?
        var upkeptAt: Duration?
        var countsAt: Duration?
        var logs = LogPauses()
        /// Where the next look for early messages continues, by route.
        var early: [String: Outbox.Place] = [:]
    }

    private typealias Ended = (delivery: any OutboxDelivery, outcome: OutboxOutcome)

    private let channels: [any Channel]
    private let store: DatabaseStore
    private let clock: Clock
    /// Whether a user has a stream on this replica.
    let isPresent: @Sendable (Owner) -> Bool
    private let presence: PresenceExchange
    private let metrics: OutboxMetrics
    private let logger: Logger
    private let thread = LoopThread("outbox")
    private let ended: [String: EndedAttempts<Ended>]
    private let draining = Atomic<Bool>(false)
    /// The number of running attempts.
    private let running = Locked(0)

    init(
        _ channels: [any Channel], reader: TransactionReader, isPresent: @escaping @Sendable (Owner) -> Bool,
        metrics: MetricsRegistry, logger: Logger
    ) {
        (self.channels, self.isPresent, self.logger) = (channels, isPresent, logger)
        (store, clock) = (reader.store, reader.clock)
        presence = PresenceExchange(store, isPresent: isPresent)
        self.metrics = OutboxMetrics(metrics, channels, clock: clock)
        ended = Dictionary(uniqueKeysWithValues: channels.map { ($0.name, EndedAttempts()) })
        reader.senders.add(thread)
    }

    func start() {
        for channel in channels { channel.start() }
        presence.start(waking: thread)
        thread.start { [self] in
            var progress = Progress(turns: turns())
            // No other process sends, so the previous process was killed and its leases can end.
            if store.engine == .sqlite {
                try? store.writeAndWait { [clock] in try Outbox.endLeases(at: clock.now(), in: $0) }
            }
            for channel in channels { channel.prepare(store) }
            while thread.wait(atMost: pause(progress)) { round(&progress) }
            // Interrupted attempts are sent by the next process without waiting for the lease.
            try? record(&progress)
        }
    }

    private func turns() -> [String: OutboxTurns] {
        var minutes: [OutboxFamily: MinuteShares] = [:]
        return Dictionary(
            uniqueKeysWithValues: channels.map { channel in
                let minute = minutes[channel.family] ?? MinuteShares(channel.limits.minuteMax)
                minutes[channel.family] = minute
                return (channel.name, OutboxTurns(tenantMax: channel.limits.tenantSlots, minute: minute))
            })
    }

    /// Whether nothing begins any more.
    var isDraining: Bool { draining.load(ordering: .acquiring) }

    /// Begins nothing from now on.
    func drain() {
        draining.store(true, ordering: .releasing)
        thread.wake()
    }

    /// Waits for the answers to the running attempts, interrupts the rest, and returns when the threads have ended.
    func stop(by deadline: ContinuousClock.Instant) {
        drain()
        _ = running.wait(atMost: max(.zero, ContinuousClock.now.duration(to: deadline))) { $0 == 0 ? true : nil }
        presence.stop()
        for channel in channels { channel.stop() }
        thread.stop()
    }

    /// The time until the next look: when the next known lane is due, or another replica may have written one.
    private func pause(_ progress: Progress) -> Duration {
        var pause: Duration = store.engine == .sqlite ? .seconds(5) : .seconds(1)
        if let nextDueAt = progress.nextDueAt {
            pause = min(pause, .microseconds(nextDueAt.microseconds - clock.now().microseconds))
        }
        if let nextProbeAt = progress.nextProbeAt { pause = min(pause, nextProbeAt - clock.uptime()) }
        return clock.pause(max(.milliseconds(1), pause))
    }

    private func round(_ progress: inout Progress) {
        do {
            try record(&progress)
            try presence.answer(&progress.questions)
            guard !isDraining else { return }
            try settlePresence(&progress)
            while try Outbox.correct(at: clock.now(), in: store) {}
            try begin(&progress)
            try lookAfter(&progress)
        } catch {
            (progress.nextDueAt, progress.nextProbeAt) = (nil, nil)
            // StorageWatch reports it once a minute.
            if (error as? DatabaseError)?.storageTrouble != nil { return }
            log("The outbox could not be processed. Retrying.", ["reason": "\(error)"], &progress)
        }
    }

    // MARK: Attempts

    private func begin(_ progress: inout Progress) throws {
        (progress.nextDueAt, progress.nextProbeAt) = (nil, nil)
        var early: [Outbox.Due] = []
        let routes = try store.read(isSingle: true, { try Outbox.routes(in: $0) })
        progress.routes.noteWaiting(routes)
        noteDown(progress)
        for route in routes {
            guard let channel = channels.first(where: { $0.isOn(route) }) else { continue }
            early += try postponeSoon(route, &progress)
            let lookedAt = try begin(route, channel, &progress)
            if let probeAt = progress.routes.probeAt(route) {
                progress.nextProbeAt = min(progress.nextProbeAt ?? probeAt, probeAt)
            } else if let dueAt = try store.read(isSingle: true, { try Outbox.nextDue(route, after: lookedAt, in: $0) })
            {
                progress.nextDueAt = min(progress.nextDueAt ?? dueAt, dueAt)
            }
        }
        guard store.engine == .postgreSQL else { return }
        try presence.ask(about: early, &progress.questions, at: clock.uptime())
    }

    // MARK: Presence

    /// With several replicas, postpones the messages that another one would send soon, though this one knows that their
    /// users have a stream.
    ///
    /// - Returns: The lanes whose users have no stream here.
    private func postponeSoon(_ route: String, _ progress: inout Progress) throws -> [Outbox.Due] {
        guard store.engine == .postgreSQL else { return [] }
        let now = clock.now()
        let place = max(progress.early[route] ?? Outbox.Place(nextAt: now), Outbox.Place(nextAt: now))
        let (soon, next) = try store.read(isSingle: true) { db in
            try Outbox.early(route, after: place, until: now.adding(seconds: OutboxLimits.presenceSeconds), in: db)
        }
        progress.early[route] = next
        try postpone(soon.filter { $0.owner.map(isPresent) == true }, at: now)
        return soon.filter { $0.owner.map(isPresent) != true }
    }

    /// Postpones the early messages of users with a stream on any replica, and makes the others due.
    private func settlePresence(_ progress: inout Progress) throws {
        let (present, absent) = progress.questions.settled()
        let now = clock.now()
        try postpone(present, at: now)
        guard !absent.isEmpty else { return }
        try store.writeAndWait { db in
            try Outbox.lockSenders(in: db)
            try Outbox.lock(absent.compactMap(\.owner), in: db)
            try Outbox.makeDue(absent.map(\.id), at: now, in: db)
        }
    }

    private func postpone(_ lanes: [Outbox.Due], at now: Timestamp) throws {
        guard !lanes.isEmpty else { return }
        try store.writeAndWait { db in
            try Outbox.lockSenders(in: db)
            try Outbox.lock(lanes.compactMap(\.owner), in: db)
            try Outbox.postpone(lanes.map(\.id), at: now, in: db)
        }
    }

    /// Begins the attempts of due lanes.
    ///
    /// - Returns: The time of the last look. Lanes that were due then and still wait are begun when another attempt ends,
    ///   which wakes the thread.
    private func begin(_ route: String, _ channel: any Channel, _ progress: inout Progress) throws -> Timestamp {
        var now = clock.now()
        while let turns = progress.turns[channel.name] {
            now = clock.now()
            let free = progress.routes.room(route, channel.limits.slots - turns.count, at: clock.uptime())
            guard free > 0 else { return now }
            let limit = min(free, OutboxLimits.rowsAtOnceMax)
            let latestFirst = progress.routes.probesLatest(route)
            let due = try store.read { [now] db in
                try progress.turns[channel.name]?.choose(
                    limit, of: route, at: now, channel.condition, latestFirst: latestFirst, in: db) ?? []
            }
            guard !due.isEmpty else { return now }
            let present = due.filter { $0.isEarly && $0.owner.map(isPresent) == true }
            try postpone(present, at: now)
            let sendable = due.filter { lane in !present.contains { $0.id == lane.id } }
            guard !sendable.isEmpty else { continue }
            try begin(sendable, on: route, by: channel, at: now, &progress)
        }
        return now
    }

    private func begin(
        _ due: [Outbox.Due], on route: String, by channel: any Channel, at now: Timestamp, _ progress: inout Progress
    ) throws {
        // Before the transaction: it may wait, and the lease counts from its begin.
        let begunAt = clock.uptime()
        let lease = Int.random(in: 1...Int(Int64.max))
        let deliveries = try store.writeAndWait { db in
            try Outbox.begin(due, by: channel, lease: lease, at: now, in: db)
        }
        for delivery in deliveries {
            progress.turns[channel.name]?.began(delivery.attempt.laneId, of: delivery.attempt.tenant)
            progress.routes.began(route, at: begunAt)
            running.withLock { $0 += 1 }
            send(delivery, channel, begunAt: begunAt)
        }
    }

    /// Sends a message, unless its lease might end before the request does.
    ///
    /// Replica A leases a message and stops: its write waits for a slow disk, or its machine is suspended. The lease ends,
    /// B sends the message, and A goes on. A must not send it behind B, so it breaks its attempt off.
    private func send(_ delivery: any OutboxDelivery, _ channel: any Channel, begunAt: Duration) {
        guard clock.uptime() < begunAt + .seconds(OutboxLimits.leaseSeconds) else {
            return finish(delivery, channel, .interrupted)
        }
        delivery.send { [self] in finish(delivery, channel, $0) }
    }

    private func finish(_ delivery: any OutboxDelivery, _ channel: any Channel, _ outcome: OutboxOutcome) {
        ended[channel.name]?.add((delivery, outcome))
        thread.wake()
    }

    /// Stores the outcomes of attempts. Until that succeeds they count as running, and no others begin in their place.
    private func record(_ progress: inout Progress) throws {
        for channel in channels {
            guard let ended = ended[channel.name] else { continue }
            let (now, age) = (clock.now(), clock.age())
            let stored = try ended.store(
                { ended in
                    let results = ended.map { ended in
                        let result = Outbox.result(
                            of: ended.outcome, ended.delivery.attempt, at: age, chance: .random(in: 0..<1))
                        return (delivery: ended.delivery, result: result)
                    }
                    try store.writeAndWait { try Outbox.record(results, of: channel, at: now, in: $0) }
                    return zip(ended, results).map { ($0.delivery, $0.outcome, $1.result) }
                },
                refused: {
                    log("The outcome of a message could not be stored. Retrying.", ["reason": "\($0)"], &progress)
                })
            for (delivery, outcome, result) in stored {
                progress.turns[channel.name]?.ended(delivery.attempt.laneId)
                note(outcome, result, of: delivery, by: channel, &progress)
            }
            guard !stored.isEmpty else { continue }
            noteDown(progress)
            running.withLock { $0 -= stored.count }
            running.broadcast()
        }
    }

    private func noteDown(_ progress: Progress) {
        metrics.note(down: progress.routes.downCounts { route in channels.first { $0.isOn(route) }?.name })
    }

    private func note(
        _ outcome: OutboxOutcome, _ result: OutboxResult, of delivery: any OutboxDelivery, by channel: any Channel,
        _ progress: inout Progress
    ) {
        metrics.note(outcome, result, delivery.attempt.type, of: channel)
        let event = progress.routes.ended(delivery.attempt.lane.route, outcome)
        if event == .recovered, let line = channel.recoveryLine { logger.info(line.message, metadata: line.metadata) }
        if let line = channel.line(for: outcome), log(line.message, line.metadata, &progress) {
            progress.routes.noteLogged(delivery.attempt.lane.route)
        }
    }

    /// Logs at most once a minute for each message. It describes a state that lasts, and would otherwise fill the log.
    @discardableResult
    private func log(_ message: Logger.Message, _ metadata: Logger.Metadata, _ progress: inout Progress) -> Bool {
        guard progress.logs.begin("\(message)", at: clock.uptime()) else { return false }
        logger.warning(message, metadata: metadata)
        return true
    }

    // MARK: Upkeep

    private func lookAfter(_ progress: inout Progress) throws {
        let uptime = clock.uptime()
        if let last = progress.upkeptAt, uptime < last + OutboxLimits.upkeepPause { return }
        progress.upkeptAt = uptime
        let now = clock.now()
        if let age = clock.age(), try store.read({ try Outbox.hasEnded(age, in: $0) }) {
            var isMore = true
            while isMore {
                let pruned = try store.writeAndWait { try Outbox.prune(age, at: now, in: $0) }
                metrics.note(pruned.expired, .expired)
                isMore = pruned.isMore
            }
        }
        if let next = progress.countsAt, uptime < next { return }
        let begun = ContinuousClock.now
        try evict(at: now)
        for channel in channels { try store.read { try channel.count(in: $0) } }
        let took = begun.duration(to: .now)
        progress.countsAt = uptime + max(OutboxLimits.upkeepPause, took * OutboxLimits.countPauseFactor)
        metrics.throttled = progress.turns.mapValues(\.minute.throttledCount)
    }

    /// Counts what waits, and gives up what exceeds the limits.
    private func evict(at now: Timestamp) throws {
        var figures = try store.read { try Outbox.figures(at: now, in: $0) }
        for family in OutboxFamily.allCases {
            let limit = family.waitingMax
            while let found = figures[family], found.waiting > limit {
                let (count, isMore) = try store.writeAndWait {
                    try Outbox.evict(family, found, waitingMax: limit, at: now, in: $0)
                }
                metrics.note([family: count], .outboxFull)
                figures = try store.read { try Outbox.figures(at: now, in: $0) }
                if !isMore { break }
            }
        }
        metrics.note(figures)
    }
}

/// The state of the routes: whether each is down.
struct RouteStates {
    enum Event {
        case none, recovered
    }

    private struct State {
        var failures = 0
        var running = 0
        var begunAt: Duration?
        /// Attempts since the route is down.
        var probes = 0
        /// Whether a failure was logged and its recovery was not.
        var isLogged = false

        var isDown: Bool { failures >= OutboxLimits.failuresMax }
    }

    private var states: [String: State] = [:]
    /// The routes on which something waits.
    private var waiting: Set<String> = []

    /// Returns how many attempts may begin. While a route is down, one attempt at a time finds out whether it still is.
    func room(_ route: String, _ free: Int, at uptime: Duration) -> Int {
        guard let state = states[route], state.isDown else { return free }
        guard state.running == 0, let begunAt = state.begunAt, uptime < begunAt + OutboxLimits.downPause else {
            return state.running == 0 ? min(free, 1) : 0
        }
        return 0
    }

    /// Returns when an attempt may begin on a route that is down; nil if it is not down, or one runs.
    func probeAt(_ route: String) -> Duration? {
        guard let state = states[route], state.isDown, state.running == 0, let begunAt = state.begunAt else {
            return nil
        }
        return begunAt + OutboxLimits.downPause
    }

    /// Whether the next attempt is one of the lane that became due last. While a route is down, every other attempt is:
    /// some receivers fail for the messages of some users only, and the others would wait behind all of those.
    func probesLatest(_ route: String) -> Bool {
        guard let state = states[route], state.isDown else { return false }
        return state.probes.isMultiple(of: 2)
    }

    mutating func began(_ route: String, at uptime: Duration) {
        states[route, default: State()].running += 1
        if states[route]?.isDown == true { states[route]?.probes += 1 }
        states[route]?.begunAt = uptime
    }

    mutating func ended(_ route: String, _ outcome: OutboxOutcome) -> Event {
        states[route, default: State()].running -= 1
        switch outcome {
        case .interrupted: return .none
        case .failed, .misconfigured(_, isGeneral: true):
            states[route]?.failures += 1
            return .none
        case .accepted, .rejected, .refused, .gone, .misconfigured:
            states[route]?.failures = 0
            states[route]?.probes = 0
            guard outcome == .accepted, states[route]?.isLogged == true else { return .none }
            states[route]?.isLogged = false
            return .recovered
        }
    }

    mutating func noteWaiting(_ routes: [String]) { waiting = Set(routes) }

    /// Returns how many routes are down, by what names their channels. A route on which nothing waits is not counted:
    /// nothing is late, and no attempt would find out that the receiver is back.
    func downCounts(by name: (String) -> String?) -> [String: Int] {
        let down = states.filter { $0.value.isDown && waiting.contains($0.key) }.keys.compactMap(name)
        return Dictionary(down.map { ($0, 1) }, uniquingKeysWith: +)
    }

    mutating func noteLogged(_ route: String) { states[route, default: State()].isLogged = true }
}

/// The pauses between equal lines of the log.
struct LogPauses {
    private var last: [String: Duration] = [:]

    /// Whether a line may be written now.
    mutating func begin(_ line: String, at now: Duration) -> Bool {
        if let last = last[line], now < last + .seconds(60) { return false }
        last[line] = now
        return true
    }
}
