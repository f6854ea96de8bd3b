import Database
import Domain
import Values

extension Outbox {
    // MARK: Clocks

    /// Corrects the times of lanes, and of their messages, that were written while the clock was ahead. Otherwise they
    /// would wait as long as the clock was ahead. The rows themselves reveal it, even to a process that starts after the
    /// clock was set.
    ///
    /// - Returns: Whether there were any.
    static func correct(at now: Timestamp, in store: DatabaseStore) throws -> Bool {
        guard try store.read({ try !lanesAhead(of: now, in: $0).isEmpty }) else { return false }
        try store.writeAndWait { try correct(at: now, in: $0) }
        return true
    }

    static func correct(at now: Timestamp, in db: DatabaseConnection) throws {
        let ahead = try lanesAhead(of: now, in: db)
        guard !ahead.isEmpty else { return }
        try lockSenders(in: db)
        try lock(ahead.compactMap(\.owner), in: db)
        let isAmong: SQL = "id IN \(values: ahead.map(\.id)) AND \(isAhead("waits_from", of: now))"
        let step: SQL = "(created_at - \(now))"
        // The messages keep their distances, so that the withdrawal of a browser still waits for an alert. One that was due
        // before it was written, such as the withdrawal of an earlier message, is due now. A message that came since then
        // has extended a message from the present time.
        let dueAt: SQL = "CASE WHEN due_at > created_at THEN due_at - \(step) ELSE \(now) END"
        try db.run(
            """
            UPDATE \(allMessages)
            SET due_at = \(dueAt),
                patient_until = CASE WHEN patient_until = 0 THEN 0 ELSE patient_until - \(step) END,
                gives_up_at = \(dueAt) + \(OutboxLimits.secondsToLive * 1_000_000), created_at = \(now)
            WHERE state = 0 AND \(isAhead("created_at", of: now)) AND (tenant, lane) IN (
                SELECT tenant, lane FROM \(allLanes) WHERE \(isAmong))
            """)
        try db.run(
            """
            UPDATE \(allLanes) SET next_at = next_at - (waits_from - \(now)), waits_from = \(now)
            WHERE \(isAmong)
            """)
    }

    private static func isAhead(_ column: SQL, of now: Timestamp) -> SQL {
        "\(column) > \(now.adding(seconds: OutboxLimits.clockSkewSeconds))"
    }

    private static func lanesAhead(of now: Timestamp, in db: DatabaseConnection) throws -> [(id: Int, owner: Owner?)] {
        try db.rows(
            """
            SELECT id, tenant, user_id FROM \(allLanes) WHERE \(isAhead("waits_from", of: now))
            ORDER BY waits_from LIMIT \(OutboxLimits.prunedAtOnceMax)
            """
        ) { row in
            let (tenant, userId) = (try row.id(1) as ID<Tenant>, try row.optionalID(2) as ID<User>?)
            return (try row.integer(0), userId.map { Owner(tenant: tenant, userId: $0) })
        }
    }

    // MARK: Figures

    /// What waits in a family of channels.
    struct Figures: Sendable {
        var waiting = 0
        var due = 0
        /// The due time of the message that has waited longest.
        var oldestDueAt: Timestamp?
        var waitingByTenant: [ID<Tenant>: Int] = [:]
        var dueByTenant: [ID<Tenant>: Int] = [:]
        var dead = 0

        fileprivate mutating func add(_ waiting: Int, due: Int, since oldest: Timestamp?, of tenant: ID<Tenant>) {
            guard waiting > 0 else { return }
            (self.waiting, self.due) = (self.waiting + waiting, self.due + due)
            (waitingByTenant[tenant], dueByTenant[tenant]) = (waiting, due)
            if let oldest { oldestDueAt = min(oldestDueAt ?? oldest, oldest) }
        }
    }

    /// Counts what waits. This reads one index from its beginning to its end.
    static func figures(at now: Timestamp, in db: DatabaseConnection) throws -> [OutboxFamily: Figures] {
        var figures = Dictionary(uniqueKeysWithValues: OutboxFamily.allCases.map { ($0, Figures()) })
        func sum(_ condition: SQL) -> SQL { "CAST(sum(CASE WHEN \(condition) THEN 1 ELSE 0 END) AS BIGINT)" }
        let (own, isDue): (SQL, SQL) = ("\(isWebhook("lane")) = 1", "due_at <= \(now)")
        try db.forEach(
            """
            SELECT tenant, count(*), \(sum(own)), \(sum(isDue)), \(sum("\(own) AND \(isDue)")),
                min(CASE WHEN \(own) THEN NULL ELSE due_at END), min(CASE WHEN \(own) THEN due_at END)
            FROM \(allMessages) WHERE state = 0 GROUP BY tenant
            """
        ) { row in
            let tenant = try row.id(0) as ID<Tenant>
            let (all, due) = (try row.integer(1), try row.integer(3))
            let (webhooks, dueWebhooks) = (try row.integer(2), try row.integer(4))
            figures[.webhooks]?.add(webhooks, due: dueWebhooks, since: try row.optionalMoment(6), of: tenant)
            figures[.push]?.add(all - webhooks, due: due - dueWebhooks, since: try row.optionalMoment(5), of: tenant)
            return true
        }
        figures[.webhooks]?.dead =
            try db.integer("SELECT count(*) FROM \(allMessages) WHERE state = 2") ?? 0
        return figures
    }

    /// The names of lanes begin with their family.
    static func laneName(_ family: OutboxFamily, _ rest: String) -> String { "\(family.rawValue):\(rest)" }

    private static func isWebhook(_ lane: SQL) -> SQL {
        "CASE WHEN \(lane) >= \(laneName(.webhooks, "")) THEN 1 ELSE 0 END"
    }

