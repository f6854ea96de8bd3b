/// How many like and repost a post: who they are is told to nobody but themselves.
public struct Engagement: Sendable, Hashable {
    public enum Kind: String, CaseIterable, Sendable {
        case like, repost
    }

    public var likeCount: Int
    public var repostCount: Int

    public init(likeCount: Int = 0, repostCount: Int = 0) {
        self.likeCount = likeCount
        self.repostCount = repostCount
    }

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("likeCount", likeCount)
        writer.member("repostCount", repostCount)
    }
}

/// What a reader did to a post.
public struct OwnEngagement: Sendable, Hashable {
    public var isLiked: Bool
    public var isReposted: Bool

    public init(isLiked: Bool = false, isReposted: Bool = false) {
        self.isLiked = isLiked
        self.isReposted = isReposted
    }

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("liked", isLiked)
        writer.member("reposted", isReposted)
    }
}

// MARK: - For those who watch

extension Post {
    /// The schema and the table under which streams subscribe to posts: `{"schema": "bellhop", "table": "posts", "event":
    /// "UPDATE", "filter": "id=in.(…)"}` (ENG E-1).
    public static let watched = (schema: "bellhop", table: "posts")

    /// A post as filters compare it, and as `table:change` shows it.
    private var row: RoutedChange.Row {
        [
            "id": .string(id.text), "author_id": .string(authorId.text), "visibility": .string(visibility.rawValue),
            "sequence": .integer(Int64(sequence)), "like_count": .integer(Int64(engagement.likeCount)),
            "repost_count": .integer(Int64(engagement.repostCount)),
        ]
    }

    /// That the counts have changed: streams that watch the post gather it into their next `engagement_update` (ENG E-8).
    ///
    /// - Parameter readers: the keys by which the post is seen.
    public func engagementChange(readers: [String]) -> RoutedChange {
        RoutedChange(
            schema: Self.watched.schema, table: Self.watched.table, primaryKey: ["id"], operation: .update,
            old: row, new: row, oldReaders: readers, newReaders: readers, losses: [], invalidations: [],
            cause: cause(.update), windowMilliseconds: Int(PostLimits.tellingSeconds) * 1000,
            countColumns: ["likeCount": "like_count", "repostCount": "repost_count"], isOnlyCounts: true,
            commitTimestamp: nil)
    }

    /// That the post is gone.
    public func removalChange(readers: [String], at moment: Timestamp) -> RoutedChange {
        RoutedChange(
            schema: Self.watched.schema, table: Self.watched.table, primaryKey: ["id"], operation: .delete,
            old: row, new: nil, oldReaders: readers, newReaders: [], losses: [], invalidations: [],
            cause: cause(.delete),
            windowMilliseconds: 0, countColumns: [:], isOnlyCounts: false, commitTimestamp: moment)
    }

    private func cause(_ operation: RowOperation) -> InvalidationCause {
        InvalidationCause(
            schema: Self.watched.schema, table: Self.watched.table, operation: operation, recordId: id.text,
            actorId: nil, originId: nil)
    }
}
