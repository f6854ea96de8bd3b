import Database
import Domain
import Push
import Values

extension PushFeature {
    /// The state of the outbox.
    struct Figures: Sendable {
        var waiting = 0
        var devices = 0
        /// The due time of the message that has waited longest.
        var oldestDueAt: Timestamp?
        /// The tenants with the most due messages.
        fileprivate(set) var dueByTenant: [(ID<Tenant>, Int)] = []
        /// Whether ``prune(at:in:)`` has work to do.
        var needsUpkeep = false
    }

    private static func isOver(_ age: AgeTime?) -> SQL { age.map { "gives_up_at <= \($0.now)" } ?? "FALSE" }

    /// Whether a row was written or last attempted while the clock was ahead. Rows of running attempts keep their times,
    /// by which the outcome finds them.
    private static func isAhead(of now: Timestamp) -> SQL {
        let latest = now.adding(seconds: PushOutboxLimits.clockSkewSeconds)
        return "state = 0 AND leased_until <= \(now) AND (created_at > \(latest) OR tried_at > \(latest))"
    }

    /// Whether an attempt was begun while the clock was ahead.
    private static func isLeasedAhead(of now: Timestamp) -> SQL {
        "state = 0 AND leased_until > \(longestLease(at: now).adding(seconds: PushOutboxLimits.clockSkewSeconds))"
    }

    private static func longestLease(at now: Timestamp) -> Timestamp {
        now.adding(seconds: Int64(PushOutboxLimits.timeoutSecondsMax) + PushOutboxLimits.leaseSeconds)
    }

    static func figures(at now: Timestamp, _ age: AgeTime?, in db: DatabaseConnection) throws -> Figures {
        let table = sent
        var figures =
            try db.row(
                """
                SELECT (SELECT count(*) FROM \(table) WHERE state = 0 AND due_at <= \(now)),
                    (SELECT count(*) FROM \(devices, unscoped: sending)),
                    (SELECT min(due_at) FROM \(table) WHERE state = 0),
                    CASE WHEN EXISTS (SELECT 1 FROM \(table) WHERE \(isOver(age)))
                        OR EXISTS (SELECT 1 FROM \(table) WHERE \(isAhead(of: now)))
                        OR EXISTS (SELECT 1 FROM \(table) WHERE \(isLeasedAhead(of: now)))
                        OR (SELECT count(*) FROM \(table) WHERE state = 0) > \(PushOutboxLimits.waitingMax)
                    THEN 1 ELSE 0 END
                """
            ) { row in
                Figures(
                    waiting: try row.integer(0), devices: try row.integer(1), oldestDueAt: try row.optionalMoment(2),
                    needsUpkeep: try row.bool(3))
            } ?? Figures()
        if figures.waiting > 0 { figures.dueByTenant = try OutboxTurns.longest(from: sent, at: now, in: db) }
        return figures
    }

