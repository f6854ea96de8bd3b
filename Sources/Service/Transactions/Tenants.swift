import Database
import Threads
import Values

/// The tenants that have rows, for the periodic work of each tenant.
final class Tenants: Sendable {
    static let tenants = Table(
        "tenants", read: [], write: [], person: .nothing("ids of tenants"))

    static let migration = Migration(
        "0001_tenants", sql: ["CREATE TABLE tenants (tenant TEXT NOT NULL PRIMARY KEY) STRICT"])

    private static let bookkeeping = Unscoped.bookkeeping("the list of tenants belongs to no tenant")

    private let known: Locked<Set<ID<Tenant>>>

    init(in db: DatabaseConnection) throws {
        known = Locked(try Self.read(in: db))
    }

    private static func read(in db: DatabaseConnection) throws -> Set<ID<Tenant>> {
        Set(try db.rows("SELECT tenant FROM \(tenants, unscoped: bookkeeping)") { try $0.id(0) })
    }

    /// Returns a query of the tenants for which a condition on `t.tenant` is true; one index lookup for each.
    static func all(where condition: SQL) -> SQL {
        "SELECT t.tenant FROM \(tenants, unscoped: bookkeeping) AS t WHERE \(condition)"
    }

    var all: [ID<Tenant>] { known.withLock { $0.sorted() } }

    /// Adds the tenants that other replicas have recorded.
    func refresh(in db: DatabaseConnection) throws {
        let found = try Self.read(in: db)
        known.withLock { $0.formUnion(found) }
    }

    /// Records a tenant in the transaction of its first write.
    func note(_ tenant: ID<Tenant>, in db: DatabaseConnection) throws {
        guard !known.withLock({ $0.contains(tenant) }) else { return }
        try db.run(
            """
            INSERT INTO \(Self.tenants, within: tenant, Self.bookkeeping) (tenant) VALUES (\(tenant))
            ON CONFLICT (tenant) DO NOTHING
            """)
        db.afterCommit { [known] in _ = known.withLock { $0.insert(tenant) } }
    }
}
