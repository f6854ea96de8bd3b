import Domain
import Values

/// Posts, who likes and reposts them, who follows their authors, and the feed that follows from it (CUT F-1, ENG E-6 to
/// E-9).
///
/// A post is written once, whatever the number of followers: connected followers have the author's key and receive the
/// post live, and every feed is merged when it is read.
enum PostsFeature {
    static let feature = Feature(
        name: "posts", tables: [follows, authors, posts, engagements, counters, removals], migrations: migrations,
        endpoints: postEndpoints + engagementEndpoints + followEndpoints, ticks: [engagementTick, pruning],
        audits: [audit], live: [LiveMembership(membership: followed, keysMax: PostLimits.followedMax)],
        watched: [.init(schema: Post.subscribable.schema, table: Post.subscribable.table)],
        events: ["feed:new_post", "feed:post_removed", "follow:changed"], locks: ["post", "posts", "author"],
        constants: { writer, _ in
            writer.member("posts") { writer in
                writer.member("textBytesMax", PostLimits.textBytesMax)
                writer.member("mediaMax", PostLimits.mediaMax)
                writer.member("mediaBytesMax", PostLimits.mediaBytesMax)
                writer.member("followedMax", PostLimits.followedMax)
                writer.member("newCountMax", PostLimits.newCountMax)
                writer.member("pageMax", PostLimits.pageMax)
                writer.member("tellingSeconds", Int(PostLimits.engagementIntervalSeconds))
            }
        })
}

extension LockKey {
    static func post(_ id: ID<Post>) -> LockKey { LockKey(kind: "post", id: id.text) }
    /// The order of a tenant's posts.
    static let posts = LockKey(kind: "posts")
    /// Whom a user follows, and by whom that user is followed.
    static func author(_ id: ID<User>) -> LockKey { LockKey(kind: "author", id: id.text) }
}
