import Values
import Visibility

/// What a write decides upon: locked before it reads, so that on PostgreSQL, where several write at the same time, those
/// who decide upon the same thing come one after the other. On SQLite all writes do.
///
/// Features add keys of their own kinds, and list the kinds (`Feature.locks`): two that used one kind would wait for each
/// other.
///
/// A transaction that needs several locks a challenge before a shop, a shop, its music or a conversation before users,
/// the posts' order and a post before authors: in one order nobody waits in a circle.
struct LockKey: Sendable {
    /// The kinds that belong to no feature.
    static let coreKinds = ["user", "tick"]

    let kind: String
    var id = ""

    static func user(_ id: ID<User>) -> LockKey { LockKey(kind: "user", id: id.text) }
    /// Work that comes round: one replica at a time.
    static func tick(_ name: String) -> LockKey { LockKey(kind: "tick", id: name) }

    /// Encoded, so that no two keys share a name, whatever their ids contain, and equal names are equal bytes.
    func name(in tenant: ID<Tenant>) -> String { AudienceKey.make(kind, tenant.text, id) }

    /// Writes with equal keys are done by the same writer.
    func lane(in tenant: ID<Tenant>) -> Int {
        var hasher = Hasher()
        hasher.combine(kind)
        hasher.combine(tenant)
        hasher.combine(ID<LockKey>(id))
        return hasher.finalize()
    }
}
