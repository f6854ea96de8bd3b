import Database
import Domain
import Foundation
import Logging

/// Runs the work that comes round: each feature's ticks for every tenant, and the tidying of the core's own tables.
///
/// `@unchecked Sendable`: the variables are only touched while `condition` is locked, `dueAt` on its own thread.
final class Ticker: @unchecked Sendable {
    private struct Job {
        let name: String
        let everySeconds: Int
        let run: () throws -> Void
        var dueAt: Timestamp
    }

    private let runner: TransactionRunner
    private let logger: Logger
    /// Guards `isStopping` and `isRunning`.
    private let condition = NSCondition()
    private var isStopping = false
    private var isRunning = false
    private var jobs: [Job] = []

    /// How often the clock is looked at.
    private static let pauseSeconds = 0.25
    /// Steps of one kind of tidying in a row; the next round goes on.
    private static let stepsMax = 100

    init(runner: TransactionRunner, ticks: [Tick], limiter: RateLimiter, logger: Logger) {
        self.runner = runner
        self.logger = logger
        let now = runner.clock.now()
        jobs = ticks.map { tick in
            Job(
                name: tick.name, everySeconds: tick.everySeconds, run: { [unowned self] in try self.run(tick) },
                dueAt: now.adding(seconds: Int64(tick.everySeconds)))
        }
        // A look at a file costs nothing; a look at a server, by each replica, a little.
        let tidyingSeconds = runner.store.engine == .sqlite ? 1 : 10
        let tidying: [(String, (Ticker) throws -> Int)] = [
            ("events", { try $0.pruneEvents() }), ("idempotency", { try $0.pruneAnswers() }),
        ]
        if runner.store.engine == .postgreSQL {
            jobs.append(
                Job(
                    name: "rates", everySeconds: 1,
                    run: { try RateSharing.share(limiter, at: runner.clock.now(), in: runner.store) }, dueAt: now))
        }
        for (name, prune) in tidying {
            jobs.append(
                Job(
                    name: name, everySeconds: tidyingSeconds,
                    run: { [unowned self] in
                        for _ in 0..<Self.stepsMax where try prune(self) < Limits.prunedAtOnceMax { return }
                    }, dueAt: now.adding(seconds: Int64(tidyingSeconds))))
        }
    }

    func start() {
        condition.withLock { isRunning = true }
        let thread = Thread { [self] in
            while !waitForStop() { runDue() }
            condition.withLock {
                isRunning = false
                condition.broadcast()
            }
        }
        thread.name = "ticker"
        thread.start()
    }

    /// Lets the running job finish, and returns when the thread has.
    func stop() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
            while isRunning { condition.wait() }
        }
    }

    private func waitForStop() -> Bool {
        condition.withLock {
            if !isStopping { _ = condition.wait(until: Date(timeIntervalSinceNow: Self.pauseSeconds)) }
            return isStopping
        }
    }

    private func runDue() {
        let now = runner.clock.now()
        for index in jobs.indices where jobs[index].dueAt <= now {
            do {
                try jobs[index].run()
            } catch {
                logger.error(
                    "Upkeep failed; it is tried again.",
                    metadata: ["tick": "\(jobs[index].name)", "reason": "\(error)"])
            }
            jobs[index].dueAt = now.adding(seconds: Int64(jobs[index].everySeconds))
            if condition.withLock({ isStopping }) { return }
        }
    }

    private func run(_ tick: Tick) throws {
        if let isDue = tick.isDue {
            let now = runner.clock.now()
            guard try runner.store.read(isSingle: true, { try isDue($0, now) }) else { return }
        }
        if runner.store.engine == .postgreSQL {
            try runner.store.read(isSingle: true) { try runner.tenants.refresh(in: $0) }
        }
        for tenant in runner.tenants.all {
            let runner = runner
            try runner.store.writeAndWait { db in
                // One replica at a time: the next one finds little left to do.
                try db.lock([Subject.tick(tick.name).name(in: tenant)])
                try runner.write(as: .system(tenant: tenant), in: db) { try tick.body($0) }
            }
            if condition.withLock({ isStopping }) { return }
        }
    }

    private func pruneEvents() throws -> Int {
        let settings = runner.workshop.settings
        let oldest = runner.clock.now().adding(seconds: -Int64(settings.eventsKeptHours) * 3600)
        // Most of the time nothing is due: looking costs a read, and no write.
        let isDue = try runner.store.read { db in
            try EventLog.isPruningDue(before: oldest, keeping: settings.eventsKeptMax, in: db)
        }
        guard isDue else { return 0 }
        return try runner.store.writeAndWait { db in
            try db.lock([Subject.tick("events").name(in: "")])
            return try EventLog.prune(before: oldest, keeping: settings.eventsKeptMax, in: db)
        }
    }

    private func pruneAnswers() throws -> Int {
        let now = runner.clock.now()
        guard try runner.store.read({ db in try Idempotency.isPruningDue(at: now, in: db) }) else { return 0 }
        return try runner.store.writeAndWait { db in
            try db.lock([Subject.tick("idempotency").name(in: "")])
            return try Idempotency.prune(at: now, in: db)
        }
    }
}
