import Database
import Domain
import Values

/// One running attempt to send a webhook, as stored in the outbox.
struct WebhookAttempt: Sendable {
    let number: Int
    let tenant: ID<Tenant>
    /// Nil for the booking of a customer without an account.
    let userId: ID<User>?
    /// The same in every attempt.
    let id: String
    let lane: String
    let type: WebhookType
    let subject: String
    /// 1 for the first attempt.
    let attempt: Int
    let createdAt: Timestamp
    let retriesUntil: Timestamp
    let leasedUntil: Timestamp
    /// The user's preferences, for quiet hours.
    fileprivate(set) var preferences: Preferences?
    /// A JSON object.
    fileprivate(set) var data: [UInt8]
    /// The user's counts of this moment.
    fileprivate(set) var badges: SentBadges?

    func body(at now: Timestamp) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("type", type)
            writer.member("timestamp", createdAt)
            writer.member("data") { writer in
                if let preferences {
                    let minute = TimeZones.minuteOfDay(now, preferences)
                    writer.member("quietHours", preferences.quietHours?.contains(minuteOfDay: minute) ?? false)
                }
                if let badges { writer.member("badges", badges) }
                writer.members(of: data)
            }
        }
    }
}

/// The outcome of an attempt.
enum WebhookResult: Sendable {
    case accepted
    /// The receiver did not accept it.
    ///
    /// - Parameter nextAt: The time of the retry, or nil after the last attempt.
    case refused(error: String, nextAt: Timestamp?)
    /// The end of the process interrupted it.
    case interrupted
}

/// The statements of the sender.
extension WebhooksFeature {
    private static let sending = Unscoped.bookkeeping("the sender sends the due webhooks of all tenants")

    private static let unreached: SQL = "('notification.unreached', 'message.unreached')"

    // MARK: Due webhooks

    /// Selects the first webhook of each lane that may be sent now. A user's notifications never overtake one another,
    /// and nothing overtakes a webhook that is already due, whether it is being sent or waits for a retry.
    private static func sendableCondition(at now: Timestamp) -> SQL {
        """
        o.state = 0 AND o.next_at <= \(now) AND o.leased_until <= \(now) AND o.gives_up_at > \(now) AND NOT EXISTS (
            SELECT 1 FROM \(outbox, unscoped: sending) AS q
            WHERE q.state = 0 AND q.tenant = o.tenant AND q.lane = o.lane AND q.number < o.number
                AND q.gives_up_at > \(now) AND (q.due_at <= \(now) OR (q.type IN \(unreached) AND o.type IN \(unreached))))
        """
    }

    /// The outbox as the sender's statements name it.
    static let sent: SQL = "\(outbox, unscoped: sending)"

    struct Due: OutboxRow {
        let number: Int
        let tenant: ID<Tenant>
    }

    /// Returns the due webhooks, oldest first.
    ///
    /// - Parameters:
    ///   - busy: The webhooks that this process is already sending.
    ///   - condition: A further condition.
    static func due(
        at now: Timestamp, except busy: Set<Int>, _ condition: SQL?, limit: Int, in db: DatabaseConnection
    ) throws -> [Due] {
        let notBusyCondition: SQL? = busy.isEmpty ? nil : "o.number NOT IN \(values: busy.sorted())"
        return try db.rows(
            """
            SELECT o.number, o.tenant FROM \(outbox, unscoped: sending) AS o
            WHERE \(SQL.all([condition, sendableCondition(at: now), notBusyCondition]))
            ORDER BY o.next_at, o.number LIMIT \(limit)
            """
        ) { Due(number: try $0.integer(0), tenant: try $0.id(1)) }
    }

