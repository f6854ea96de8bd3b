import Database
import Domain
import Logging
import MicroHTTP
import OutboundHTTP
import Rows
import Threads
import Values

/// The sender of due webhooks in the outbox: users in parallel, each user's webhooks one after the other.
///
/// One thread queries the outbox, begins attempts in transactions, and stores their outcomes; requests run on other
/// threads. So only other webhooks ever wait for a receiver. With several replicas, each sends the attempts that it has
/// begun. An attempt is leased in its row; if the process is killed, the webhook is sent again when the lease expires.
final class WebhookSender: Sendable {
    /// The state of the polling loop.
    private struct Progress {
        var turns: OutboxTurns
        /// The highest outbox number that was checked for user presence.
        var checkedNumber = 0
        var failuresInARow = 0
        /// Times by the clock's uptime.
        var polledAt: Duration?
        var prunedAt: Duration?
        var loggedAt: Duration?
        /// Whether a failure was logged and its recovery was not.
        var isFailureLogged = false
    }

    private let settings: WebhookSettings
    private let sources: WebhookSources
    private let epoch: @Sendable () -> String
    private let store: DatabaseStore
    private let clock: Clock
    /// The users with an open stream. Nil if other replicas, about which this one knows nothing, have streams too.
    private let admission: StreamAdmission?
    private let shares: TenantShares
    private let metrics: WebhookMetrics
    private let logger: Logger
    private let client: OutboundClient
    private let thread = LoopThread("webhooks")
    private let ended = EndedAttempts<(attempt: WebhookAttempt, outcome: OutboundOutcome)>()

    /// The interval of queries for due webhooks. A query of a file costs nothing; one of a server, by each replica, a
    /// little.
    private var pause: Duration { clock.pause(store.engine == .sqlite ? .milliseconds(250) : .seconds(1)) }

    init(
        _ settings: WebhookSettings, _ sources: WebhookSources, reader: TransactionReader, admission: StreamAdmission,
        metrics: MetricsRegistry, logger: Logger
    ) {
        (self.settings, self.sources, store, clock) = (settings, sources, reader.store, reader.clock)
        epoch = { [log = reader.log] in log.epoch }
        self.admission = store.engine == .sqlite ? admission : nil
        (self.logger, shares) = (logger, reader.limiter.shares)
        self.metrics = WebhookMetrics(metrics, clock: clock)
        client = OutboundClient(allowsPrivate: settings.allowsPrivate, timeoutSeconds: settings.timeoutSeconds)
    }

    func start() {
        thread.start { [self] in
            let workers = WorkerPool(name: "webhook", threads: WebhookLimits.slots, queueMax: WebhookLimits.slots)
            var progress = Progress(
                turns: OutboxTurns(tenantMax: WebhookLimits.tenantSlots) { [shares] in shares.webhooks(of: $0) })
            // No other process sends, so the previous process was killed and its leases can end.
            if store.engine == .sqlite { try? store.writeAndWait { try WebhooksFeature.endLeases(in: $0) } }
            while thread.wait(atMost: pause) { round(&progress, workers) }
            workers.shutdown()
            // Interrupted attempts are sent by the next process without waiting for the lease.
            try? record(&progress)
        }
    }

    /// Interrupts the current requests, and returns when the threads have ended.
    func stop() {
        client.stop()
        thread.stop()
    }

    private func round(_ progress: inout Progress, _ workers: WorkerPool) {
        do {
            try record(&progress)
            try makeDue(&progress)
            try prune(&progress)
            try begin(&progress, workers)
        } catch {
            // StorageWatch reports it once a minute.
            if (error as? DatabaseError)?.storageTrouble != nil { return }
            log("The webhooks could not be processed. Retrying.", ["reason": "\(error)"], &progress)
        }
    }

    // MARK: Attempts