    // MARK: Ends

    /// What a pass of upkeep has ended.
    struct Pruned: Sendable {
        var expired: [OutboxFamily: Int] = [:]
        var evicted: [OutboxFamily: Int] = [:]
        var isMore = false
    }

    /// A message whose time is over, or which is to be given up.
    private struct EndingMessage {
        let number: Int
        let family: OutboxFamily
        let isWaiting: Bool
        let owner: Owner?
    }

    /// Whether ``prune(_:at:deadMax:in:)`` has something to do.
    static func hasEnded(_ age: AgeTime, in db: DatabaseConnection) throws -> Bool {
        try db.exists(
            """
            SELECT 1 FROM \(allMessages) WHERE gives_up_at <= \(age.now) AND \(isIdle)
            UNION ALL
            SELECT 1 FROM (SELECT 1 FROM \(allMessages) WHERE state = 2
                LIMIT 1 OFFSET \(OutboxLimits.deadMax)) AS dead LIMIT 1
            """)
    }

    /// Ends messages whose time is over, and removes the traces of sent and dead ones. It changes a part of the rows,
    /// whose users it locks first.
    static func prune(
        _ age: AgeTime, at now: Timestamp, deadMax: Int = OutboxLimits.deadMax, in db: DatabaseConnection
    ) throws -> Pruned {
        try lockSenders(in: db)
        let isOver: SQL = "gives_up_at <= \(age.now) AND \(isIdle)"
        let over = try endingMessages(isOver, orderedBy: "gives_up_at", in: db)
        try lock(over.compactMap(\.owner), in: db)
        let waiting = over.filter(\.isWaiting)
        var pruned = Pruned(isMore: over.count == OutboxLimits.prunedAtOnceMax)
        for family in OutboxFamily.allCases {
            let own = waiting.filter { $0.family == family }.map(\.number)
            pruned.expired[family] = try end(where: among(own, isOver), of: family, as: .expired, at: now, in: db)
        }
        let rest = over.filter { !$0.isWaiting }.map(\.number)
        if !rest.isEmpty {
            try db.run(
                "DELETE FROM \(allMessages) WHERE number IN \(values: rest) AND state > 0 AND \(isOver)"
            )
        }
        try db.run(
            """
            DELETE FROM \(allMessages) WHERE number IN (
                SELECT number FROM \(allMessages) WHERE state = 2
                ORDER BY settled_at DESC, number DESC LIMIT \(OutboxLimits.prunedAtOnceMax) OFFSET \(deadMax))
            """)
        return pruned
    }

    /// Gives up the oldest messages of the tenant with the most, until a family has no more than its limit.
    ///
    /// - Returns: The number of messages, and whether there may be more to do.
    static func evict(
        _ family: OutboxFamily, _ figures: Figures, waitingMax: Int, at now: Timestamp, in db: DatabaseConnection
    ) throws -> (count: Int, isMore: Bool) {
        guard figures.waiting > waitingMax,
            let most = figures.waitingByTenant.max(by: { ($0.value, $1.key) < ($1.value, $0.key) })
        else { return (0, false) }
        // What the tenant has beyond the second one, so that two tenants do not take turns in hurting one another.
        let second = figures.waitingByTenant.filter { $0.key != most.key }.values.max() ?? 0
        let excess = min(figures.waiting - waitingMax, max(1, most.value - second))
        try lockSenders(in: db)
        let isOwn: SQL = """
            tenant = \(most.key) AND state = 0 AND \(isIdle)
                AND \(isWebhook("lane")) = \(family == .webhooks ? 1 : 0)
            """
        let oldest = try endingMessages(isOwn, orderedBy: "number", atMost: excess, in: db)
        try lock(oldest.compactMap(\.owner), in: db)
        let count = try end(
            where: among(oldest.map(\.number), isIdle), of: family, as: .outboxFull, at: now, in: db)
        return (count, count > 0 && count < figures.waiting - waitingMax)
    }

    /// Whether no attempt of a message runs.
    private static let isIdle: SQL = "lease = 0"

    /// Whether a message is one of these, waits, and satisfies a condition; nil for no messages.
    private static func among(_ numbers: [Int], _ condition: SQL) -> SQL? {
        numbers.isEmpty ? nil : "number IN \(values: numbers) AND state = 0 AND \(condition)"
    }

    private static func end(
        where isAmong: SQL?, of family: OutboxFamily, as why: WebhookFailureReason, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> Int {
        guard let isAmong else { return 0 }
        guard family != .webhooks else {
            return try markDead(by: "UPDATE \(allMessages)", why, where: isAmong, at: now, in: db)
        }
        return try db.run("DELETE FROM \(allMessages) WHERE \(isAmong)")
    }

    private static func endingMessages(
        _ condition: SQL, orderedBy order: SQL, atMost limit: Int = OutboxLimits.prunedAtOnceMax,
        in db: DatabaseConnection
    ) throws -> [EndingMessage] {
        try db.rows(
            """
            SELECT number, tenant, user_id, state, \(isWebhook("lane")) FROM \(allMessages)
            WHERE \(condition) ORDER BY \(order) LIMIT \(min(limit, OutboxLimits.prunedAtOnceMax))
            """
        ) { row in
            let (tenant, userId) = (try row.id(1) as ID<Tenant>, try row.optionalID(2) as ID<User>?)
            return EndingMessage(
                number: try row.integer(0), family: try row.bool(4) ? .webhooks : .push,
                isWaiting: try row.integer(3) == 0, owner: userId.map { Owner(tenant: tenant, userId: $0) })
        }
    }
}
