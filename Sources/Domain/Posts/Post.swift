import Values

/// A post of an author, visible to followers or to every user of the tenant.
public struct Post: Sendable, Hashable, JSONObjectWritable {
    /// The audience of a post, besides its author.
    public enum Visibility: String, CaseIterable, Sendable {
        /// Every user of the tenant.
        case `public`
        /// The followers of the author at the moment of reading.
        case followers
    }

    public let id: ID<Post>
    public let authorId: ID<User>
    /// The post's number among the posts of the tenant, in commit order. Feeds are sorted by it, newest first, and
    /// clients use it to ask for newer posts. Numbers are never reused.
    public let sequence: Int
    public let visibility: Visibility
    public let text: String
    /// Addresses of pictures and films. The service does not fetch them.
    public let media: [String]
    public let createdAt: Timestamp
    public var engagement: Engagement

    public init(
        id: ID<Post>, authorId: ID<User>, sequence: Int, visibility: Visibility, text: String, media: [String],
        createdAt: Timestamp, engagement: Engagement = Engagement()
    ) {
        self.id = id
        self.authorId = authorId
        self.sequence = sequence
        self.visibility = visibility
        self.text = text
        self.media = media
        self.createdAt = createdAt
        self.engagement = engagement
    }

    /// Writes the members of the JSON object that are the same for all readers.
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("authorId", authorId)
        writer.member("sequence", sequence)
        writer.member("visibility", visibility.rawValue)
        writer.member("text", text)
        writer.member("media", media)
        writer.member("createdAt", createdAt)
        engagement.write(membersTo: &writer)
    }
}

/// A new post as its event describes it: the post, and the members that R-CUT-F-1 names. Only a barber's post has a
/// `barberId`.
public struct NewPost: Sendable, JSONObjectWritable {
    public let post: Post
    public let barberId: ID<User>?

    public init(_ post: Post, barberId: ID<User>?) { (self.post, self.barberId) = (post, barberId) }

    public func write(membersTo writer: inout JSONWriter) {
        post.write(membersTo: &writer)
        writer.member("type", "new_post")
        writer.member("postId", post.id)
        if let barberId { writer.member("barberId", barberId) }
        writer.member("timestamp", post.createdAt)
    }
}

/// A post as one reader sees it.
public struct PostView: Sendable, JSONObjectWritable {
    public let post: Post
    public let own: OwnEngagement

    public init(_ post: Post, own: OwnEngagement) {
        self.post = post
        self.own = own
    }

    public func write(membersTo writer: inout JSONWriter) {
        post.write(membersTo: &writer)
        own.write(membersTo: &writer)
    }
}

/// The body of `POST /v1/posts`: `{text?, media?, visibility?, authorId?}`.
public struct PostDraft: Sendable, Hashable {
    /// Nil means the caller. Backends must name an author.
    public let authorId: ID<User>?
    public let visibility: Post.Visibility
    public let text: String
    public let media: [String]

    public init(reading fields: inout Fields) {
        authorId = fields.optionalID("authorId")
        visibility = fields.optionalWord("visibility") ?? .public
        text = fields.optionalString("text", bytesMax: PostLimits.textBytesMax, empty: true) ?? ""
        media =
            fields.strings("media", countMax: PostLimits.mediaMax, bytesMax: PostLimits.mediaBytesMax) ?? []
        for (index, address) in media.enumerated() where !address.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) {
            fields.reject("media/\(index)", "must be a URL without spaces and control characters")
        }
        if media.isEmpty, text.allSatisfy(\.isWhitespace) {
            fields.reject("text", "must not be blank if there is no media")
        }
    }
}