    /// Begins attempts of those webhooks that still exist and may still be sent. Once this commits, it can no longer be
    /// known whether they were sent.
    ///
    /// The caller holds the lock of senders: each replica sees what another has begun.
    static func begin(
        _ numbers: [Int], at now: Timestamp, leasedUntil: Timestamp, in db: DatabaseConnection
    ) throws -> [WebhookAttempt] {
        try db.rows(
            """
            UPDATE \(outbox, unscoped: sending)
            SET attempts = attempts + 1, tried_at = \(now), leased_until = \(leasedUntil)
            WHERE number IN (SELECT o.number FROM webhook_outbox AS o
                WHERE o.number IN \(values: numbers) AND \(sendableCondition(at: now)))
            RETURNING number, tenant, id, lane, type, subject, attempts, created_at, gives_up_at, quiet_start, quiet_end,
                time_zone, data, user_id
            """
        ) { row in
            WebhookAttempt(
                number: try row.integer(0), tenant: try row.id(1), userId: try row.optionalID(13), id: try row.text(2),
                lane: try row.text(3),
                type: try row.word(4, orElse: "a stored webhook has an unknown type"), subject: try row.text(5),
                attempt: try row.integer(6), createdAt: try row.moment(7), retriesUntil: try row.moment(8),
                leasedUntil: leasedUntil, preferences: try preferences(row, from: 9), data: try row.bytes(12))
        }.sorted { $0.number < $1.number }
    }

