import Database
import Domain
import Values

/// The statements of the sender.
extension Outbox {
    /// A value of the first waiting message of the lane `l`.
    ///
    /// It may be selected, but must not be the condition of a join: under row-level security PostgreSQL would read the
    /// whole table for such a condition.
    private static func first(_ value: SQL) -> SQL {
        """
        (SELECT \(value) FROM \(allMessages) AS q
        WHERE q.state = 0 AND q.tenant = l.tenant AND q.lane = l.lane ORDER BY q.due_at, q.number LIMIT 1)
        """
    }

    // MARK: Due lanes

    /// A lane whose first message may be sent.
    struct Due: Sendable {
        let id: Int
        let tenant: ID<Tenant>
        let owner: Owner?
        /// Whether its first message is sent before its user had time to see the subject. That is right only if the user
        /// has no stream.
        let isEarly: Bool
        /// Whether the lane pauses after a failure.
        var isPaused = false
        var nextAt = Timestamp(microseconds: 0)
    }

    private static let isEarly: SQL = "CASE WHEN q.due_at < q.patient_until THEN 1 ELSE 0 END"

    /// Returns the routes on which something waits.
    static func routes(in db: DatabaseConnection) throws -> [String] {
        return try db.rows(
            """
            WITH RECURSIVE walk (route, steps) AS (
                SELECT (SELECT l.route FROM \(allLanes) AS l ORDER BY l.route LIMIT 1), 1
                UNION ALL
                SELECT (SELECT l.route FROM \(allLanes) AS l WHERE l.route > walk.route ORDER BY l.route LIMIT 1),
                    walk.steps + 1
                FROM walk WHERE walk.route IS NOT NULL AND walk.steps < \(OutboxLimits.routesMax)
            )
            SELECT route FROM walk WHERE route IS NOT NULL
            """
        ) { try $0.text(0) }
    }

    /// Returns the due lanes of a route, the one that has waited longest first.
    ///
    /// - Parameters:
    ///   - busy: The lanes whose attempts this process has not ended yet.
    ///   - condition: A further condition on the lane `l`.
    static func due(
        _ route: String, at now: Timestamp, except busy: Set<Int>, _ condition: SQL?, latestFirst: Bool = false,
        limit: Int, in db: DatabaseConnection
    ) throws -> [Due] {
        let notBusy: SQL? = busy.isEmpty ? nil : "l.id NOT IN \(values: busy.sorted())"
        return try lookedAt(
            .all(["l.route = \(route)", "l.next_at <= \(now)", condition, notBusy]), latestFirst: latestFirst,
            limit: limit, in: db)
    }

    /// The place of a lane in the order of a look.
    struct Place: Comparable {
        let nextAt: Timestamp
        /// Larger than that of any lane, for the place behind all lanes of a time.
        var id = Int.max

        static func < (a: Self, b: Self) -> Bool { (a.nextAt, a.id) < (b.nextAt, b.id) }
    }

    /// Returns the lanes whose first message is sent soon, and before its user had time to see the subject.
    ///
    /// A look reads a bounded number of lanes, and most may have other messages. So the next look continues behind them.
    ///
    /// - Returns: The lanes, and the place where the next look continues; nil for the first lane again.
    static func early(
        _ route: String, after place: Place, until: Timestamp, in db: DatabaseConnection
    ) throws -> (lanes: [Due], next: Place?) {
        let isBehind: SQL = "(l.next_at > \(place.nextAt) OR l.next_at = \(place.nextAt) AND l.id > \(place.id))"
        let found = try lookedAt(
            .all([
                "l.route = \(route)", "l.next_at >= \(place.nextAt)", "l.next_at <= \(until)", "l.lease = 0", isBehind,
            ]),
            limit: OutboxLimits.rowsAtOnceMax, in: db)
        let next =
            found.count < OutboxLimits.rowsAtOnceMax ? nil : found.last.map { Place(nextAt: $0.nextAt, id: $0.id) }
        return (found.filter(\.isEarly), next)
    }

    /// The lanes that satisfy a condition, in the order of their times.
    static func look(_ condition: SQL, latestFirst: Bool = false, limit: Int) -> SQL {
        let order: SQL = latestFirst ? "l.next_at DESC, l.id DESC" : "l.next_at, l.id"
        return """
            SELECT l.id, l.tenant, \(first("q.user_id")), coalesce(\(first(isEarly)), 0), l.failures, l.next_at
            FROM \(allLanes) AS l WHERE \(condition) ORDER BY \(order) LIMIT \(limit)
            """
    }

