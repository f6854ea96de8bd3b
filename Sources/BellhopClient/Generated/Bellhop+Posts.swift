// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct PostView: Codable, Sendable, Hashable {
        public let id: String
        public let authorId: String
        /// Its place among the tenant's posts; feeds are ordered by it.
        public let sequence: Int
        public let visibility: Post.Visibility
        public let text: String
        public let media: [String]
        public let createdAt: Date
        public let likeCount: Int
        public let repostCount: Int
        /// By the caller.
        public let liked: Bool
        /// By the caller.
        public let reposted: Bool

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
        public let id: String
        public let authorId: String
        /// Its place among the tenant's posts; feeds are ordered by it.
        public let sequence: Int
        public let visibility: Post.Visibility
        public let text: String
        public let media: [String]
        public let createdAt: Date
        public let likeCount: Int
        public let repostCount: Int

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
        /// At most 4000 bytes; not blank without media.
        public var text: String?
        /// Addresses of pictures and films, which the service does not look at.
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
        public let postId: String
        public let likeCount: Int
        public let repostCount: Int
        public let liked: Bool
        public let reposted: Bool

        public init(postId: String, likeCount: Int, repostCount: Int, liked: Bool, reposted: Bool) {
            self.postId = postId
            self.likeCount = likeCount
            self.repostCount = repostCount
            self.liked = liked
            self.reposted = reposted
        }
    }

    public struct Feed: Codable, Sendable, Hashable, PageOfItems {
        public let items: [PostView]
        public let next: String?
        /// The number of the newest post of the tenant.
        public let newest: Int
        /// With `since`: new posts of others.
        public let newCount: Int?
        /// There are more than are counted.
        public let newCountIsMore: Bool?

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
        public let userId: String
        public let followerCount: Int
        public let followingCount: Int
        public let postCount: Int
        /// The caller follows them.
        public let followed: Bool
        /// They follow the caller.
        public let followsYou: Bool

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
        public let followerId: String
        public let authorId: String
        public let followedAt: Date

        public init(followerId: String, authorId: String, followedAt: Date) {
            self.followerId = followerId
            self.authorId = authorId
            self.followedAt = followedAt
        }
    }

    public struct Followed: Codable, Sendable, Hashable {
        public let followerId: String
        public let authorId: String
        public let followedAt: Date
        public let followerCount: Int

        public init(followerId: String, authorId: String, followedAt: Date, followerCount: Int) {
            self.followerId = followerId
            self.authorId = authorId
            self.followedAt = followedAt
            self.followerCount = followerCount
        }
    }

    public struct EngagementUpdate: Codable, Sendable, Hashable {
        public let postIds: [String]
        /// By record, its counts by the names that the table declares.
        public let updates: [String: JSON]

        public init(postIds: [String], updates: [String: JSON]) {
            self.postIds = postIds
            self.updates = updates
        }
    }

    /// To connected followers of its author, as they are at that moment, and to the author's other devices. `postId`,
    /// `barberId` and `timestamp` are the post's `id`, `authorId` and `createdAt` once more, for apps that know them by
    /// these names.
    public struct FeedNewPost: Codable, Sendable, Hashable {
        public let id: String
        public let authorId: String
        /// Its place among the tenant's posts; feeds are ordered by it.
        public let sequence: Int
        public let visibility: Post.Visibility
        public let text: String
        public let media: [String]
        public let createdAt: Date
        public let likeCount: Int
        public let repostCount: Int
        public let type: String
        public let postId: String
        public let barberId: String
        public let timestamp: Date

        public init(
            id: String, authorId: String, sequence: Int, visibility: Post.Visibility, text: String, media: [String],
            createdAt: Date, likeCount: Int, repostCount: Int, type: String, postId: String, barberId: String,
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
        public let postId: String

        public init(postId: String) {
            self.postId = postId
        }
    }

    /// To the follower's own streams; from here on they hear the author's posts, or do not any more.
    public struct FollowChanged: Codable, Sendable, Hashable {
        public let authorId: String
        public let followerId: String
        public let followed: Bool

        public init(authorId: String, followerId: String, followed: Bool) {
            self.authorId = authorId
            self.followerId = followerId
            self.followed = followed
        }
    }
}
