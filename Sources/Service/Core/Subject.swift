import Domain

/// What a write decides upon: named before it reads, so that on PostgreSQL, where several write at the same time, those
/// who decide upon the same thing come one after the other. On SQLite all writes do.
///
/// A transaction that needs several holds a shop before a user: in one order nobody waits in a circle.
struct Subject: Sendable {
    private let text: String

    private init(_ text: String) { self.text = text }

    static func user(_ id: ID<User>) -> Subject { Subject("user:" + id.text) }
    static func shop(_ id: ID<Shop>) -> Subject { Subject("shop:" + id.text) }
    /// Work that comes round: one replica at a time.
    static func tick(_ name: String) -> Subject { Subject("tick:" + name) }

    /// A length in front of the tenant keeps two tenants' subjects apart, whatever their names hold.
    func name(in tenant: String) -> String { "\(tenant.utf8.count):\(tenant)\(text)" }

    /// Work on the same subject is done by the same writer.
    func lane(in tenant: String) -> Int {
        var hasher = Hasher()
        hasher.combine(name(in: tenant))
        return hasher.finalize()
    }
}
