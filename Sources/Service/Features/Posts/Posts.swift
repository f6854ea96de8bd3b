import Domain
import Values

/// Posts, likes and reposts, followers, and the resulting feed (R-CUT-F-1, R-ENG-E-6 to R-ENG-E-9).
///
/// A post is written once, whatever the number of followers. Connected followers have the author's key and receive the
/// post live; every feed is merged when it is read.
enum PostsFeature {
    static let feature = Feature(
        name: "posts", set: .social, tables: [follows, authors, posts, engagements, counters, removals],
        migrations: migrations,
        endpoints: postEndpoints + engagementEndpoints + followEndpoints, ticks: [engagementTick, pruning],
        personSteps: [postsStep, followsStep, engagementsStep], audits: [audit],
        live: [LiveGrant(grant: followed, keysMax: PostLimits.followedMax)],
        watched: [
            .init(schema: Post.subscribable.schema, table: Post.subscribable.table, columns: Post.rowColumns)
        ],
        events: ["feed:new_post", "feed:post_removed", "follow:changed"], locks: ["post", "posts", "author"],
        constants: Feature.constants(
            "posts",
            [
                "textBytesMax": PostLimits.textBytesMax, "mediaMax": PostLimits.mediaMax,
                "mediaBytesMax": PostLimits.mediaBytesMax, "followedMax": PostLimits.followedMax,
                "newCountMax": PostLimits.newCountMax, "pageMax": PostLimits.pageMax,
                "tellingSeconds": Int(PostLimits.engagementIntervalSeconds),
            ]))
}

extension LockKey {
    static func post(_ id: ID<Post>) -> LockKey { LockKey(kind: "post", id: id.text) }
    /// The lock of the order of a tenant's posts.
    static let posts = LockKey(kind: "posts")
    /// The lock of a user's followers and followed authors.
    static func author(_ id: ID<User>) -> LockKey { LockKey(kind: "author", id: id.text) }
}