    private func begin(_ progress: inout Progress, _ workers: WorkerPool) throws {
        let free = (isDown(progress) ? 1 : WebhookLimits.slots) - progress.turns.count
        guard free > 0, !isPausing(progress) else { return }
        progress.polledAt = clock.uptime()
        let (now, begunAt) = (clock.now(), clock.uptime())
        let running = progress.turns.numbers
        let numbers = try progress.turns.choose(free, at: now, from: WebhooksFeature.sent, in: store) {
            try WebhooksFeature.due(at: now, except: running, $0, limit: $1, in: $2)
        }.map(\.number)
        guard !numbers.isEmpty else { return }
        let leasedUntil = now.adding(seconds: Int64(settings.timeoutSeconds) + WebhookLimits.leaseSeconds)
        let attempts = try store.writeAndWait { [sources, epoch] db in
            try db.lock([LockKey.tick("webhooks").name(in: "")])
            return try WebhooksFeature.begin(numbers, at: now, leasedUntil: leasedUntil, in: db).compactMap {
                try WebhooksFeature.completed($0, sources, epoch: epoch(), at: now, in: db)
            }
        }
        for attempt in attempts {
            progress.turns.began(attempt.number, of: attempt.tenant)
            let isTaken = workers.submit { [self] in finish(attempt, send(attempt, begunAt: begunAt)) }
            if !isTaken { finish(attempt, .failed(.stopped)) }
        }
    }

    /// Posts an attempt, unless its lease might end before the request does.
    ///
    /// Replica A leases a webhook and stops: its write waits for a slow disk, or its machine is suspended. The lease ends,
    /// B sends the webhook, and A goes on. A must not send it behind B, so it breaks its attempt off.
    private func send(_ attempt: WebhookAttempt, begunAt: Duration) -> OutboundOutcome {
        guard clock.uptime() < begunAt + .seconds(WebhookLimits.leaseSeconds) else { return .failed(.stopped) }
        let request = request(attempt)
        Exits.note(webhook: request, type: attempt.type)
        return client.post(request)
    }

    private func finish(_ attempt: WebhookAttempt, _ outcome: OutboundOutcome) {
        ended.add((attempt, outcome))
        thread.wake()
    }

    private func request(_ attempt: WebhookAttempt) -> OutboundPost {
        let now = clock.now()
        let body = attempt.body(at: now)
        let signatures = settings.secrets.map {
            WebhookSignature.sign(
                id: attempt.id, seconds: now.seconds, body: body, secret: $0, hmac: WebhookSignature.hmac)
        }
        let headers = [
            (name: "webhook-id", value: attempt.id), (name: "webhook-timestamp", value: "\(now.seconds)"),
            (name: "webhook-signature", value: signatures.joined(separator: " ")),
        ]
        return OutboundPost(url: settings.url, headers: headers, body: body)
    }

    /// Stores the outcomes of attempts. Until that succeeds they count as running, and no others begin in their place.
    private func record(_ progress: inout Progress) throws {
        let now = clock.now()
        let results = try ended.store(
            { ended in
                let results = ended.map { (attempt: $0.attempt, result: result(of: $0.attempt, $0.outcome, at: now)) }
                try store.writeAndWait { db in
                    for (attempt, result) in results {
                        try WebhooksFeature.record(result, of: attempt, at: now, in: db)
                    }
                }
                return results
            },
            refused: {
                _ = log("The outcome of a webhook could not be stored. Retrying.", ["reason": "\($0)"], &progress)
            })
        for (attempt, result) in results {
            progress.turns.ended(attempt.number)
            note(result, of: attempt, &progress)
        }
    }

    private func result(
        of attempt: WebhookAttempt, _ outcome: OutboundOutcome, at now: Timestamp
    ) -> WebhookResult {
        let (error, asked): (String, Int?)
        switch outcome {
        case .answered(200..<300, _): return .accepted
        case .failed(.stopped): return .interrupted
        case .answered(let status, let seconds):
            (error, asked) = ("status_\(status)", status == 429 || status == 503 ? seconds : nil)
        case .failed(let failure): (error, asked) = (failure.rawValue, nil)
        }
        let pause = WebhookRetry.pause(afterAttempt: attempt.attempt, asked: asked, chance: .random(in: 0..<1))
        let nextAt = Timestamp(microseconds: now.microseconds + Int64(pause * 1_000_000))
        return .refused(error: error, nextAt: nextAt < attempt.retriesUntil ? nextAt : nil)
    }

