import Database

extension DJFeature {
    /// A shop in DJ mode: its session, and whether guests must enter a code to prove their presence.
    static let shops = Table(
        "dj_shops", read: ["everyone"], write: ["shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        person: .nothing("the sessions of shops"))

    static let tracks = Table(
        "dj_tracks", read: ["everyone"],
        write: ["user:{added_by}", "shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        person: .rows(
            by: ["item_id"], [.changedByScan("added_by", .pseudonym("added_by"))],
            .impersonal(["shop_id", "track_id", "track_name", "artist_name", "album_art"])))

    /// The votes, visible only to the voter: neither to the shop nor to backends (R-CUT-D-4).
    static let votes = Table(
        "dj_votes", read: ["user:{user_id}"], write: ["user:{user_id}"],
        person: .rows(by: ["user_id", "shop_id", "item_id"], [.step("user_id")]))

    /// A user's current location, visible only to that user.
    static let presences = Table(
        "presences", read: ["user:{user_id}"], write: ["user:{user_id}"],
        person: .rows(by: ["user_id", "booking_id"], [.deleted("user_id")]))

    /// Wrong codes. No caller reads or writes these rows.
    static let attempts = Table(
        "presence_attempts", read: [], write: [], person: .rows(by: ["user_id"], [.deleted("user_id")]))

    static let migrations = [Migration("0001_dj", sql: definitions)]

    private static let definitions: [Migration.Step] = [
        """
        CREATE TABLE dj_shops (
            tenant TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            requires_code INTEGER NOT NULL,
            is_active INTEGER NOT NULL,
            started_at INTEGER,
            current_item TEXT,
            current_since INTEGER,
            version INTEGER NOT NULL,
            published_second INTEGER NOT NULL,
            published_count INTEGER NOT NULL,
            PRIMARY KEY (tenant, shop_id)
        ) STRICT
        """,
        // `rank_score` is the negated score, so that an ascending index gives the order of the queue.
        """
        CREATE TABLE dj_tracks (
            tenant TEXT NOT NULL,
            item_id TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            track_id TEXT NOT NULL,
            track_name TEXT NOT NULL,
            artist_name TEXT NOT NULL,
            album_art TEXT,
            added_by TEXT NOT NULL,
            added_at INTEGER NOT NULL,
            upvotes INTEGER NOT NULL CHECK (upvotes >= 0),
            downvotes INTEGER NOT NULL CHECK (downvotes >= 0),
            rank_score INTEGER NOT NULL,
            is_unpublished INTEGER NOT NULL,
            removed_at INTEGER,
            PRIMARY KEY (tenant, item_id),
            CHECK (rank_score = downvotes - upvotes)
        ) STRICT
        """,
        """
        CREATE UNIQUE INDEX dj_tracks_queued ON dj_tracks (tenant, shop_id, track_id) WHERE removed_at IS NULL
        """,
        """
        CREATE INDEX dj_tracks_order ON dj_tracks (tenant, shop_id, rank_score, added_at, track_id)
        WHERE removed_at IS NULL
        """,
        "CREATE INDEX dj_tracks_unpublished ON dj_tracks (tenant, shop_id) WHERE is_unpublished = 1",
        "CREATE INDEX dj_tracks_removed ON dj_tracks (tenant, item_id) WHERE removed_at IS NOT NULL",
        """
        CREATE TABLE dj_votes (
            tenant TEXT NOT NULL,
            user_id TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            item_id TEXT NOT NULL,
            side INTEGER NOT NULL CHECK (side IN (-1, 1)),
            PRIMARY KEY (tenant, user_id, shop_id, item_id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX dj_votes_of_item ON dj_votes (tenant, item_id)",
        // An empty booking id marks a presence by claim or code. A user has at most one, because a user is at one shop
        // at a time.
        """
        CREATE TABLE presences (
            tenant TEXT NOT NULL,
            user_id TEXT NOT NULL,
            booking_id TEXT NOT NULL,
            shop_id TEXT NOT NULL,
            source TEXT NOT NULL,
            since INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, user_id, booking_id)
        ) STRICT
        """,
        "CREATE INDEX presences_expiry ON presences (expires_at, tenant)",
        """
        CREATE TABLE presence_attempts (
            tenant TEXT NOT NULL,
            user_id TEXT NOT NULL,
            failures INTEGER NOT NULL,
            since INTEGER NOT NULL,
            PRIMARY KEY (tenant, user_id)
        ) STRICT
        """,
        "CREATE INDEX presence_attempts_age ON presence_attempts (since, tenant)",
    ]
}