    private static func lookedAt(
        _ condition: SQL, latestFirst: Bool = false, limit: Int, in db: DatabaseConnection
    ) throws -> [Due] {
        try db.rows(look(condition, latestFirst: latestFirst, limit: limit)) { row in
            let (tenant, userId) = (try row.id(1) as ID<Tenant>, try row.optionalID(2) as ID<User>?)
            return Due(
                id: try row.integer(0), tenant: tenant, owner: userId.map { Owner(tenant: tenant, userId: $0) },
                isEarly: try row.bool(3), isPaused: try row.integer(4) > 0, nextAt: try row.moment(5))
        }
    }

    /// Returns the time at which the next lane of a route becomes due after a look at the ones that were due. The ones that
    /// still wait are begun when an attempt ends.
    static func nextDue(_ route: String, after now: Timestamp, in db: DatabaseConnection) throws -> Timestamp? {
        try db.row(
            """
            SELECT min(next_at) FROM \(allLanes) WHERE route = \(route) AND next_at > \(now)
            """
        ) { try $0.optionalMoment(0) } ?? nil
    }

    // MARK: Presence

    /// Gives users with a stream the time to see the subjects of their early messages.
    static func postpone(_ ids: [Int], at now: Timestamp, in db: DatabaseConnection) throws {
        let lanes = try opened(ids, at: now, isDue: false, in: db)
        for head in lanes.compactMap(\.head) {
            try db.run(
                """
                UPDATE \(messages, within: head.tenant, sending) SET due_at = patient_until
                WHERE lane = \(head.lane.name) AND state = 0 AND due_at < patient_until
                """)
        }
        try setTimes(lanes.filter { $0.head != nil }.map(\.id), at: now, in: db)
    }

    /// Makes the early messages due whose users have no stream on any replica. A pause after a failure stays.
    static func makeDue(_ ids: [Int], at now: Timestamp, in db: DatabaseConnection) throws {
        let lanes = try opened(ids, at: now, isDue: false, in: db).filter { $0.isEarly && $0.head?.failures == 0 }
        for head in lanes.compactMap(\.head) {
            try db.run(
                """
                UPDATE \(messages, within: head.tenant, sending) SET due_at = \(now)
                WHERE lane = \(head.lane.name) AND state = 0 AND due_at > \(now) AND due_at < patient_until
                """)
        }
        try setTimes(lanes.map(\.id), at: now, in: db)
    }

    /// Makes the messages due that waited for their user to see them, in the lanes of a message that is sent because the
    /// user has no stream any more. Otherwise it would overtake them.
    private static func hasten(_ lanes: [Opened], in db: DatabaseConnection) throws {
        for lane in lanes {
            guard let head = lane.head, let dueAt = lane.dueAt else { continue }
            try db.run(
                """
                UPDATE \(messages, within: head.tenant, sending) SET due_at = \(dueAt)
                WHERE lane = \(head.lane.name) AND state = 0 AND number < \(head.number)
                    AND due_at > \(dueAt) AND due_at <= patient_until
                """)
        }
    }

    // MARK: Begin

    private struct Opened {
        let id: Int
        let head: OutboxAttempt?
        let dueAt: Timestamp?
        let isEarly: Bool
    }

    /// Begins the attempts of lanes that still have something to send. Once this commits, it can no longer be known
    /// whether the messages were sent.
    ///
    /// - Parameter lease: Identifies these attempts; different for each call.
    static func begin(
        _ due: [Due], by channel: any Channel, lease: Int, at now: Timestamp, in db: DatabaseConnection
    ) throws -> [any OutboxDelivery] {
        try lockSenders(in: db)
        try lock(due.compactMap(\.owner), in: db)
        let ids = due.map(\.id)
        var lanes = try opened(ids, at: now, isDue: true, in: db)
        let early = lanes.filter(\.isEarly)
        if !early.isEmpty {
            try hasten(early, in: db)
            lanes = try opened(ids, at: now, isDue: true, in: db)
        }
        var (deliveries, empty, waiting) = ([any OutboxDelivery](), [Int](), [Int]())
        for lane in lanes {
            guard var attempt = lane.head, let dueAt = lane.dueAt else {
                empty.append(lane.id)
                continue
            }
            attempt.lease = lease
            guard dueAt <= now else {
                waiting.append(lane.id)
                continue
            }
            if let delivery = try channel.delivery(of: attempt, at: now, in: db) {
                deliveries.append(delivery)
            } else {
                try db.run("DELETE FROM \(messages, within: attempt.tenant, sending) WHERE number = \(attempt.number)")
                waiting.append(lane.id)
            }
        }
        try hold(deliveries.map(\.attempt), lease: lease, of: channel, at: now, in: db)
        try setTimes(empty + waiting, at: now, in: db)
        return deliveries
    }

