import Database

extension ChallengesFeature {
    static let challenges = Table(
        "challenges", read: ["everyone"], write: ["shop:{shop_id}:staff", "tenant:admin", "tenant:service"],
        person: .nothing("challenges belong to shops"))

    /// The leaderboard of each challenge: the number of its changes, and up to which of them are published.
    static let boardRows = Table(
        "challenge_boards", read: [], write: [], person: .nothing("counters of boards"))

    /// All users see all scores. Users write their own; admins and backends write all.
    static let scores = Table(
        "challenge_scores", read: ["everyone"], write: ["user:{user_id}", "tenant:admin", "tenant:service"],
        person: .rows(by: ["board_id", "user_id"], [.step("user_id", isBounded: false)]))

    /// The first lines of each leaderboard, as last sent to its watchers.
    static let tops = Table(
        "challenge_tops", read: [], write: [], person: .copies("first lines of boards, stored again without the person")
    )

    static let migrations = [Migration("0001_challenges", sql: definitions)]

    private static let definitions: [Migration.Step] = [
        """
        CREATE TABLE challenges (
            tenant TEXT NOT NULL,
            challenge_id TEXT NOT NULL,
            board_id TEXT NOT NULL,
            name TEXT NOT NULL,
            shop_id TEXT,
            starts_at INTEGER NOT NULL,
            ends_at INTEGER NOT NULL,
            mode TEXT NOT NULL,
            score_order TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, challenge_id)
        ) STRICT
        """,
        """
        CREATE TABLE challenge_boards (
            tenant TEXT NOT NULL,
            board_id TEXT NOT NULL,
            challenge_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            mark INTEGER NOT NULL,
            entries INTEGER NOT NULL CHECK (entries >= 0),
            has_names INTEGER NOT NULL,
            published_revision INTEGER NOT NULL,
            published_at INTEGER NOT NULL,
            is_removed INTEGER NOT NULL,
            PRIMARY KEY (tenant, board_id)
        ) STRICT
        """,
        // The rows that the ticks look for, which is usually an empty set.
        """
        CREATE INDEX challenge_boards_unpublished ON challenge_boards (tenant, published_at)
        WHERE revision > published_revision AND is_removed = 0
        """,
        "CREATE INDEX challenge_boards_published ON challenge_boards (tenant, published_at)",
        "CREATE INDEX challenge_boards_removed ON challenge_boards (tenant, board_id) WHERE is_removed = 1",
        // A user whose score was withdrawn still has a row, because replicas that follow the changes must read it too.
        """
        CREATE TABLE challenge_scores (
            tenant TEXT NOT NULL,
            board_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            score INTEGER,
            standing INTEGER CHECK ((standing IS NULL) = (score IS NULL)),
            reached INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            display_name TEXT,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, board_id, user_id)
        ) STRICT, WITHOUT ROWID
        """,
        // The changes of a leaderboard in order, which a lagging replica reads.
        "CREATE UNIQUE INDEX challenge_scores_changes ON challenge_scores (tenant, board_id, revision)",
        // The order itself. A leaderboard is loaded from it, and queries use it until then. The standing is the score
        // transformed so that smaller is better.
        """
        CREATE INDEX challenge_scores_order ON challenge_scores (tenant, board_id, standing, reached, user_id)
        WHERE standing IS NOT NULL
        """,
        """
        CREATE TABLE challenge_tops (
            tenant TEXT NOT NULL,
            board_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            lines TEXT NOT NULL,
            PRIMARY KEY (tenant, board_id)
        ) STRICT
        """,
    ]
}
