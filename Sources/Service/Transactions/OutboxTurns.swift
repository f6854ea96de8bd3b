import Database
import Values

/// A due row of an outbox.
protocol OutboxRow: Sendable {
    var number: Int { get }
    var tenant: ID<Tenant> { get }
}

/// The choice of the due rows of an outbox: tenants in turn, each within its part of the running attempts and its
/// attempts per minute.
///
/// While all due rows fit into the free places, one query finds them. Otherwise a backlog waits. Then the tenants with
/// due rows are found one after the other, beginning after the tenant that was served last, so that the backlog of one
/// tenant is never read to reach another's row.
struct OutboxTurns {
    /// The tenants of one choice.
    private static let tenantsMax = 16
    /// The tenants that one choice looks at. Without this limit, thousands of tenants whose rows are not due would be
    /// looked at for each ended attempt.
    private static let stepsMax = 256

    /// The attempts of one tenant that may run at the same time.
    private let tenantMax: Int
    /// The attempts of a tenant that may begin in a minute; 0 for no limit.
    private let minuteMax: @Sendable (ID<Tenant>) -> Int
    private var running: [Int: ID<Tenant>] = [:]
    private var runningByTenant: [ID<Tenant>: Int] = [:]
    /// The attempts that began in the present minute, of tenants with a limit.
    private var begun: [ID<Tenant>: Int] = [:]
    private var minute: Int64 = 0
    /// The tenant after which the next turn begins.
    private var last: ID<Tenant> = ""
    /// Whether more rows may be due than one choice takes.
    private var isCrowded = false

    init(tenantMax: Int, minuteMax: @escaping @Sendable (ID<Tenant>) -> Int) {
        (self.tenantMax, self.minuteMax) = (tenantMax, minuteMax)
    }

    /// The running attempts.
    var count: Int { running.count }

    /// The numbers of the running attempts.
    var numbers: Set<Int> { Set(running.keys) }

    /// The tenants that have used all attempts of the present minute.
    var throttledCount: Int { begun.count { $0.value >= minuteMax($0.key) } }

    mutating func began(_ number: Int, of tenant: ID<Tenant>) {
        running[number] = tenant
        runningByTenant[tenant, default: 0] += 1
        if minuteMax(tenant) > 0 { begun[tenant, default: 0] += 1 }
    }

    mutating func ended(_ number: Int) {
        guard let tenant = running.removeValue(forKey: number), let count = runningByTenant[tenant] else { return }
        runningByTenant[tenant] = count > 1 ? count - 1 : nil
    }

    /// Returns due rows whose attempts may begin.
    ///
    /// - Parameters:
    ///   - table: The outbox, as statements name it.
    ///   - rows: Reads due rows, oldest first, that satisfy a further condition about the row `o`.
    mutating func choose<Row: OutboxRow>(
        _ limit: Int, at now: Timestamp, from table: SQL, in store: DatabaseStore,
        _ rows: (SQL?, _ limit: Int, DatabaseConnection) throws -> [Row]
    ) throws -> [Row] {
        if now.seconds / 60 != minute { (minute, begun) = (now.seconds / 60, [:]) }
        if !isCrowded {
            let found = try store.read(isSingle: true) { try rows(nil, limit, $0) }
            guard found.count >= limit else { return fitting(found) }
        }
        return try store.read { db in
            let tenants = try tenantsInTurn(from: table, at: now, in: db)
            let part = max(1, limit / max(1, tenants.count))
            var chosen: [Row] = []
            for tenant in tenants where chosen.count < limit {
                let room = min(part, limit - chosen.count, room(of: tenant))
                chosen += try rows("o.tenant = \(tenant)", room, db)
                last = tenant
            }
            isCrowded = chosen.count >= limit
            return chosen
        }
    }

    private func room(of tenant: ID<Tenant>) -> Int {
        let (free, limit) = (tenantMax - (runningByTenant[tenant] ?? 0), minuteMax(tenant))
        return max(0, limit > 0 ? min(free, limit - (begun[tenant] ?? 0)) : free)
    }

    private func fitting<Row: OutboxRow>(_ rows: [Row]) -> [Row] {
        var taken: [ID<Tenant>: Int] = [:]
        return rows.filter { row in
            taken[row.tenant, default: 0] += 1
            return taken[row.tenant] ?? 0 <= room(of: row.tenant)
        }
    }

    /// Returns the next tenants with due rows and room, beginning after the last one.
    private mutating func tenantsInTurn(
        from table: SQL, at now: Timestamp, in db: DatabaseConnection
    ) throws -> [ID<Tenant>] {
        var passed = try Self.tenants(after: last, from: table, at: now, in: db)
        let isWhole = passed.count < Self.stepsMax
        if isWhole, !last.text.isEmpty {
            passed += try Self.tenants(after: "", from: table, at: now, in: db).prefix { $0.tenant <= last }
        }
        let found = passed.filter { $0.isDue && room(of: $0.tenant) > 0 }.prefix(Self.tenantsMax).map(\.tenant)
        if found.isEmpty, let end = passed.last { last = end.tenant }
        return found
    }

    /// Returns the tenants with waiting rows after a tenant, and whether a row is due. Each step is one lookup in the
    /// index of tenants.
    private static func tenants(
        after tenant: ID<Tenant>, from table: SQL, at now: Timestamp, in db: DatabaseConnection
    ) throws -> [(tenant: ID<Tenant>, isDue: Bool)] {
        try db.rows(
            """
            WITH RECURSIVE walk (tenant, steps) AS (
                SELECT (SELECT o.tenant FROM \(table) AS o WHERE o.state = 0 AND o.tenant > \(tenant)
                    ORDER BY o.tenant LIMIT 1), 1
                UNION ALL
                SELECT (SELECT o.tenant FROM \(table) AS o WHERE o.state = 0 AND o.tenant > walk.tenant
                    ORDER BY o.tenant LIMIT 1), walk.steps + 1
                FROM walk WHERE walk.tenant IS NOT NULL AND walk.steps < \(stepsMax)
            )
            SELECT walk.tenant, CASE WHEN EXISTS (SELECT 1 FROM \(table) AS o WHERE o.state = 0
                AND o.tenant = walk.tenant AND o.next_at <= \(now) AND o.leased_until <= \(now)) THEN 1 ELSE 0 END
            FROM walk WHERE walk.tenant IS NOT NULL ORDER BY walk.steps
            """
        ) { (tenant: try $0.id(0), isDue: try $0.bool(1)) }
    }

    /// Returns the tenants with the most due rows, for metrics.
    static func longest(from table: SQL, at now: Timestamp, in db: DatabaseConnection) throws -> [(ID<Tenant>, Int)] {
        try db.rows(
            """
            SELECT tenant, count(*) FROM \(table) WHERE state = 0 AND next_at <= \(now)
            GROUP BY tenant ORDER BY count(*) DESC, tenant LIMIT \(Limits.tenantsInMetricsMax)
            """
        ) { (try $0.id(0), try $0.integer(1)) }
    }
}
