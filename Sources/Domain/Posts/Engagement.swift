import Values

/// The numbers of likes and reposts of a post. A user sees no like or repost of another user; backends see all.
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
}

extension Engagement: Record {
    public init() { self.init(likeCount: 0) }

    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("likeCount", &likeCount)
        members.member("repostCount", &repostCount)
    }
}

/// A reader's own engagement with a post.
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
