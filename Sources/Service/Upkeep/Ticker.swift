import Database
import Logging
import Threads
import Values

/// Periodic work, in a write transaction for each tenant.
struct Tick: Sendable {
    let name: String
    let everySeconds: Int
    /// Returns the tenants with work, in the first column, each once or several times. Usually there is no work, and then
    /// nothing is written. Nil for rare work, which always runs for all tenants.
    var due: (@Sendable (_ now: Timestamp) -> SQL)?
    /// Whether it deletes what is no longer needed. It also runs while its feature is off.
    var isTidying = false
    let body: @Sendable (Transaction) throws -> Void
    /// Whether it deletes rows because of their age. It does not run while the time is in doubt.
    var isByAge = false

    /// Makes a tick that deletes rows because of their age.
    ///
    /// - Parameter due: See ``due``, with the time that judges ages.
    static func forgetting(
        name: String, everySeconds: Int, due: (@Sendable (AgeTime) -> SQL)? = nil,
        body: @escaping @Sendable (AgeTime, Transaction) throws -> Void
    ) -> Tick {
        var dueNow: (@Sendable (Timestamp) -> SQL)?
        if let due { dueNow = { due(AgeTime($0)) } }
        return Tick(
            name: name, everySeconds: everySeconds, due: dueNow, isTidying: true,
            body: { tx in if let age = tx.age { try body(age, tx) } }, isByAge: true)
    }

    /// Returns the time for ``due``; nil if it must not run at present.
    func time(by clock: Clock) -> Timestamp? { isByAge ? clock.age()?.now : clock.now() }
}

/// Work that takes many small transactions, such as the erasure of a person. It is done as fast as other writes allow,
/// and continues after a restart where its last transaction ended.
struct LongWork: Sendable {
    let name: String
    /// Returns the tenants with work, in the first column.
    let due: @Sendable (_ now: Timestamp) -> SQL
    /// Performs the next step for a tenant.
    let step: @Sendable (TransactionRunner, ID<Tenant>) throws -> Void
}

/// The deletion of expired or surplus rows, a limited number at once. While the time is in doubt, its age is nil, and
/// only surplus rows are deleted.
struct Pruning: Sendable {
    let name: String
    /// Returns a row if there is anything to delete. Nil if there cannot be.
    let due: @Sendable (_ age: AgeTime?) -> SQL?
    /// Deletes some rows; returns their number, at most `Limits.prunedAtOnceMax`.
    let prune: @Sendable (_ age: AgeTime?, DatabaseConnection) throws -> Int
}

/// The scheduler of periodic work: each feature's ticks for every tenant, and the pruning of the core's own tables.
final class Ticker: Sendable {
    private struct Job: Sendable {
        let name: String
        let everySeconds: Int
        /// By the clock's uptime.
        var dueAt: Duration
        let run: @Sendable (Ticker) throws -> Void
    }

    /// A query that finds out whether there is work.
    private struct DueQuery: Sendable {
        let name: String
        let everySeconds: Int
        /// Returns nil if there cannot be any work.
        let due: @Sendable (Clock) -> SQL?
    }

    private let runner: TransactionRunner
    private let logger: Logger
    /// The jobs before the thread starts; the thread has its own copy.
    private let jobs: [Job]
    private let thread = LoopThread("ticker")
    private let dueQueries: [DueQuery]
    /// The work found by the last query of each interval, and when it was found.
    private let found = Locked([Int: (at: ContinuousClock.Instant, names: Set<String>)]())
    /// How far each sweep is, by its name and tenant. After a restart it begins again.
    private let sweeping = Locked([SweepKey: (place: String?, dueAt: Duration)]())

    private struct SweepKey: Hashable {
        let name: String
        let tenant: ID<Tenant>
    }

    /// The pause between two checks of the clock.
    private let pause: Duration
    /// Consecutive steps of one kind of pruning or of long work; the next round continues.
    private static let stepsMax = 100

