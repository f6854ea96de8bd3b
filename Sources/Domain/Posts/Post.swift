import Values

/// A post of an author, visible to followers or to every user of the tenant.
public struct Post: Sendable, Hashable {
    /// The audience of a post, besides its author.
    public enum Visibility: String, CaseIterable, Sendable, MemberValue {
        /// Every user of the tenant.
        case `public`
        /// The followers of the author at the moment of reading.
        case followers
    }

    public var id: ID<Post> = ""
    public var authorId: ID<User> = ""
    /// The post's number among the posts of the tenant, in commit order. Feeds are sorted by it, newest first, and
    /// clients use it to ask for newer posts. Numbers are never reused.
    public var sequence = 0
    public var visibility = Visibility.public
    public var text = ""
    /// Addresses of pictures and films. The service does not fetch them.
    public var media = EncodedJSON.emptyArray
    public var createdAt = Timestamp(microseconds: 0)
    public var engagement = Engagement()

    public init() {}

    public init(
        id: ID<Post>, authorId: ID<User>, sequence: Int, visibility: Visibility, text: String, media: [String],
        createdAt: Timestamp, engagement: Engagement = Engagement()
    ) {
        self.id = id
        self.authorId = authorId
        self.sequence = sequence
        self.visibility = visibility
        self.text = text
        self.media = EncodedJSON(.array(media.map(JSONValue.string)))
        self.createdAt = createdAt
        self.engagement = engagement
    }
}

extension Post: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("authorId", &authorId)
        members.member("sequence", &sequence)
        members.member("visibility", &visibility)
        members.member("text", in: "body", &text)
        members.member("media", &media)
        members.member("createdAt", &createdAt)
        engagement.visit(&members)
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
