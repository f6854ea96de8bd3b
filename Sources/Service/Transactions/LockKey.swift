import Database
import Values
import Visibility

/// The subject of a write's decision. It is locked before it is read. So on PostgreSQL, where several transactions
/// write at the same time, decisions on the same subject run one after the other. On SQLite all writes do.
///
/// Features add keys of their own kinds, and list the kinds (`Feature.locks`). Two features with the same kind would
/// wait for each other.
///
/// A fixed order prevents deadlocks. A challenge is locked before a shop. Then come a shop, its music, a conversation, the
/// address of a device and periodic work, and then users. The posts' order and a post are locked before authors.
struct LockKey: Sendable {
    /// The kinds that belong to no feature.
    static let coreKinds = ["user", "tick"]

    let kind: String
    var id = ""

    static func user(_ id: ID<User>) -> LockKey { LockKey(kind: "user", id: id.text) }
    /// Returns the lock of periodic work, which one replica performs at a time.
    static func tick(_ name: String) -> LockKey { LockKey(kind: "tick", id: name) }

    /// Returns the encoded name. So different keys never share a name, whatever their ids contain, and equal names have
    /// equal bytes.
    func name(in tenant: ID<Tenant>) -> String { AudienceKey.make(kind, tenant.text, id) }

    /// Writes with equal keys are done by the same writer. Tenants take turns.
    func lane(in tenant: ID<Tenant>) -> WriteLane {
        let group = tenant.hashValue
        var hasher = Hasher()
        hasher.combine(kind)
        hasher.combine(group)
        hasher.combine(ID<LockKey>(id))
        return WriteLane(hasher.finalize(), group: group)
    }
}