    /// Deletes expired messages, and the oldest messages of an outbox that is too long. Corrects times of rows that were
    /// written while the clock was ahead. It changes a part of the rows, whose users it locks first.
    ///
    /// - Parameter age: Nil deletes no expired message, because the time is in doubt.
    /// - Returns: The number of messages that were deleted unsent, and whether there may be more to do.
    static func prune(
        at now: Timestamp, _ age: AgeTime?, in db: DatabaseConnection
    ) throws -> (unsent: Int, isMore: Bool) {
        let waiting = try db.integer("SELECT count(*) FROM \(outbox, unscoped: sending) WHERE state = 0") ?? 0
        let over = try places(isOver(age), in: db)
        let ahead = try places(isAhead(of: now), in: db)
        let leasedAhead = try places(isLeasedAhead(of: now), in: db)
        let oldest = try places("state = 0", atMost: max(0, waiting - PushOutboxLimits.waitingMax), in: db)
        let all = [over, ahead, leasedAhead, oldest]
        try lock(all.flatMap { $0.map(\.owner) }, in: db)
        let isOver: SQL = "\(isAmong(over)) AND \(isOver(age))"
        var unsent = try delete("\(isOver) AND state = 0", in: db)
        try delete(isOver, in: db)
        try setBack(ahead, to: now, in: db)
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending) SET leased_until = \(longestLease(at: now))
            WHERE \(isAmong(leasedAhead)) AND \(isLeasedAhead(of: now))
            """)
        unsent += try delete("\(isAmong(oldest)) AND state = 0", in: db)
        return (unsent, all.contains { $0.count == PushOutboxLimits.prunedAtOnceMax })
    }

    /// Corrects the times of rows that were written or last attempted while the clock was ahead. They keep their
    /// distances, so that the withdrawal of a browser still waits for an alert. A retry does not wait any longer.
    private static func setBack(_ ahead: [Place], to now: Timestamp, in db: DatabaseConnection) throws {
        let step: SQL = "CASE WHEN created_at > \(now) THEN created_at - \(now) ELSE 0 END"
        // A message that was added since then has extended the row from the present time.
        let givesUpAt = now.adding(seconds: PushOutboxLimits.secondsToLive)
        let wait: SQL = "CASE WHEN due_at > created_at THEN due_at - created_at ELSE 0 END"
        try db.run(
            """
            UPDATE \(outbox, unscoped: sending)
            SET created_at = created_at - \(step), due_at = due_at - \(step), next_at = due_at - \(step),
                gives_up_at = CASE WHEN created_at > \(now) THEN \(givesUpAt) + \(wait) ELSE gives_up_at END,
                tried_at = CASE WHEN tried_at > \(now) THEN \(now) ELSE tried_at END
            WHERE \(isAmong(ahead)) AND \(isAhead(of: now))
            """)
    }

    private typealias Place = (number: Int, owner: Owner)

    private static func places(
        _ condition: SQL, atMost limit: Int = PushOutboxLimits.prunedAtOnceMax, in db: DatabaseConnection
    ) throws -> [Place] {
        try db.rows(
            """
            SELECT number, tenant, user_id FROM \(outbox, unscoped: sending) WHERE \(condition)
            ORDER BY number LIMIT \(min(limit, PushOutboxLimits.prunedAtOnceMax))
            """
        ) { (try $0.integer(0), Owner(tenant: try $0.id(1), userId: try $0.id(2))) }
    }

    private static func isAmong(_ places: [Place]) -> SQL {
        places.isEmpty ? "FALSE" : "number IN \(values: places.map(\.number))"
    }

    /// Encrypts the addresses of devices with the first key that others have encrypted.
    ///
    /// - Returns: The number of devices that were changed, by tenant, and of the ones that no key opens.
    static func rotate(
        _ keys: PushKeyRing, in db: DatabaseConnection
    ) throws -> (changed: [ID<Tenant>: Int], unreadable: Int) {
        var (old, unreadable) = ([(owner: Owner, id: ID<Device>, former: [UInt8], address: [UInt8])](), 0)
        try db.forEach("SELECT tenant, user_id, id, address FROM \(devices, unscoped: sending)") { row in
            let (owner, id) = (Owner(tenant: try row.id(0), userId: try row.id(1)), try row.id(2) as ID<Device>)
            let sealed = try row.blob(3)
            guard keys.isOld(sealed) else { return true }
            guard let address = keys.open(sealed, context: place(of: id, owner)) else {
                unreadable += 1
                return true
            }
            old.append((owner, id, sealed, keys.seal(address, context: place(of: id, owner))))
            return true
        }
        var changed: [ID<Tenant>: Int] = [:]
        for (owner, id, former, address) in old {
            // The device may have been registered with a new token since it was read. Then the new one stays.
            let count = try db.run(
                """
                UPDATE \(devices, unscoped: sending) SET address = \(address)
                WHERE tenant = \(owner.tenant) AND user_id = \(owner.userId) AND id = \(id) AND address = \(former)
                """)
            if count > 0 { changed[owner.tenant, default: 0] += count }
        }
        return (changed, unreadable)
    }

    /// Returns the number of devices with addresses that the keys cannot decrypt.
    static func unreadableCount(_ keys: PushKeyRing, in db: DatabaseConnection) throws -> Int {
        try db.integer("SELECT count(*) FROM \(devices, unscoped: sending) WHERE \(isUnreadable("address", keys))") ?? 0
    }

    static func isUnreadable(_ address: SQL, _ keys: PushKeyRing) -> SQL {
        .all(keys.names.map { "substr(\(address), 1, 4) <> \($0)" })
    }
}