    /// Returns lanes with their first messages.
    private static func opened(
        _ ids: [Int], at now: Timestamp, isDue: Bool, in db: DatabaseConnection
    ) throws -> [Opened] {
        let dueCondition: SQL = isDue ? "l.next_at <= \(now)" : "(l.lease = 0 OR l.next_at <= \(now))"
        let lanes = try db.rows(laneHeads(.all(["l.id IN \(values: ids)", dueCondition]))) { row in
            OpenedLane(
                id: try row.integer(0), tenant: try row.id(1), name: try row.text(2), route: try row.text(3),
                failures: try row.integer(4), first: try row.optionalInteger(5))
        }
        let byFirst = Dictionary(lanes.compactMap { lane in lane.first.map { ($0, lane) } }) { $1 }
        let opened = try heads(of: byFirst, in: db)
        let full = Set(opened.map(\.id))
        return opened
            + lanes.filter { !full.contains($0.id) }.map { Opened(id: $0.id, head: nil, dueAt: nil, isEarly: false) }
    }

    private static func heads(of lanes: [Int: OpenedLane], in db: DatabaseConnection) throws -> [Opened] {
        if lanes.isEmpty { return [] }
        let found: [Opened?] = try db.rows(
            """
            SELECT q.number, \(isEarly), q.user_id, q.device_id, q.type, q.subject, q.id, q.data, q.attempts, q.version,
                q.created_at, q.gives_up_at, q.due_at
            FROM \(allMessages) AS q WHERE q.number IN \(values: lanes.keys.sorted()) AND q.state = 0 ORDER BY q.number
            """
        ) { row in
            guard let lane = lanes[try row.integer(0)] else { return nil }
            let attempt = OutboxAttempt(
                number: try row.integer(0), laneId: lane.id, tenant: lane.tenant,
                lane: OutboxLane(name: lane.name, route: lane.route), userId: try row.optionalID(2),
                device: try row.optionalText(3) ?? "", type: try row.text(4), subject: try row.text(5),
                id: try row.text(6), data: try row.bytes(7), attempt: try row.integer(8) + 1,
                failures: lane.failures, version: try row.integer(9), createdAt: try row.moment(10),
                givesUpAt: try row.moment(11))
            return Opened(id: lane.id, head: attempt, dueAt: try row.moment(12), isEarly: try row.bool(1))
        }
        return found.compactMap(\.self)
    }

    /// Lanes, and the numbers of their first messages.
    static func laneHeads(_ condition: SQL) -> SQL {
        """
        SELECT l.id, l.tenant, l.lane, l.route, l.failures, \(first("q.number")) FROM \(allLanes) AS l WHERE \(condition)
        """
    }

    private struct OpenedLane {
        let id: Int
        let tenant: ID<Tenant>
        let name: String
        let route: String
        let failures: Int
        /// The number of its first message; nil without one.
        let first: Int?
    }

    private static func hold(
        _ attempts: [OutboxAttempt], lease: Int, of channel: any Channel, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        guard !attempts.isEmpty else { return }
        let until = now.adding(seconds: Int64(channel.limits.timeoutSeconds) + OutboxLimits.leaseSeconds)
        try db.run(
            """
            UPDATE \(allMessages) SET attempts = attempts + 1, tried_at = \(now), lease = \(lease)
            WHERE number IN \(values: attempts.map(\.number))
            """)
        try db.run(
            """
            UPDATE \(allLanes) SET next_at = \(until), waits_from = \(now), lease = \(lease)
            WHERE id IN \(values: attempts.map(\.laneId))
            """)
    }

