import Database
import Domain
import Logging
import Push
import Threads
import Values

/// The sender of due push messages: devices in parallel, each device's messages one after the other.
///
/// One thread queries the outbox, begins attempts in transactions, reads their content, and stores their outcomes. The
/// requests run together on the thread of ``PushClient``. With several replicas, each sends the attempts that it has
/// begun. An attempt is leased in its row; if the process is killed, the message is sent again when the lease expires.
final class PushSender: Sendable {
    /// The state of the polling loop.
    private struct Progress {
        var turns: OutboxTurns
        /// Times by the clock's uptime.
        var prunedAt: Duration?
        var loggedAt: Duration?
        var nextDueAt: Timestamp?
        /// Whether a message came after the last look at the streams.
        var mustLookAgain = false
    }

    private let settings: PushSettings
    private let sources: PushSources
    private let store: DatabaseStore
    private let clock: Clock
    let admission: StreamAdmission
    private let shares: TenantShares
    private let metrics: PushMetrics
    private let logger: Logger
    private let client: PushClient
    private let thread = LoopThread("push-outbox")
    private let ended = EndedAttempts<(delivery: PushDelivery, outcome: PushOutcome)>()

    init(
        _ settings: PushSettings, _ sources: PushSources, reader: TransactionReader, admission: StreamAdmission,
        metrics: MetricsRegistry, logger: Logger
    ) {
        (self.settings, self.sources, self.admission, self.logger) = (settings, sources, admission, logger)
        (store, clock, shares) = (reader.store, reader.clock, reader.limiter.shares)
        self.metrics = PushMetrics(metrics, clock: clock)
        client = PushClient(settings, clock: clock)
        reader.senders.add(thread)
    }

    func start() {
        client.start()
        thread.start { [self] in
            var progress = Progress(
                turns: OutboxTurns(tenantMax: PushOutboxLimits.tenantSlots) { [shares] in shares.push(of: $0) })
            // No other process sends, so the previous process was killed and its leases can end.
            if store.engine == .sqlite { try? store.writeAndWait { try PushFeature.endLeases(in: $0) } }
            do { try PushFeature.nameAgain(settings.keys, in: store) } catch {
                log("Devices of an earlier version could not be named again.", ["reason": "\(error)"], &progress)
            }
            warnOfUnreadable()
            while thread.wait(atMost: pause(progress)) { round(&progress) }
            // Interrupted attempts are sent by the next process without waiting for the lease.
            try? record(&progress)
        }
    }

    /// Interrupts the current requests, and returns when the threads have ended.
    func stop() {
        client.stop()
        thread.stop()
    }

    /// The time until the next look: when the next known message is due, or another replica may have written one.
    private func pause(_ progress: Progress) -> Duration {
        let longest: Duration = store.engine == .sqlite ? .seconds(5) : .seconds(1)
        if progress.mustLookAgain { return clock.pause(.milliseconds(1)) }
        guard let nextDueAt = progress.nextDueAt else { return clock.pause(longest) }
        let wait = Duration.microseconds(nextDueAt.microseconds - clock.now().microseconds)
        return clock.pause(min(longest, max(.milliseconds(1), wait)))
    }

    private func round(_ progress: inout Progress) {
        do {
            try record(&progress)
            try postponePresent()
            let lookedAt = try begin(&progress)
            try prune(&progress)
            progress.nextDueAt = try store.read { try PushFeature.nextDue(after: lookedAt, in: $0) }
        } catch {
            (progress.nextDueAt, progress.mustLookAgain) = (nil, false)
            // StorageWatch reports it once a minute.
            if (error as? DatabaseError)?.storageTrouble != nil { return }
            log("Push messages could not be processed. Retrying.", ["reason": "\(error)"], &progress)
        }
    }

    // MARK: Presence

    /// Postpones the new messages of users that have a stream on this replica.
    private func postponePresent() throws {
        let patience = settings.afterSeconds
        guard patience > 0 else { return }
        let now = clock.now()
        let owners = try store.read { try PushFeature.ownersOfEarly(at: now, patience: patience, in: $0) }
        let present = owners.filter { admission.hasStream($0) }
        guard !present.isEmpty else { return }
        try store.writeAndWait { db in
            try db.lock([LockKey.tick("push").name(in: "")])
            try PushFeature.lock(present, in: db)
            for owner in present { try PushFeature.postpone(of: owner, patience: patience, in: db) }
        }
    }

    // MARK: Attempts

    /// Begins the attempts of due messages.
    ///
    /// - Returns: The time of the last query for due messages. Messages that were due then and still wait are begun when
    ///   another attempt ends, which wakes the thread.
    private func begin(_ progress: inout Progress) throws -> Timestamp {
        var now = clock.now()
        progress.mustLookAgain = false
        while progress.turns.count < PushOutboxLimits.slots {
            now = clock.now()
            let limit = min(PushOutboxLimits.slots - progress.turns.count, PushOutboxLimits.rowsAtOnceMax)
            let running = progress.turns.numbers
            let due = try progress.turns.choose(limit, at: now, from: PushFeature.sent, in: store) {
                try PushFeature.due(
                    at: now, patience: settings.afterSeconds, except: running, settings.keys, $0, limit: $1, in: $2)
            }
            // A message that came after the last look at the streams waits for the next look.
            let sendable = due.filter { !($0.isEarly && admission.hasStream($0.owner)) }
            progress.mustLookAgain = sendable.count < due.count
            guard !sendable.isEmpty else { return now }
            let leasedUntil = now.adding(seconds: Int64(settings.timeoutSeconds) + PushOutboxLimits.leaseSeconds)
            let deliveries = try store.writeAndWait { [settings, sources, now] db in
                try PushFeature.begin(sendable, at: now, leasedUntil: leasedUntil, settings, sources, in: db)
            }
            let begunAt = clock.uptime()
            for delivery in deliveries {
                progress.turns.began(delivery.attempt.number, of: delivery.attempt.owner.tenant)
                send(delivery, begunAt: begunAt)
            }
        }
        return now
    }

