import Database
import Domain
import Visibility

/// What a write decides upon: named before it reads, so that on PostgreSQL, where several write at the same time, those
/// who decide upon the same thing come one after the other. On SQLite all writes do.
///
/// A transaction that needs several holds a challenge before a shop, a shop or a conversation before users, and posts
/// before authors: in one order nobody waits in a circle.
struct Subject: Sendable {
    private let kind: String
    private let id: String

    static func user(_ id: ID<User>) -> Subject { Subject(kind: "user", id: id.text) }
    static func shop(_ id: ID<Shop>) -> Subject { Subject(kind: "shop", id: id.text) }
    /// A shop's music. Apart from the shop: bookings need not wait for votes. Held before a user, as the shop is.
    static func dj(_ id: ID<Shop>) -> Subject { Subject(kind: "dj", id: id.text) }
    static func conversation(_ id: ID<Conversation>) -> Subject { Subject(kind: "conversation", id: id.text) }
    static func challenge(_ id: ID<Challenge>) -> Subject { Subject(kind: "challenge", id: id.text) }
    static func post(_ id: ID<Post>) -> Subject { Subject(kind: "post", id: id.text) }
    /// The order of a tenant's posts.
    static let posts = Subject(kind: "posts", id: "")
    /// Whom a user follows, and by whom that user is followed.
    static func author(_ id: ID<User>) -> Subject { Subject(kind: "author", id: id.text) }
    /// Work that comes round: one replica at a time.
    static func tick(_ name: String) -> Subject { Subject(kind: "tick", id: name) }

    /// Encoded, so that no two subjects share a name, whatever their ids hold, and equal names are equal bytes.
    func name(in tenant: String) -> String { AudienceKey.make(kind, tenant, id) }

    /// Work on the same subject is done by the same writer.
    func lane(in tenant: String) -> Int {
        var hasher = Hasher()
        hasher.combine(name(in: tenant))
        return hasher.finalize()
    }
}