    init(
        runner: TransactionRunner, ticks: [Tick], sweeps: [Sweep], longWork: [LongWork], prunings: [Pruning],
        lines: ClockLines? = nil, shares: ShareWalk? = nil, logger: Logger
    ) {
        self.runner = runner
        self.logger = logger
        let now = runner.clock.uptime()
        pause = runner.clock.pause(.milliseconds(250))
        var jobs = ticks.map { tick in
            Job(name: tick.name, everySeconds: tick.everySeconds, dueAt: now + .seconds(tick.everySeconds)) {
                try $0.run(tick)
            }
        }
        jobs += sweeps.filter { $0.isOn(runner.settings) }.map { sweep in
            Job(name: sweep.name, everySeconds: 5, dueAt: now + .seconds(5)) { try $0.run(sweep) }
        }
        let storage = StorageWatch(store: runner.store, clock: runner.clock, logger: logger)
        jobs.append(Job(name: "storage", everySeconds: 1, dueAt: now) { _ in storage.check() })
        if let lines {
            jobs.append(
                Job(name: "clock", everySeconds: ClockLines.everySeconds, dueAt: now) {
                    try lines.look(in: $0.runner.store)
                })
        }
        if let shares {
            // The walk itself knows when it is due.
            jobs.append(Job(name: "badges.shares", everySeconds: 0, dueAt: now) { try shares.turn($0.runner) })
        }
        // A query of a file costs nothing; one of a server, by each replica, a little.
        let tidyingSeconds = runner.store.engine == .sqlite ? 1 : 10
        jobs.append(
            Job(name: "rates", everySeconds: 1, dueAt: now) {
                try $0.runner.shareRates()
            })
        let prunings = [Self.events(runner.settings)] + prunings
        dueQueries =
            ticks.compactMap { tick in
                tick.due.map { due in
                    DueQuery(name: tick.name, everySeconds: tick.everySeconds) { tick.time(by: $0).map(due) }
                }
            }
            + longWork.map { work in DueQuery(name: work.name, everySeconds: 1) { work.due($0.now()) } }
            + prunings.map { pruning in
                DueQuery(name: pruning.name, everySeconds: tidyingSeconds) { pruning.due($0.age()) }
            }
        jobs += prunings.map { pruning in
            Job(name: pruning.name, everySeconds: tidyingSeconds, dueAt: now + .seconds(tidyingSeconds)) {
                try $0.run(pruning, everySeconds: tidyingSeconds)
            }
        }
        jobs += longWork.map { work in
            Job(name: work.name, everySeconds: 1, dueAt: now + .seconds(1)) { try $0.run(work) }
        }
        self.jobs = jobs
    }

    static func events(_ settings: Settings) -> Pruning {
        let retention = EventLog.Retention(
            seconds: Int64(settings.eventsKeptHours) * 3600, countMax: settings.eventsKeptMax)
        return Pruning(
            name: "events", due: { EventLog.pruningDue($0, retention) },
            prune: { try EventLog.prune($0, retention, in: $1) })
    }

    func start() {
        thread.start { [self] in
            var jobs = jobs
            while thread.wait(atMost: pause) { runDue(&jobs) }
        }
    }

    /// Lets the running job finish, and returns when the thread has ended.
    func stop() { thread.stop() }

    private func runDue(_ jobs: inout [Job]) {
        let now = runner.clock.uptime()
        for index in jobs.indices where jobs[index].dueAt <= now {
            do {
                try jobs[index].run(self)
            } catch {
                report(error, of: jobs[index].name)
            }
            jobs[index].dueAt = now + .seconds(jobs[index].everySeconds)
            if thread.isStopping { return }
        }
    }

    private func report(_ error: any Error, of name: String) {
        // StorageWatch reports it once a minute.
        if (error as? DatabaseError)?.storageTrouble != nil { return }
        // It named a person whose erasure is about to end.
        if (error as? Failure)?.kind == .unavailable { return }
        logger.error("Upkeep failed. Retrying.", metadata: ["tick": "\(name)", "reason": "\(error)"])
    }

