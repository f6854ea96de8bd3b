import Database
import Logging
import Threads
import Values

/// Work that comes round by itself, in a write transaction for each tenant.
struct Tick: Sendable {
    let name: String
    let everySeconds: Int
    /// Finds a row if there is anything to do, for any tenant: for what comes round so often that most of the time there
    /// is not. Nil: it is always done.
    var due: (@Sendable (_ now: Timestamp) -> SQL)?
    let body: @Sendable (Transaction) throws -> Void
}

/// Rows that are deleted when their time is over, some at once.
struct Pruning: Sendable {
    let name: String
    /// Whether there is anything to delete: looking costs a read, and no write.
    let isDue: @Sendable (_ now: Timestamp, Connection) throws -> Bool
    /// Deletes some; returns how many, at most `Limits.prunedAtOnceMax`.
    let prune: @Sendable (_ now: Timestamp, Connection) throws -> Int
}

/// Runs the work that comes round: each feature's ticks for every tenant, and the tidying of the core's own tables.
final class Ticker: Sendable {
    private struct Job: Sendable {
        let name: String
        let everySeconds: Int
        /// By the clock's uptime.
        var dueAt: Duration
        let run: @Sendable (Ticker) throws -> Void
    }

    private let runner: TransactionRunner
    private let logger: Logger
    /// As they stand before the thread starts, which has its own copy.
    private let jobs: [Job]
    private let thread = LoopThread("ticker")

    /// How often the clock is looked at.
    private static let pause: Duration = .milliseconds(250)
    /// Steps of one kind of tidying in a row; the next round goes on.
    private static let stepsMax = 100

    init(runner: TransactionRunner, ticks: [Tick], prunings: [Pruning], limiter: RateLimiter, logger: Logger) {
        self.runner = runner
        self.logger = logger
        let now = runner.clock.uptime()
        var jobs = ticks.map { tick in
            Job(name: tick.name, everySeconds: tick.everySeconds, dueAt: now + .seconds(tick.everySeconds)) {
                try $0.run(tick)
            }
        }
        let storage = StorageWatch(store: runner.store, clock: runner.clock, logger: logger)
        jobs.append(Job(name: "storage", everySeconds: 1, dueAt: now) { _ in storage.look() })
        // A look at a file costs nothing; a look at a server, by each replica, a little.
        let tidyingSeconds = runner.store.engine == .sqlite ? 1 : 10
        if runner.store.engine == .postgreSQL {
            jobs.append(
                Job(name: "rates", everySeconds: 1, dueAt: now) {
                    try RateSharing.share(limiter, at: $0.runner.clock.now(), in: $0.runner.store)
                })
        }
        jobs += ([Self.events(runner.settings)] + prunings).map { pruning in
            Job(name: pruning.name, everySeconds: tidyingSeconds, dueAt: now + .seconds(tidyingSeconds)) {
                try $0.run(pruning)
            }
        }
        self.jobs = jobs
    }

    private static func events(_ settings: Settings) -> Pruning {
        let retention = EventLog.Retention(
            seconds: Int64(settings.eventsKeptHours) * 3600, countMax: settings.eventsKeptMax)
        return Pruning(
            name: "events", isDue: { try EventLog.isPruningDue(at: $0, retention, in: $1) },
            prune: { try EventLog.prune(at: $0, retention, in: $1) })
    }

    func start() {
        thread.start { [self] in
            var jobs = jobs
            while thread.wait(atMost: Self.pause) { runDue(&jobs) }
        }
    }

    /// Lets the running job finish, and returns when the thread has.
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
        // StorageWatch says it once a minute.
        if (error as? DatabaseError)?.storageTrouble != nil { return }
        logger.error("Upkeep failed; it is tried again.", metadata: ["tick": "\(name)", "reason": "\(error)"])
    }

    private func run(_ tick: Tick) throws {
        if let due = tick.due?(runner.clock.now()) {
            guard try runner.store.read(isSingle: true, { try $0.exists(due) }) else { return }
        }
        if runner.store.engine == .postgreSQL {
            try runner.store.read(isSingle: true) { try runner.tenants.refresh(in: $0) }
        }
        for tenant in runner.tenants.all {
            let runner = runner
            try runner.store.writeAndWait { db in
                // One replica at a time: the next one finds little left to do.
                try db.lock([LockKey.tick(tick.name).name(in: tenant)])
                try runner.write(as: .system(tenant: tenant), in: db) { try tick.body($0) }
            }
            if thread.isStopping { return }
        }
    }

    /// Prunes step by step, until a step finds less than it may take.
    private func run(_ pruning: Pruning) throws {
        for _ in 0..<Self.stepsMax {
            let now = runner.clock.now()
            guard try runner.store.read({ try pruning.isDue(now, $0) }) else { return }
            let count = try runner.store.writeAndWait { db in
                try db.lock([LockKey.tick(pruning.name).name(in: "")])
                return try pruning.prune(now, db)
            }
            if count < Limits.prunedAtOnceMax { return }
        }
    }
}