    /// Warns the operator at the start if the keys were replaced by others.
    private func warnOfUnreadable() {
        let count = try? store.read { [keys = settings.keys] in try PushFeature.unreadableCount(keys, in: $0) }
        guard let count, count > 0 else { return }
        logger.warning(
            """
            Devices are encrypted with a key that BELLHOP_PUSH_KEYS does not contain. They receive nothing. Add the \
            former key behind the new one, or let the apps register again. See Docs/push.md.
            """, metadata: ["devices": "\(count)"])
    }

    /// Sends a message, unless its lease might end before the request does (see ``WebhookSender``).
    private func send(_ delivery: PushDelivery, begunAt: Duration) {
        guard clock.uptime() < begunAt + .seconds(PushOutboxLimits.leaseSeconds) else {
            return finish(delivery, .interrupted)
        }
        client.send(delivery.message, to: delivery.target) { [self] in finish(delivery, $0) }
    }

    private func finish(_ delivery: PushDelivery, _ outcome: PushOutcome) {
        ended.add((delivery, outcome))
        thread.wake()
    }

    /// Stores the outcomes of attempts. Until that succeeds they count as running, and no others begin in their place.
    private func record(_ progress: inout Progress) throws {
        let now = clock.now()
        let log = { (error: any Error) in self.log(Self.unstored, ["reason": "\(error)"], &progress) }
        let stored = try ended.store(
            { ended in
                let results = ended.map { ended in
                    let result = PushFeature.result(
                        of: ended.outcome, ended.delivery, at: now, chance: .random(in: 0..<1))
                    return (delivery: ended.delivery, result: result)
                }
                try store.writeAndWait { try PushFeature.record(results, at: now, in: $0) }
                return ended
            }, refused: log)
        for (delivery, outcome) in stored {
            progress.turns.ended(delivery.attempt.number)
            note(outcome, of: delivery, &progress)
        }
    }

    private static let unstored: Logger.Message = "The outcome of a push message could not be stored. Retrying."

    private func note(_ outcome: PushOutcome, of delivery: PushDelivery, _ progress: inout Progress) {
        let platform = delivery.platform
        switch outcome {
        case .interrupted: return
        case .accepted: metrics.noteSent(platform, delivery.attempt.type)
        case .gone(let reason, _):
            metrics.noteFailed(platform, reason)
            metrics.noteRemoved(platform)
        case .refused(let reason), .failed(let reason, _): metrics.noteFailed(platform, reason)
        case .misconfigured(let reason):
            metrics.noteFailed(platform, reason)
            // A browser may have subscribed with a key of its own, which says nothing about the settings.
            if platform != .webPush { metrics.noteMisconfigured(platform) }
            log(
                "A push service does not accept the key or another setting. See Docs/push.md.",
                ["platform": "\(platform.rawValue)", "reason": "\(reason)"], &progress)
        }
    }

    /// Logs at most once a minute. The message describes a state that lasts, and would otherwise fill the log.
    private func log(_ message: Logger.Message, _ metadata: Logger.Metadata, _ progress: inout Progress) {
        let now = clock.uptime()
        if let last = progress.loggedAt, now < last + .seconds(60) { return }
        progress.loggedAt = now
        logger.warning(message, metadata: metadata)
    }

    // MARK: Upkeep

    private func prune(_ progress: inout Progress) throws {
        let uptime = clock.uptime()
        if let last = progress.prunedAt, uptime < last + .seconds(10) { return }
        let (now, age) = (clock.now(), clock.age())
        var figures = try store.read { try PushFeature.figures(at: now, age, in: $0) }
        if figures.needsUpkeep {
            metrics.noteUnsent(try prune(at: now, age))
            figures = try store.read { try PushFeature.figures(at: now, age, in: $0) }
        }
        metrics.note(figures, throttled: progress.turns.throttledCount)
        progress.prunedAt = uptime
    }

    /// Returns the number of messages that were deleted unsent.
    private func prune(at now: Timestamp, _ age: AgeTime?) throws -> Int {
        var unsent = 0
        while true {
            let part = try store.writeAndWait { db in
                try db.lock([LockKey.tick("push").name(in: "")])
                return try PushFeature.prune(at: now, age, in: db)
            }
            unsent += part.unsent
            guard part.isMore else { return unsent }
        }
    }
}

extension PushClient {
    /// Creates the client of the settings.
    convenience init(_ push: PushSettings, clock: Clock) {
        self.init(
            apns: push.apns.map { APNs($0) }, fcm: push.fcm.map { FCM($0) }, webPush: push.webPush.map { WebPush($0) },
            allowsPrivate: push.allowsPrivate, certificates: push.certificates, timeoutSeconds: push.timeoutSeconds,
            clock: { clock.now() }, observer: Exits.pushObserver)
    }
}