    /// Adds what an attempt reads at the moment of sending.
    ///
    /// - Returns: Nil if there is nothing to send any more. Then the webhook is deleted.
    static func completed(
        _ attempt: WebhookAttempt, _ sources: WebhookSources, epoch: String, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> WebhookAttempt? {
        guard let userId = attempt.userId else { return attempt }
        var attempt = attempt
        let owner = Owner(tenant: attempt.tenant, userId: userId)
        attempt.badges = try BadgeLedger.counts(of: owner, at: now, in: db).sent(in: epoch)
        guard attempt.type == .messageUnreached else { return attempt }
        guard let unread = try sources.message(ID(attempt.subject), owner, db) else {
            try db.run("DELETE FROM \(outbox, unscoped: sending) WHERE number = \(attempt.number)")
            return nil
        }
        attempt.data = JSONWriter.bytes(unread)
        attempt.preferences = try sources.preferences(owner, db)
        return attempt
    }

    // MARK: Outcomes

    static func record(
        _ result: WebhookResult, of attempt: WebhookAttempt, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        // Another replica may have begun the next attempt if this one exceeded its lease.
        let isLatest: SQL = "attempts = \(attempt.attempt)"
        let own: SQL = "number = \(attempt.number) AND state = 0 AND \(isLatest)"
        let isThere: Bool
        switch result {
        case .accepted where attempt.type.isUnreached:
            isThere =
                try db.run(
                    """
                    UPDATE \(outbox, unscoped: sending) SET state = 1, settled_at = \(now), data = '',
                        leased_until = CASE WHEN \(isLatest) THEN 0 ELSE leased_until END
                    WHERE number = \(attempt.number) AND state = 0
                    """) > 0
        case .accepted:
            isThere = try db.run("DELETE FROM \(outbox, unscoped: sending) WHERE number = \(attempt.number)") > 0
        case .refused(let error, let nextAt?):
            isThere =
                try db.run(
                    """
                    UPDATE \(outbox, unscoped: sending) SET next_at = \(nextAt), leased_until = 0, error = \(error)
                    WHERE \(own)
                    """) > 0
        case .refused(let error, nil):
            isThere = try markDead(.expired, where: own, error: error, at: now, in: db) > 0
        case .interrupted:
            isThere = try db.run("UPDATE \(outbox, unscoped: sending) SET leased_until = 0 WHERE \(own)") > 0
        }
        guard !isThere, attempt.type.isUnreached else { return }
        // It was seen meanwhile. Its withdrawal has waited for the end of this attempt, if it was the latest.
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending) SET next_at = \(now)
            WHERE tenant = \(attempt.tenant) AND lane = \(attempt.lane) AND state = 0 AND attempts = 0
                AND type IN ('notification.withdrawn', 'message.withdrawn') AND subject = \(attempt.subject)
                AND next_at = \(attempt.leasedUntil) AND next_at > \(now)
            """)
    }

    private static func markDead(
        _ why: WebhookFailureReason, where condition: SQL, error: String? = nil, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> Int {
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending)
            SET state = 2, settled_at = \(now), leased_until = 0, reason = \(why.rawValue), error = coalesce(\(error), error)
            WHERE \(condition)
            """)
    }

    /// Ends all leases, so that begun attempts are repeated without waiting.
    static func endLeases(in db: DatabaseConnection) throws {
        try db.run("UPDATE \(outbox, unscoped: sending) SET leased_until = 0 WHERE state = 0 AND leased_until > 0")
    }

    // MARK: Early delivery

    /// Returns the highest number assigned so far.
    static func newest(in db: DatabaseConnection) throws -> Int {
        try db.integer("SELECT max(number) FROM \(outbox, unscoped: sending)") ?? 0
    }

    /// Returns the users with notifications or messages that are not due yet, among those written after a number.
    static func waitingForTheirTime(after number: Int, at now: Timestamp, in db: DatabaseConnection) throws -> [Owner] {
        try db.rows(
            """
            SELECT DISTINCT tenant, user_id FROM \(outbox, unscoped: sending)
            WHERE number > \(number) AND state = 0 AND type IN \(unreached) AND due_at > \(now)
            """
        ) { Owner(tenant: try $0.id(0), userId: try $0.id(1)) }
    }

    /// Makes all waiting notifications and messages of a user due, in order.
    static func makeDue(of owner: Owner, at now: Timestamp, in db: DatabaseConnection) throws {
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending) SET due_at = \(now), next_at = \(now)
            WHERE tenant = \(owner.tenant) AND lane = \(WebhookLane.of(owner.userId)) AND state = 0
                AND type IN \(unreached) AND attempts = 0 AND due_at > \(now)
            """)
    }

    // MARK: Upkeep

    /// The state of the outbox.
    struct Figures: Sendable {
        var waiting = 0
        var dead = 0
        /// The due time of the webhook that has waited longest.
        var oldestDueAt: Timestamp?
        /// The tenants with the most due webhooks.
        fileprivate(set) var dueByTenant: [(ID<Tenant>, Int)] = []
        fileprivate var nextEndAt: Timestamp?
        fileprivate var oldestSentAt: Timestamp?
        fileprivate var oldestDeadAt: Timestamp?
        fileprivate var lastAttemptAt: Timestamp?
        /// The latest time at which a waiting row was written or attempted.
        fileprivate var lastTouchedAt: Timestamp?

        /// Whether upkeep is needed.
        ///
        /// - Parameter pauseSeconds: The longest allowed wait for the next attempt.
        func needsUpkeep(at now: Timestamp, _ age: AgeTime?, pauseSeconds: Int64) -> Bool {
            waiting > WebhookLimits.waitingMax
                || (lastAttemptAt.map { $0 > now.adding(seconds: pauseSeconds) } ?? false)
                || (lastTouchedAt.map { $0 > now.adding(seconds: WebhookLimits.clockSkewSeconds) } ?? false)
                || dead > WebhookLimits.deadMax || (age.map(hasExpired) ?? false)
        }

        private func hasExpired(_ age: AgeTime) -> Bool {
            (nextEndAt.map { $0 <= age.now } ?? false)
                || (oldestSentAt.map { $0 < age.end(ofSeconds: WebhookLimits.sentSeconds) } ?? false)
                || (oldestDeadAt.map { $0 < age.end(ofSeconds: WebhookLimits.deadSeconds) } ?? false)
        }
    }

    static func figures(at now: Timestamp, in db: DatabaseConnection) throws -> Figures {
        let table = sent
        var figures =
            try db.row(
                """
                SELECT (SELECT count(*) FROM \(table) WHERE state = 0), (SELECT count(*) FROM \(table) WHERE state = 2),
                    (SELECT min(due_at) FROM \(table) WHERE state = 0), (SELECT min(gives_up_at) FROM \(table) WHERE state = 0),
                    (SELECT min(settled_at) FROM \(table) WHERE state = 1),
                    (SELECT min(settled_at) FROM \(table) WHERE state = 2), (SELECT max(next_at) FROM \(table) WHERE state = 0),
                    (SELECT max(\(touchedAt)) FROM \(table) AS o WHERE state = 0)
                """
            ) { row in
                Figures(
                    waiting: try row.integer(0), dead: try row.integer(1), oldestDueAt: try row.optionalMoment(2),
                    nextEndAt: try row.optionalMoment(3), oldestSentAt: try row.optionalMoment(4),
                    oldestDeadAt: try row.optionalMoment(5), lastAttemptAt: try row.optionalMoment(6),
                    lastTouchedAt: try row.optionalMoment(7))
            } ?? Figures()
        if figures.waiting > 0 { figures.dueByTenant = try OutboxTurns.longest(from: sent, at: now, in: db) }
        return figures
    }

    /// The time when a row was last written or attempted.
    private static let touchedAt: SQL =
        "CASE WHEN coalesce(o.tried_at, 0) > o.created_at THEN o.tried_at ELSE o.created_at END"

    /// Corrects the times of rows that were written or attempted later than now. The clock was ahead then, and their
    /// next attempts would be too late by the same difference. The rows themselves reveal this, even to a process that
    /// starts after the clock was set.
    private static func setBack(to now: Timestamp, in db: DatabaseConnection) throws {
        let ahead = try db.rows(
            """
            SELECT number, \(touchedAt) FROM \(outbox, unscoped: sending) AS o
            WHERE state = 0 AND \(touchedAt) > \(now.adding(seconds: WebhookLimits.clockSkewSeconds))
            ORDER BY number LIMIT \(Limits.prunedAtOnceMax)
            """
        ) { (number: try $0.integer(0), touchedAt: try $0.moment(1)) }
        for row in ahead {
            let step = row.touchedAt.microseconds - now.microseconds
            try db.run(
                """
                UPDATE \(outbox, unscoped: sending)
                SET due_at = due_at - \(step), next_at = next_at - \(step), gives_up_at = gives_up_at - \(step),
                    leased_until = CASE WHEN leased_until > 0 THEN leased_until - \(step) ELSE 0 END,
                    created_at = CASE WHEN created_at > \(now) THEN \(now) ELSE created_at END,
                    tried_at = CASE WHEN tried_at > \(now) THEN \(now) ELSE tried_at END
                WHERE number = \(row.number)
                """)
        }
    }

    /// Marks webhooks that are too old or too many as dead, and deletes obsolete ones, a limited number at once.
    ///
    /// - Parameters:
    ///   - age: Nil finds nothing too old, because the time is in doubt.
    ///   - pauseSeconds: The longest allowed wait for the next attempt. A row that would wait longer was written when the
    ///     clock was ahead, and is due.
    /// - Returns: The number of dead webhooks by reason.
    static func prune(
        at now: Timestamp, _ age: AgeTime?, pauseSeconds: Int64, waitingMax: Int = WebhookLimits.waitingMax,
        deadMax: Int = WebhookLimits.deadMax,
        in db: DatabaseConnection
    ) throws -> [WebhookFailureReason: Int] {
        try setBack(to: now, in: db)
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending) SET due_at = \(now), next_at = \(now), leased_until = 0
            WHERE state = 0 AND next_at > \(now.adding(seconds: pauseSeconds))
            """)
        let expired = try age.map { age in
            try markDead(
                .expired, where: "state = 0 AND gives_up_at <= \(age.now) AND leased_until <= \(now)", at: now, in: db)
        }
        // By the order in which they were written, starting at the newest.
        let excess: SQL = """
            state = 0 AND leased_until <= \(now) AND number <= (SELECT number FROM webhook_outbox
                WHERE state = 0 ORDER BY number DESC LIMIT 1 OFFSET \(waitingMax))
            """
        let evicted = try markDead(.outboxFull, where: excess, at: now, in: db)
        if let age { try forget(age, in: db) }
        try db.run(
            """
            DELETE FROM \(outbox, unscoped: sending) WHERE number IN (
                SELECT number FROM webhook_outbox WHERE state = 2
                ORDER BY settled_at DESC, number DESC LIMIT \(Limits.prunedAtOnceMax) OFFSET \(deadMax))
            """)
        return [.expired: expired ?? 0, .outboxFull: evicted].filter { $0.value > 0 }
    }

    /// Deletes the rows of sent and dead webhooks.
    private static func forget(_ age: AgeTime, in db: DatabaseConnection) throws {
        let bounds: [SQL] = [
            "state = 1 AND settled_at < \(age.end(ofSeconds: WebhookLimits.sentSeconds))",
            "state = 2 AND settled_at < \(age.end(ofSeconds: WebhookLimits.deadSeconds))",
        ]
        for bound in bounds {
            try db.run(
                """
                DELETE FROM \(outbox, unscoped: sending) WHERE number IN (
                    SELECT number FROM webhook_outbox WHERE \(bound) LIMIT \(Limits.prunedAtOnceMax))
                """)
        }
    }
}
