import Domain

/// Posts, who likes and reposts them, who follows their authors, and the feed that follows from it (CUT F-1, ENG E-6 to
/// E-9).
///
/// A post is written once, whoever follows its author: connected followers hold the author's key and hear the post
/// live, and everybody's feed is merged when it is read.
enum PostsFeature {
    static let feature = Feature(
        name: "posts", tables: [follows, authors, posts, engagements, counters, removals], migrations: migrations,
        endpoints: postEndpoints + engagementEndpoints + followEndpoints, reactions: [], topics: [],
        ticks: [engagementTick, forgetting], audits: [audit],
        live: [LiveMembership(membership: followed, keysMax: PostLimits.followedMax)],
        watched: [.init(schema: Post.watched.schema, table: Post.watched.table)])
}