    private func note(_ result: WebhookResult, of attempt: WebhookAttempt, _ progress: inout Progress) {
        switch result {
        case .interrupted: return
        case .accepted:
            metrics.noteSent(attempt.type)
            progress.failuresInARow = 0
            if progress.isFailureLogged {
                progress.isFailureLogged = false
                logger.info("Webhooks are accepted again.", metadata: ["host": "\(settings.host)"])
            }
        case .refused(let error, let nextAt):
            metrics.noteFailed(error)
            if nextAt == nil { metrics.noteDead([.expired: 1]) }
            progress.failuresInARow += 1
            let line: Logger.Metadata = ["host": "\(settings.host)", "reason": "\(error)"]
            if log("A webhook was not accepted.", line, &progress) { progress.isFailureLogged = true }
        }
    }

    // MARK: Unavailable receiver

    private func isDown(_ progress: Progress) -> Bool { progress.failuresInARow >= WebhookLimits.failuresMax }

    private func isPausing(_ progress: Progress) -> Bool {
        guard isDown(progress), let polledAt = progress.polledAt else { return false }
        return clock.uptime() < polledAt + WebhookLimits.downPause
    }

    /// Logs at most once a minute. The message describes a state of the receiver, and would otherwise fill the log.
    @discardableResult
    private func log(_ message: Logger.Message, _ metadata: Logger.Metadata, _ progress: inout Progress) -> Bool {
        let now = clock.uptime()
        if let last = progress.loggedAt, now < last + .seconds(60) { return false }
        progress.loggedAt = now
        logger.warning(message, metadata: metadata)
        return true
    }

    // MARK: Periodic work

    /// Makes the notifications of users without an open stream due, if that is known.
    private func makeDue(_ progress: inout Progress) throws {
        guard settings.isImmediate, let admission else { return }
        let (now, last) = (clock.now(), progress.checkedNumber)
        let (newest, owners) = try store.read { db in
            let newest = try WebhooksFeature.newest(in: db)
            return (newest, newest > last ? try WebhooksFeature.waitingForTheirTime(after: last, at: now, in: db) : [])
        }
        let offlineOwners = owners.filter { !admission.hasStream($0) }
        if !offlineOwners.isEmpty {
            try store.writeAndWait { db in
                for owner in offlineOwners { try WebhooksFeature.makeDue(of: owner, at: now, in: db) }
            }
        }
        progress.checkedNumber = max(last, newest)
    }

    private func prune(_ progress: inout Progress) throws {
        let uptime = clock.uptime()
        if let last = progress.prunedAt, uptime < last + WebhookLimits.upkeepPause { return }
        let (now, age) = (clock.now(), clock.age())
        var figures = try store.read { try WebhooksFeature.figures(at: now, in: $0) }
        let pauseSeconds = max(Int64(WebhookRetry.pauseMax), Int64(settings.afterSeconds))
        if figures.needsUpkeep(at: now, age, pauseSeconds: pauseSeconds) {
            let dead = try store.writeAndWait { db in
                try db.lock([LockKey.tick("webhooks").name(in: "")])
                return try WebhooksFeature.prune(at: now, age, pauseSeconds: pauseSeconds, in: db)
            }
            metrics.noteDead(dead)
            figures = try store.read { try WebhooksFeature.figures(at: now, in: $0) }
        }
        metrics.note(figures, throttled: progress.turns.throttledCount)
        progress.prunedAt = uptime
    }
}

/// The reads of other features that a webhook needs at the moment of sending. The start of the service passes them,
/// because features do not know one another.
struct WebhookSources: Sendable {
    /// Returns the unread messages of a member; nil if there are none.
    let message: @Sendable (ID<Conversation>, Owner, DatabaseConnection) throws -> UnreadConversation?
    let preferences: @Sendable (Owner, DatabaseConnection) throws -> Preferences
}