    /// Sets the times of lanes without an attempt by their first messages, which may have been written while the clock was
    /// ahead. Deletes the lanes in which nothing waits.
    static func setTimes(_ ids: [Int], at now: Timestamp, in db: DatabaseConnection) throws {
        guard !ids.isEmpty else { return }
        let isAmong: SQL = "id IN \(values: ids)"
        let waiting: SQL = """
            FROM \(allMessages) AS q
            WHERE q.state = 0 AND q.tenant = outbox_lanes.tenant AND q.lane = outbox_lanes.lane
            """
        try db.run(
            "DELETE FROM \(allLanes) WHERE \(isAmong) AND NOT EXISTS (SELECT 1 \(waiting))")
        try db.run(
            """
            UPDATE \(allLanes)
            SET lease = 0, failures = 0,
                waits_from = (SELECT CASE WHEN q.created_at > \(now) THEN q.created_at ELSE \(now) END \(waiting)
                    ORDER BY q.due_at, q.number LIMIT 1),
                next_at = (SELECT q.due_at \(waiting) ORDER BY q.due_at, q.number LIMIT 1)
            WHERE \(isAmong)
            """)
    }

    // MARK: Outcomes

    /// Returns what follows from the answer to an attempt.
    ///
    /// - Parameters:
    ///   - age: Nil gives nothing up because of its age: the time is in doubt.
    ///   - chance: A random number from 0 up to, but not including, 1.
    static func result(
        of outcome: OutboxOutcome, _ attempt: OutboxAttempt, at age: AgeTime?, chance: Double
    ) -> OutboxResult {
        func retry(_ reason: String, _ pause: Double, isAsked: Bool) -> OutboxResult {
            if let age, age.now.adding(seconds: Int64(pause)) >= attempt.givesUpAt {
                return .ended(reason: reason, .expired)
            }
            return .retry(reason: reason, afterSeconds: pause, isAsked: isAsked)
        }
        switch outcome {
        case .accepted: return .accepted
        case .interrupted: return .interrupted
        case .refused(let reason): return .ended(reason: reason, .refused)
        case .gone(let reason, _): return .removed(reason: reason)
        case .failed(let reason, let asked), .rejected(let reason, let asked):
            let pause = Backoff.pause(afterFailure: attempt.failures + 1, asked: asked, chance: chance)
            return retry(reason, pause, isAsked: asked != nil)
        case .misconfigured(let reason, let isGeneral):
            let pause = isGeneral ? 0 : Backoff.pause(afterFailure: attempt.failures + 1, asked: nil, chance: chance)
            return retry(reason, max(OutboxLimits.misconfiguredSeconds, pause), isAsked: false)
        }
    }

    /// Stores the results of attempts.
    static func record(
        _ results: [(delivery: any OutboxDelivery, result: OutboxResult)], of channel: any Channel, at now: Timestamp,
        in db: DatabaseConnection
    ) throws {
        try lock(results.compactMap(\.delivery.attempt.owner), in: db)
        for (delivery, result) in results { try record(result, of: delivery, channel, at: now, in: db) }
    }

    private static func record(
        _ result: OutboxResult, of delivery: any OutboxDelivery, _ channel: any Channel, at now: Timestamp,
        in db: DatabaseConnection
    ) throws {
        let attempt = delivery.attempt
        var (result, isLatest) = (result, false)
        if case .removed = result, try !delivery.isDestinationPresent(in: db) { result = .interrupted }
        var pause: Double?
        switch result {
        case .accepted: isLatest = try settle(attempt, isKept: channel.isAlert(attempt.type), at: now, in: db)
        case .interrupted: isLatest = try release(attempt, in: db)
        case .removed: try remove(attempt.lane.name, of: attempt.tenant, in: db)
        case .retry(let reason, let seconds, let isAsked):
            isLatest =
                try db.run(
                    """
                    UPDATE \(messages, within: attempt.tenant, sending) SET lease = 0, error = \(reason)
                    WHERE \(attempt.isUnchanged)
                    """) > 0
            // What changed meanwhile has another content, which the receiver may accept.
            pause = isLatest || isAsked ? seconds : nil
            if !isLatest { isLatest = try release(attempt, in: db) }
        case .ended(let reason, _):
            isLatest = try give(up: attempt, because: reason, by: channel, at: now, in: db)
        }
        try delivery.note(result, isLatest: isLatest, at: now, in: db)
        try freeLane(of: attempt, pause: pause, at: now, in: db)
    }

