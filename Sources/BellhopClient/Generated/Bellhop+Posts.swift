// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct PostView: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var authorId: String
        /// Sequence number of the post within the tenant. Feeds are ordered by it.
        public internal(set) var sequence: Int
        public internal(set) var visibility: Post.Visibility
        public internal(set) var text: String
        public internal(set) var media: [String]
        public internal(set) var createdAt: Date
        public internal(set) var likeCount: Int
        public internal(set) var repostCount: Int
        /// True if the caller likes the post.
        public internal(set) var liked: Bool
        /// True if the caller has reposted the post.
        public internal(set) var reposted: Bool

        public init(
            id: String, authorId: String, sequence: Int, visibility: Post.Visibility, text: String, media: [String],
            createdAt: Date, likeCount: Int, repostCount: Int, liked: Bool, reposted: Bool
        ) {
            self.id = id
            self.authorId = authorId
            self.sequence = sequence
            self.visibility = visibility
            self.text = text
            self.media = media
            self.createdAt = createdAt
            self.likeCount = likeCount
            self.repostCount = repostCount
            self.liked = liked
            self.reposted = reposted
        }
    }

    public struct Post: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var authorId: String
        /// Sequence number of the post within the tenant. Feeds are ordered by it.
        public internal(set) var sequence: Int
        public internal(set) var visibility: Post.Visibility
        public internal(set) var text: String
        public internal(set) var media: [String]
        public internal(set) var createdAt: Date
        public internal(set) var likeCount: Int
        public internal(set) var repostCount: Int

        public init(
            id: String, authorId: String, sequence: Int, visibility: Post.Visibility, text: String, media: [String],
            createdAt: Date, likeCount: Int, repostCount: Int
        ) {
            self.id = id
            self.authorId = authorId
            self.sequence = sequence
            self.visibility = visibility
            self.text = text
            self.media = media
            self.createdAt = createdAt
            self.likeCount = likeCount
            self.repostCount = repostCount
        }

        public struct Visibility: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let `public` = Visibility(rawValue: "public")
            public static let followers = Visibility(rawValue: "followers")
        }
    }

    public struct CreatePostBody: Codable, Sendable, Hashable {
        public var authorId: String?
        public var visibility: CreatePostBody.Visibility?
        /// At most 4000 bytes. Must not be blank unless the post has media.
        public var text: String?
        /// URLs of pictures and videos. The service does not fetch them.
        public var media: [String]?

        public init(
            authorId: String? = nil, visibility: CreatePostBody.Visibility? = nil, text: String? = nil,
            media: [String]? = nil
        ) {
            self.authorId = authorId
            self.visibility = visibility
            self.text = text
            self.media = media
        }

        public struct Visibility: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let `public` = Visibility(rawValue: "public")
            public static let followers = Visibility(rawValue: "followers")
        }
    }

    public struct Engagement: Codable, Sendable, Hashable {
        public internal(set) var postId: String
        public internal(set) var likeCount: Int
        public internal(set) var repostCount: Int
        public internal(set) var liked: Bool
        public internal(set) var reposted: Bool

        public init(postId: String, likeCount: Int, repostCount: Int, liked: Bool, reposted: Bool) {
            self.postId = postId
            self.likeCount = likeCount
            self.repostCount = repostCount
            self.liked = liked
            self.reposted = reposted
        }
    }

    public struct Feed: Codable, Sendable, Hashable, PageOfItems {
        public internal(set) var items: [PostView]
        public internal(set) var next: String?
        /// Sequence number of the newest post of the tenant.
        public internal(set) var newest: Int
        /// Number of new posts by others. Present only with `since`.
        public internal(set) var newCount: Int?
        /// True if the number of new posts exceeds `newCount`.
        public internal(set) var newCountIsMore: Bool?

        public init(
            items: [PostView], next: String? = nil, newest: Int, newCount: Int? = nil, newCountIsMore: Bool? = nil
        ) {
            self.items = items
            self.next = next
            self.newest = newest
            self.newCount = newCount
            self.newCountIsMore = newCountIsMore
        }
    }

    public struct UserProfile: Codable, Sendable, Hashable {
        public internal(set) var userId: String
        public internal(set) var followerCount: Int
        public internal(set) var followingCount: Int
        public internal(set) var postCount: Int
        /// True if the caller follows the user.
        public internal(set) var followed: Bool
        /// True if the user follows the caller.
        public internal(set) var followsYou: Bool

        public init(
            userId: String, followerCount: Int, followingCount: Int, postCount: Int, followed: Bool, followsYou: Bool
        ) {
            self.userId = userId
            self.followerCount = followerCount
            self.followingCount = followingCount
            self.postCount = postCount
            self.followed = followed
            self.followsYou = followsYou
        }
    }

    public struct Following: Codable, Sendable, Hashable {
        public internal(set) var followerId: String
        public internal(set) var authorId: String
        public internal(set) var followedAt: Date

        public init(followerId: String, authorId: String, followedAt: Date) {
            self.followerId = followerId
            self.authorId = authorId
            self.followedAt = followedAt
        }
    }

    public struct Followed: Codable, Sendable, Hashable {
        public internal(set) var followerId: String
        public internal(set) var authorId: String
        public internal(set) var followedAt: Date
        public internal(set) var followerCount: Int

        public init(followerId: String, authorId: String, followedAt: Date, followerCount: Int) {
            self.followerId = followerId
            self.authorId = authorId
            self.followedAt = followedAt
            self.followerCount = followerCount
        }
    }

    public struct EngagementUpdate: Codable, Sendable, Hashable {
        public internal(set) var postIds: [String]
        /// Counts by record id, with the names that the table declares.
        public internal(set) var updates: [String: JSON]

        public init(postIds: [String], updates: [String: JSON]) {
            self.postIds = postIds
            self.updates = updates
        }
    }

    /// Sent to the followers of the author that are connected at that moment, and to the author's other devices.
    /// `postId`, `barberId` and `timestamp` repeat `id`, `authorId` and `createdAt` for apps that use those names.
    /// `barberId` is absent if the author is neither a barber nor a shop's staff.
    public struct FeedNewPost: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var authorId: String
        /// Sequence number of the post within the tenant. Feeds are ordered by it.
        public internal(set) var sequence: Int
        public internal(set) var visibility: Post.Visibility
        public internal(set) var text: String
        public internal(set) var media: [String]
        public internal(set) var createdAt: Date
        public internal(set) var likeCount: Int
        public internal(set) var repostCount: Int
        public internal(set) var type: String
        public internal(set) var postId: String
        public internal(set) var barberId: String?
        public internal(set) var timestamp: Date

        public init(
            id: String, authorId: String, sequence: Int, visibility: Post.Visibility, text: String, media: [String],
            createdAt: Date, likeCount: Int, repostCount: Int, type: String, postId: String, barberId: String? = nil,
            timestamp: Date
        ) {
            self.id = id
            self.authorId = authorId
            self.sequence = sequence
            self.visibility = visibility
            self.text = text
            self.media = media
            self.createdAt = createdAt
            self.likeCount = likeCount
            self.repostCount = repostCount
            self.type = type
            self.postId = postId
            self.barberId = barberId
            self.timestamp = timestamp
        }
    }

    public struct FeedPostRemoved: Codable, Sendable, Hashable {
        public internal(set) var postId: String

        public init(postId: String) {
            self.postId = postId
        }
    }

    /// Sent to the follower's own streams. From then on, they receive or no longer receive the author's posts.
    public struct FollowChanged: Codable, Sendable, Hashable {
        public internal(set) var authorId: String
        public internal(set) var followerId: String
        public internal(set) var followed: Bool

        public init(authorId: String, followerId: String, followed: Bool) {
            self.authorId = authorId
            self.followerId = followerId
            self.followed = followed
        }
    }
}
