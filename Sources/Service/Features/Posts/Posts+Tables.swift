import Database
import Domain
import Values
import Visibility

extension PostsFeature {
    /// Follower relations, visible to both users and to backends. These rows grant keys: a follower has the
    /// author's key.
    static let follows = Table(
        "follows", read: ["user:{follower_id}", "user:{author_id}", "tenant:service"],
        write: ["user:{follower_id}", "tenant:service"],
        person: .rows(by: ["follower_id", "author_id"], [.step("follower_id"), .step("author_id")]))

    /// Three counts of each user, visible to all users. They are derived from other rows, and no caller writes them.
    static let authors = Table(
        "authors", read: ["everyone"], write: [], person: .rows(by: ["user_id"], [.deleted("user_id")]))

    static let posts = Table(
        "posts",
        read: [
            "user:{author_id}", .when("everyone", "visibility", is: "public"), followersKey, "tenant:service",
            "tenant:admin",
        ],
        write: ["user:{author_id}", "tenant:service", "tenant:admin"],
        person: .rows(by: ["id"], [.step("author_id")], .json(["media"])))

    /// Each user's likes and reposts, visible to that user and to backends. Other users see only their number, at the
    /// post.
    static let engagements = Table(
        "post_engagements", read: ["user:{user_id}", "tenant:service"], write: ["user:{user_id}", "tenant:service"],
        person: .rows(by: ["post_id", "kind", "user_id"], [.step("user_id", isBounded: false)]))

    /// The highest number of a post that each tenant ever had.
    static let counters = Table(
        "post_counters", read: [], write: [], person: .nothing("a number of each tenant"))

    /// Removed posts, until their engagements are deleted.
    static let removals = Table("post_removals", read: [], write: [], person: .nothing("ids of removed posts"))

    private static let followersKey: PolicyEntry = .granted(
        "follower:{author_id}", by: follows, member: "follower_id", of: "author_id")

    /// The key that gives followers an author's posts.
    static var followed: KeyGrant {
        guard let grant = followersKey.grant else { preconditionFailure("followers get their key from rows") }
        return grant
    }

    static let migrations = [
        Migration(
            "0001_posts",
            sql: [
                // The key for lookups of grants.
                """
                CREATE TABLE follows (
                    tenant TEXT NOT NULL,
                    follower_id TEXT NOT NULL,
                    author_id TEXT NOT NULL,
                    followed_at INTEGER NOT NULL,
                    PRIMARY KEY (tenant, follower_id, author_id),
                    CHECK (follower_id <> author_id)
                ) STRICT, WITHOUT ROWID
                """,
                "CREATE INDEX follows_authors ON follows (tenant, author_id, follower_id)",
                """
                CREATE TABLE authors (
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    follower_count INTEGER NOT NULL DEFAULT 0 CHECK (follower_count >= 0),
                    following_count INTEGER NOT NULL DEFAULT 0 CHECK (following_count >= 0),
                    post_count INTEGER NOT NULL DEFAULT 0 CHECK (post_count >= 0),
                    PRIMARY KEY (tenant, user_id)
                ) STRICT, WITHOUT ROWID
                """,
                """
                CREATE TABLE posts (
                    tenant TEXT NOT NULL,
                    id TEXT NOT NULL,
                    author_id TEXT NOT NULL,
                    sequence INTEGER NOT NULL,
                    visibility TEXT NOT NULL,
                    body TEXT NOT NULL,
                    media TEXT NOT NULL,
                    created_at INTEGER NOT NULL,
                    like_count INTEGER NOT NULL DEFAULT 0 CHECK (like_count >= 0),
                    repost_count INTEGER NOT NULL DEFAULT 0 CHECK (repost_count >= 0),
                    published_at INTEGER NOT NULL,
                    is_unpublished INTEGER NOT NULL DEFAULT 0,
                    PRIMARY KEY (tenant, id)
                ) STRICT
                """,
                // The newest posts of an author, from which feeds are merged.
                "CREATE UNIQUE INDEX posts_authors ON posts (tenant, author_id, sequence)",
                "CREATE INDEX posts_public ON posts (tenant, sequence) WHERE visibility = 'public'",
                "CREATE INDEX posts_unpublished ON posts (published_at, tenant, id) WHERE is_unpublished = 1",
                """
                CREATE TABLE post_engagements (
                    tenant TEXT NOT NULL,
                    post_id TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    engaged_at INTEGER NOT NULL,
                    PRIMARY KEY (tenant, post_id, kind, user_id)
                ) STRICT, WITHOUT ROWID
                """,
                """
                CREATE TABLE post_counters (
                    tenant TEXT NOT NULL PRIMARY KEY,
                    newest INTEGER NOT NULL
                ) STRICT
                """,
                """
                CREATE TABLE post_removals (
                    tenant TEXT NOT NULL,
                    post_id TEXT NOT NULL,
                    PRIMARY KEY (tenant, post_id)
                ) STRICT, WITHOUT ROWID
                """,
            ])
    ]

    static let columns = Post.columns()

    static let columnCount = Post.columnNames.count

    /// Returns the columns that ``view(_:)`` reads: the post's, and whether the user likes it and has reposted it.
    static func viewColumns(for userId: ID<User>, visibleTo scope: Scope) -> SQL {
        func has(_ kind: Engagement.Kind) -> SQL {
            """
            CASE WHEN EXISTS (SELECT 1 FROM \(engagements, visibleTo: scope) AS own
                WHERE own.post_id = p.id AND own.kind = \(kind.rawValue) AND own.user_id = \(userId)) THEN 1 ELSE 0 END
            """
        }
        return "\(columns), \(has(.like)), \(has(.repost))"
    }

    static func view(_ row: Row) throws -> PostView {
        PostView(
            try Post(row: row),
            own: OwnEngagement(isLiked: try row.bool(columnCount), isReposted: try row.bool(columnCount + 1)))
    }

    /// Returns the keys that may see a post.
    static func readers(of post: Post) -> [String] {
        posts.read.audience { column in
            switch column {
            case "author_id": post.authorId.text
            case "visibility": post.visibility.rawValue
            default: nil
            }
        }
    }
}