    /// Notes that a message was accepted. What changed meanwhile is sent again, or is the withdrawal.
    ///
    /// - Returns: Whether the attempt was the latest of its message.
    private static func settle(
        _ attempt: OutboxAttempt, isKept: Bool, at now: Timestamp, in db: DatabaseConnection
    ) throws -> Bool {
        let isUnchanged: SQL = "version = \(attempt.version)"
        if !isKept {
            let deleted = try db.run(
                "DELETE FROM \(messages, within: attempt.tenant, sending) WHERE \(attempt.isLatest) AND \(isUnchanged)")
            return deleted > 0 ? true : try release(attempt, in: db)
        }
        return try db.run(
            """
            UPDATE \(messages, within: attempt.tenant, sending)
            SET lease = 0, error = NULL, state = CASE WHEN \(isUnchanged) THEN 1 ELSE 0 END,
                data = CASE WHEN \(isUnchanged) THEN '' ELSE data END,
                settled_at = CASE WHEN \(isUnchanged) THEN \(now) ELSE settled_at END,
                gives_up_at = CASE WHEN \(isUnchanged)
                    THEN \(now.adding(seconds: OutboxLimits.sentSeconds)) ELSE gives_up_at END
            WHERE \(attempt.isLatest)
            """) > 0
    }

    private static func release(_ attempt: OutboxAttempt, in db: DatabaseConnection) throws -> Bool {
        try db.run("UPDATE \(messages, within: attempt.tenant, sending) SET lease = 0 WHERE \(attempt.isLatest)") > 0
    }

    /// Deletes the withdrawal of the message that an accepted message replaces. It waits behind it if the clock was set
    /// back, and would take back the new one.
    static func deleteWithdrawal(_ slot: String, before attempt: OutboxAttempt, in db: DatabaseConnection) throws {
        try db.run(
            """
            DELETE FROM \(messages, within: attempt.tenant, sending)
            WHERE user_id = \(attempt.userId) AND slot = \(slot)
                AND lane = \(attempt.lane.name) AND number <> \(attempt.number)
            """)
    }

    /// Ends a message that is not accepted.
    private static func give(
        up attempt: OutboxAttempt, because reason: String, by channel: any Channel, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> Bool {
        if channel.limits.keepsDead {
            let update: SQL = "UPDATE \(messages, within: attempt.tenant, sending)"
            let dead = try markDead(by: update, .expired, where: attempt.isUnchanged, error: reason, at: now, in: db)
            return dead > 0 ? true : try release(attempt, in: db)
        }
        // The receiver may show an earlier message about the subject, which must be withdrawn one day.
        return try settle(attempt, isKept: channel.isAlert(attempt.type) && attempt.attempt > 1, at: now, in: db)
    }

    static func markDead(
        by update: SQL, _ why: WebhookFailureReason, where condition: SQL, error: String? = nil, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> Int {
        try db.run(
            """
            \(update)
            SET state = 2, settled_at = \(now), gives_up_at = \(now.adding(seconds: OutboxLimits.deadSeconds)), lease = 0,
                reason = \(why.rawValue), error = coalesce(\(error), error)
            WHERE \(condition)
            """)
    }

    /// Ends the lease of an attempt, if it still has one.
    private static func freeLane(
        of attempt: OutboxAttempt, pause: Double?, at now: Timestamp, in db: DatabaseConnection
    ) throws {
        let own: SQL = "id = \(attempt.laneId) AND lease = \(attempt.lease)"
        if let pause {
            let nextAt = Timestamp(microseconds: now.microseconds + Int64(pause * 1_000_000))
            try db.run(
                """
                UPDATE \(lanes, within: attempt.tenant, sending)
                SET lease = 0, failures = failures + 1, next_at = \(nextAt), waits_from = \(now) WHERE \(own)
                """)
        } else if try db.exists("SELECT 1 FROM \(lanes, within: attempt.tenant, sending) WHERE \(own)") {
            try setTimes([attempt.laneId], at: now, in: db)
        }
    }

    /// Ends all leases, so that begun attempts are repeated without waiting.
    static func endLeases(at now: Timestamp, in db: DatabaseConnection) throws {
        try db.run(
            """
            UPDATE \(allMessages) SET lease = 0 WHERE lease <> 0 AND (tenant, lane) IN (
                SELECT tenant, lane FROM \(allLanes) WHERE lease <> 0)
            """)
        try db.run(
            """
            UPDATE \(allLanes) SET lease = 0, next_at = \(now), waits_from = \(now) WHERE lease <> 0
            """)
    }
}
