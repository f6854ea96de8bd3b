import Values

/// A relation in which one user follows an author.
public struct Following: Sendable, Hashable, JSONObjectWritable {
    public let followerId: ID<User>
    public let authorId: ID<User>
    public let followedAt: Timestamp

    public init(followerId: ID<User>, authorId: ID<User>, followedAt: Timestamp) {
        self.followerId = followerId
        self.authorId = authorId
        self.followedAt = followedAt
    }

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("followerId", followerId)
        writer.member("authorId", authorId)
        writer.member("followedAt", followedAt)
    }
}

/// An author with the three counts that every user of the tenant may see.
public struct Author: Sendable, Hashable {
    public let userId: ID<User>
    public var followerCount: Int
    public var followingCount: Int
    public var postCount: Int

    public init(userId: ID<User>, followerCount: Int = 0, followingCount: Int = 0, postCount: Int = 0) {
        self.userId = userId
        self.followerCount = followerCount
        self.followingCount = followingCount
        self.postCount = postCount
    }

    public func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("followerCount", followerCount)
        writer.member("followingCount", followingCount)
        writer.member("postCount", postCount)
    }
}
