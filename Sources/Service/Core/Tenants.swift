import Database
import Foundation

/// The tenants that have rows, for the work that comes round for each of them.
///
/// `@unchecked Sendable`: `known` is only touched while `lock` is held.
final class Tenants: @unchecked Sendable {
    static let tenants = Table("tenants", read: [], write: [])

    static let migration = Migration(
        "0001_tenants", sql: ["CREATE TABLE tenants (tenant TEXT NOT NULL PRIMARY KEY) STRICT"])

    private static let keeping = Unscoped.bookkeeping("which tenants there are is no tenant's row")

    /// Guards `known`.
    private let lock = NSLock()
    private var known: Set<String>

    init(in db: Connection) throws {
        known = Set(try db.rows("SELECT tenant FROM \(Self.tenants, unscoped: Self.keeping)") { try $0.text(0) })
    }

    var all: [String] { lock.withLock { known.sorted() } }

    /// Learns of those that other replicas have noted.
    func refresh(in db: Connection) throws {
        let found = try Tenants(in: db).all
        lock.withLock { known.formUnion(found) }
    }

    /// Notes a tenant in the transaction of its first write.
    func note(_ tenant: String, in db: Connection) throws {
        guard !lock.withLock({ known.contains(tenant) }) else { return }
        try db.run(
            """
            INSERT INTO \(Self.tenants, unscoped: Self.keeping) (tenant) VALUES (\(tenant))
            ON CONFLICT (tenant) DO NOTHING
            """)
        db.afterCommit { [self] in _ = lock.withLock { known.insert(tenant) } }
    }
}