    /// Whether there is work. All work of one interval is checked by one statement. Otherwise an idle service would
    /// query a server for each kind of work, each second, on each replica.
    private func isDue(_ name: String, everySeconds: Int) throws -> Bool {
        let moment = ContinuousClock.now
        if let last = found.withLock({ $0[everySeconds] }), moment - last.at < pause {
            return last.names.contains(name)
        }
        let dueQueries = dueQueries.filter { $0.everySeconds == everySeconds }
        let columns = dueQueries.map { dueQuery -> SQL in
            dueQuery.due(runner.clock).map { "CASE WHEN EXISTS (\($0)) THEN 1 ELSE 0 END" } ?? "0"
        }
        let names = try runner.store.read(isSingle: true) { db in
            try db.row("SELECT \(SQL.joined(columns, separator: ", "))") { row in
                Set(try dueQueries.indices.filter { try row.bool($0) }.map { dueQueries[$0].name })
            }
        }
        found.withLock { $0[everySeconds] = (moment, names ?? []) }
        return names?.contains(name) ?? false
    }

    private func run(_ tick: Tick) throws {
        for tenant in try tenants(of: tick) {
            try write(tick.name, in: tenant) { try tick.body($0) }
            if thread.isStopping { return }
        }
    }

    private func tenants(of tick: Tick) throws -> [ID<Tenant>] {
        guard let now = tick.time(by: runner.clock) else { return [] }
        guard let due = tick.due else { return try tenants() }
        guard try isDue(tick.name, everySeconds: tick.everySeconds) else { return [] }
        return try runner.store.read(isSingle: true) { db in
            try db.rows("SELECT DISTINCT tenant FROM (\(due(now))) AS work ORDER BY tenant") { try $0.id(0) }
        }
    }

    private func run(_ sweep: Sweep) throws {
        for tenant in try tenants() {
            let key = SweepKey(name: sweep.name, tenant: tenant)
            for _ in 0..<Sweep.stepsAtOnceMax {
                let (place, dueAt) = sweeping.withLock { $0[key] } ?? (nil, .zero)
                let now = runner.clock.uptime()
                guard dueAt <= now else { break }
                guard let age = runner.clock.age() else { return }
                let next = try write(sweep.name, in: tenant) { try sweep.step(age, place, $0) }
                let nextAt = next == nil ? now + .seconds(Sweep.pauseSeconds) : now
                sweeping.withLock { $0[key] = (next, nextAt) }
                if thread.isStopping { return }
            }
        }
    }

    /// Returns the known tenants, also the ones that other replicas have met.
    private func tenants() throws -> [ID<Tenant>] {
        if runner.store.engine == .postgreSQL {
            try runner.store.read(isSingle: true) { try runner.tenants.refresh(in: $0) }
        }
        return Array(runner.tenants.all)
    }

    /// Does periodic work in a write transaction. Replicas do it one at a time; the next one finds little left to do.
    private func write<Result: Sendable>(
        _ name: String, in tenant: ID<Tenant>, _ body: @escaping @Sendable (Transaction) throws -> Result
    ) throws -> Result {
        try runner.store.writeAndWait { [runner] db in
            try db.lock([LockKey.tick(name).name(in: tenant)])
            return try runner.write(as: .system(tenant: tenant), in: db) { try body($0) }
        }
    }

    /// Performs steps for all tenants that have work, until the work is done or the round is long enough. An error of
    /// one tenant does not stop the others.
    private func run(_ work: LongWork) throws {
        guard try isDue(work.name, everySeconds: 1) else { return }
        var failed: [ID<Tenant>: any Error] = [:]
        for _ in 0..<Self.stepsMax {
            let now = runner.clock.now()
            let tenants = try runner.store.read(isSingle: true) { db in
                try db.rows(work.due(now)) { try $0.id(0) as ID<Tenant> }
            }.filter { failed[$0] == nil }
            if tenants.isEmpty { break }
            for tenant in tenants {
                do {
                    try work.step(runner, tenant)
                } catch {
                    failed[tenant] = error
                }
                if thread.isStopping { return }
            }
        }
        if let error = failed.values.first { throw error }
    }

    /// Prunes step by step, until a step finds less than its limit.
    private func run(_ pruning: Pruning, everySeconds: Int) throws {
        guard try isDue(pruning.name, everySeconds: everySeconds) else { return }
        for _ in 0..<Self.stepsMax {
            let age = runner.clock.age()
            let count = try runner.store.writeAndWait { db in
                try db.lock([LockKey.tick(pruning.name).name(in: "")])
                return try pruning.prune(age, db)
            }
            if count < Limits.prunedAtOnceMax { return }
        }
    }
}
