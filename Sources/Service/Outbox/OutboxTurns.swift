import Database
import Threads
import Values

/// The choice of the due lanes of a channel: tenants in turn, each within its part of the running attempts and its
/// attempts per minute.
///
/// While all due lanes of a route fit into the free places, one query finds them. Otherwise a backlog waits. Then the
/// tenants with due lanes are found one after the other, beginning after the tenant that was served last, so that the
/// backlog of one tenant is never read to reach another's lane.
struct OutboxTurns {
    /// The tenants of one choice.
    private static let tenantsMax = 16
    /// The tenants that one choice looks at. Without this limit, thousands of tenants whose lanes are not due would be
    /// looked at for each ended attempt.
    private static let stepsMax = 256

    /// The attempts of one tenant that may run at the same time.
    private let tenantMax: Int
    /// The attempts that begin in the present minute.
    let minute: MinuteShares
    private var running: [Int: ID<Tenant>] = [:]
    private var runningByTenant: [ID<Tenant>: Int] = [:]
    /// The tenant of each route after which the next turn begins.
    private var last: [String: ID<Tenant>] = [:]
    /// The routes with more due lanes than one choice takes.
    private var crowded: Set<String> = []

    init(tenantMax: Int, minute: MinuteShares) { (self.tenantMax, self.minute) = (tenantMax, minute) }

    /// The number of running attempts.
    var count: Int { running.count }

    /// The lanes of the running attempts.
    var lanes: Set<Int> { Set(running.keys) }

    mutating func began(_ lane: Int, of tenant: ID<Tenant>) {
        running[lane] = tenant
        runningByTenant[tenant, default: 0] += 1
        minute.began(of: tenant)
    }

    mutating func ended(_ lane: Int) {
        guard let tenant = running.removeValue(forKey: lane), let count = runningByTenant[tenant] else { return }
        runningByTenant[tenant] = count > 1 ? count - 1 : nil
    }

    /// Returns due lanes whose attempts may begin.
    ///
    /// - Parameters:
    ///   - condition: A further condition on the lane `l`, if any.
    ///   - latestFirst: Whether the lanes that became due last come first.
    mutating func choose(
        _ limit: Int, of route: String, at now: Timestamp, _ condition: SQL?, latestFirst: Bool = false,
        in db: DatabaseConnection
    ) throws -> [Outbox.Due] {
        minute.begin(at: now)
        if !crowded.contains(route) {
            let found = try Outbox.due(route, at: now, except: lanes, condition, limit: limit, in: db)
            guard found.count >= limit else { return fitting(found) }
        }
        let tenants = try tenantsInTurn(of: route, at: now, in: db)
        let part = max(1, limit / max(1, tenants.count))
        var chosen: [Outbox.Due] = []
        for tenant in tenants where chosen.count < limit {
            let room = min(part, limit - chosen.count, room(of: tenant))
            let own = SQL.all(["l.tenant = \(tenant)", condition])
            chosen += try Outbox.due(
                route, at: now, except: lanes, own, latestFirst: latestFirst, limit: room, in: db)
            last[route] = tenant
        }
        if chosen.count >= limit { crowded.insert(route) } else { crowded.remove(route) }
        return chosen
    }

    private func room(of tenant: ID<Tenant>) -> Int {
        max(0, min(tenantMax - (runningByTenant[tenant] ?? 0), minute.room(of: tenant)))
    }

    private func fitting(_ found: [Outbox.Due]) -> [Outbox.Due] {
        var taken: [ID<Tenant>: Int] = [:]
        return found.filter { lane in
            taken[lane.tenant, default: 0] += 1
            return taken[lane.tenant] ?? 0 <= room(of: lane.tenant)
        }
    }

    /// Returns the next tenants with due lanes and room, beginning after the last one.
    private mutating func tenantsInTurn(
        of route: String, at now: Timestamp, in db: DatabaseConnection
    ) throws -> [ID<Tenant>] {
        let last = last[route] ?? ""
        var passed = try Self.tenants(after: last, of: route, at: now, in: db)
        let isWhole = passed.count < Self.stepsMax
        if isWhole, !last.text.isEmpty {
            passed += try Self.tenants(after: "", of: route, at: now, in: db).prefix { $0.tenant <= last }
        }
        let found = passed.filter { $0.isDue && room(of: $0.tenant) > 0 }.prefix(Self.tenantsMax).map(\.tenant)
        if found.isEmpty, let end = passed.last { self.last[route] = end.tenant }
        return found
    }

    /// Returns the tenants with lanes of a route after a tenant, and whether one is due. Each step is one lookup in the
    /// index of tenants.
    private static func tenants(
        after tenant: ID<Tenant>, of route: String, at now: Timestamp, in db: DatabaseConnection
    ) throws -> [(tenant: ID<Tenant>, isDue: Bool)] {
        return try db.rows(
            """
            WITH RECURSIVE walk (tenant, steps) AS (
                SELECT (SELECT l.tenant FROM \(Outbox.allLanes) AS l WHERE l.route = \(route) AND l.tenant > \(tenant)
                    ORDER BY l.tenant LIMIT 1), 1
                UNION ALL
                SELECT (SELECT l.tenant FROM \(Outbox.allLanes) AS l WHERE l.route = \(route) AND l.tenant > walk.tenant
                    ORDER BY l.tenant LIMIT 1), walk.steps + 1
                FROM walk WHERE walk.tenant IS NOT NULL AND walk.steps < \(stepsMax)
            )
            SELECT walk.tenant, CASE WHEN EXISTS (SELECT 1 FROM \(Outbox.allLanes) AS l WHERE l.route = \(route)
                AND l.tenant = walk.tenant AND l.next_at <= \(now)) THEN 1 ELSE 0 END
            FROM walk WHERE walk.tenant IS NOT NULL ORDER BY walk.steps
            """
        ) { (tenant: try $0.id(0), isDue: try $0.bool(1)) }
    }
}

/// The attempts that begin in the present minute, of tenants with a limit. The channels of one family share it.
final class MinuteShares: Sendable {
    /// The attempts of a tenant that may begin in a minute; 0 for no limit.
    private let minuteMax: @Sendable (ID<Tenant>) -> Int
    private let state = Locked((minute: Int64(0), begun: [ID<Tenant>: Int]()))

    init(_ minuteMax: @escaping @Sendable (ID<Tenant>) -> Int) { self.minuteMax = minuteMax }

    func begin(at now: Timestamp) {
        state.withLock { state in
            if now.seconds / 60 != state.minute { state = (now.seconds / 60, [:]) }
        }
    }

    func began(of tenant: ID<Tenant>) {
        guard minuteMax(tenant) > 0 else { return }
        state.withLock { $0.begun[tenant, default: 0] += 1 }
    }

    func room(of tenant: ID<Tenant>) -> Int {
        let limit = minuteMax(tenant)
        return limit > 0 ? max(0, limit - state.withLock { $0.begun[tenant] ?? 0 }) : .max
    }

    /// The tenants that have used all attempts of the present minute.
    var throttledCount: Int { state.withLock { $0.begun.count { $0.value >= minuteMax($0.key) } } }
}
