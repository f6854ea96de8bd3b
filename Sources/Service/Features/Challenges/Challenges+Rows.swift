import Database
import Domain
import Values

/// The stored challenge and its leaderboard, with the number of changes, and up to which of them are published.
struct BoardRow: Sendable {
    let challenge: Challenge
    let id: String
    /// The number of changes of the leaderboard, in commit order.
    var revision: Int64
    /// A random number that each change renews. It distinguishes a change from a rolled-back one with the same number.
    var mark: Int64
    var entries: Int
    /// Whether any user has a display name.
    var hasNames: Bool
    var publishedRevision: Int64
    var publishedAt: Timestamp

    func key(in tenant: ID<Tenant>) -> Board.Key {
        Board.Key(tenant: tenant, id: id, challengeId: challenge.id, order: challenge.order)
    }
}

/// The stored score of one user on a leaderboard.
struct ScoreRow: Sendable, Equatable {
    let userId: ID<User>
    /// Nil if withdrawn.
    var score: Int64?
    /// The change that set the score.
    var reached: Int64 = 0
    /// The last change of the row.
    var revision: Int64 = 0
    var displayName: String?

    func standing(_ order: Challenge.Order) -> Standing? {
        score.map { Standing(key: order.key(of: $0), reached: reached) }
    }
}

extension ChallengesFeature {
    static let bookkeeping = Unscoped.bookkeeping(
        "a board's counters belong to the service; all users may read its order")

    /// The columns that ``board(_:)`` reads, in order.
    private static let columns: SQL = """
        \(Challenge.columns(of: "challenge")), board.board_id, board.revision, board.mark, board.entries,
        board.has_names, board.published_revision, board.published_at
        """

    private static let challengeColumns = Challenge.columns()
    private static let challengeReplacement = Challenge.replacement(keeping: ["challenge_id", "created_at"])
    private static let challengeColumnCount = Challenge.columnNames.count

    static func query(_ condition: SQL, visibleTo scope: Scope) -> SQL {
        """
        SELECT \(columns) FROM \(challenges, visibleTo: scope) AS challenge
        JOIN \(boardRows, within: scope.tenant, bookkeeping) AS board
            ON board.tenant = challenge.tenant AND board.board_id = challenge.board_id
        WHERE challenge.challenge_id \(condition)
        """
    }

    static func board(_ row: Row) throws -> BoardRow {
        let first = challengeColumnCount
        return BoardRow(
            challenge: try Challenge(row: row), id: try row.text(first), revision: Int64(try row.integer(first + 1)),
            mark: Int64(try row.integer(first + 2)), entries: try row.integer(first + 3),
            hasNames: try row.bool(first + 4), publishedRevision: Int64(try row.integer(first + 5)),
            publishedAt: try row.moment(first + 6))
    }

    static func find(_ id: ID<Challenge>, _ tx: Transaction) throws -> BoardRow? {
        try tx.db.row(query("= \(id)", visibleTo: tx.scope), board)
    }

    static func require(_ id: ID<Challenge>, _ tx: Transaction) throws -> BoardRow {
        try find(id, tx).required("challenge")
    }

    /// Returns the recently moved challenges on which the caller has a score.
    static func recentlyMoved(_ tx: Transaction) throws -> [BoardRow] {
        let earliest = tx.now.adding(seconds: -LeaderboardLimits.ownRanksSeconds)
        return try tx.db.rows(
            """
            SELECT \(columns) FROM (
                SELECT * FROM \(boardRows, within: tx.tenant, bookkeeping)
                WHERE published_at > \(earliest) AND is_removed = 0
                ORDER BY published_at DESC LIMIT \(LeaderboardLimits.recentlyMovedMax)
            ) AS board
            JOIN \(scores, visibleTo: tx.scope) AS score
                ON score.tenant = board.tenant AND score.board_id = board.board_id
                    AND score.user_id = \(tx.caller.userId)
            JOIN \(challenges, visibleTo: tx.scope) AS challenge
                ON challenge.tenant = board.tenant AND challenge.challenge_id = board.challenge_id
            WHERE score.score IS NOT NULL
            """, board)
    }

    static func store(_ challenge: Challenge, boardId: String, _ tx: Transaction) throws {
        try requirePermission(
            tx.db.run(
                """
                INSERT INTO \(challenges, writableBy: tx.scope)
                    (tenant, board_id, \(challengeColumns))
                VALUES (\(tx.tenant), \(boardId), \(challenge.values))
                ON CONFLICT (tenant, challenge_id) DO UPDATE SET board_id = excluded.board_id, \(challengeReplacement)
                """))
    }

    /// Checks that a scoped statement changed a row. If it changed no row, the caller may not write it.
    private static func requirePermission(_ changedRows: Int) throws {
        guard changedRows == 1 else {
            throw Failure.forbidden("You may not change this challenge.", code: "not_permitted")
        }
    }

    /// Hides a challenge at once. `removalTick` removes its scores gradually.
    static func remove(_ board: BoardRow, _ tx: Transaction) throws {
        try requirePermission(
            tx.db.run("DELETE FROM \(challenges, writableBy: tx.scope) WHERE challenge_id = \(board.challenge.id)"))
        try scheduleRemoval(board, tx)
    }

    // MARK: Boards

    /// Inserts a leaderboard.
    ///
    /// - Returns: The id of the new leaderboard.
    static func insertBoard(of challengeId: ID<Challenge>, _ tx: Transaction) throws -> String {
        let id = tx.makeID(Challenge.self).text
        try tx.db.run(
            """
            INSERT INTO \(boardRows, within: tx.tenant, bookkeeping)
                (tenant, board_id, challenge_id, revision, mark, entries, has_names, published_revision, published_at, is_removed)
            VALUES (\(tx.tenant), \(id), \(challengeId), 0, 0, 0, 0, 0, 0, 0)
            """)
        return id
    }

    static func scheduleRemoval(_ board: BoardRow, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(boardRows, within: tx.tenant, bookkeeping) SET is_removed = 1
            WHERE board_id = \(board.id)
            """)
    }

    static func update(_ board: BoardRow, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(boardRows, within: tx.tenant, bookkeeping) SET revision = \(board.revision), mark = \(board.mark),
                entries = \(board.entries), has_names = \(board.hasNames), published_revision = \(board.publishedRevision),
                published_at = \(board.publishedAt)
            WHERE board_id = \(board.id)
            """)
    }

    /// Returns the number of changes and of entries of a leaderboard; nil for a deleted one.
    static func extent(of boardId: String, _ tx: Transaction) throws -> (revision: Int64, entries: Int)? {
        try tx.db.row(
            """
            SELECT revision, entries FROM \(boardRows, within: tx.tenant, bookkeeping)
            WHERE board_id = \(boardId) AND is_removed = 0
            """
        ) { (Int64(try $0.integer(0)), try $0.integer(1)) }
    }

    // MARK: Scores

    static func findScore(of user: ID<User>, _ board: BoardRow, _ tx: Transaction) throws -> ScoreRow? {
        try tx.db.row(
            """
            SELECT user_id, score, reached, revision, display_name FROM \(scores, visibleTo: tx.scope)
            WHERE board_id = \(board.id) AND user_id = \(user)
            """
        ) { row in
            ScoreRow(
                userId: try row.id(0), score: try row.optionalInteger(1).map(Int64.init),
                reached: Int64(try row.integer(2)), revision: Int64(try row.integer(3)),
                displayName: try row.optionalText(4))
        }
    }

    static func store(_ row: ScoreRow, _ board: BoardRow, _ tx: Transaction) throws {
        try requirePermission(
            tx.db.run(
                """
                INSERT INTO \(scores, writableBy: tx.scope)
                    (tenant, board_id, user_id, score, standing, reached, revision, display_name, updated_at)
                VALUES (\(tx.tenant), \(board.id), \(row.userId), \(row.score),
                    \(row.standing(board.challenge.order)?.key), \(row.reached), \(row.revision), \(row.displayName),
                    \(tx.now))
                ON CONFLICT (tenant, board_id, user_id) DO UPDATE SET score = excluded.score,
                    standing = excluded.standing, reached = excluded.reached, revision = excluded.revision,
                    display_name = excluded.display_name, updated_at = excluded.updated_at
                """))
    }

    /// Returns the display names of the given users. Users without a name are omitted.
    static func displayNames(
        of users: some Sequence<ID<User>>, _ board: BoardRow, _ tx: Transaction
    ) throws -> [ID<User>: String] {
        guard board.hasNames else { return [:] }
        let found = try tx.db.rows(
            """
            SELECT user_id, display_name FROM \(scores, visibleTo: tx.scope)
            WHERE board_id = \(board.id) AND user_id IN \(values: users.map(\.text)) AND display_name IS NOT NULL
            """
        ) { (ID<User>(try $0.text(0)), try $0.text(1)) }
        return Dictionary(found) { first, _ in first }
    }

    // MARK: Loading leaderboards into memory

    /// One change of a leaderboard: a user's new standing.
    struct Change: Sendable {
        let userId: ID<User>
        /// Nil if the user was removed.
        let standing: Standing?
    }

    /// Returns the standings of the users whose rows changed with `after < revision ≤ through`; of several changes of a
    /// user, the last. Returns nil if there are so many that reloading the leaderboard is cheaper.
    static func changes(of boardId: String, after: Int64, through: Int64, _ tx: Transaction) throws -> [Change]? {
        let changes = try tx.db.rows(
            """
            SELECT user_id, standing, reached FROM \(scores, within: tx.tenant, bookkeeping)
            WHERE board_id = \(boardId) AND revision > \(after) AND revision <= \(through)
            ORDER BY revision LIMIT \(LeaderboardLimits.caughtUpMax + 1)
            """
        ) { Change(userId: try $0.id(0), standing: $0.isNull(1) ? nil : try standing($0)) }
        return changes.count > LeaderboardLimits.caughtUpMax ? nil : changes
    }

    /// Reads the standing from `user_id, standing, reached`.
    static func standing(_ row: Row) throws -> Standing {
        Standing(key: Int64(try row.integer(1)), reached: Int64(try row.integer(2)))
    }

    /// Reads a part of the order; with `after` nil, from its beginning.
    static func ordered(
        _ boardId: String, after: Standing?, limit: Int, _ tx: Transaction, _ body: (ID<User>, Standing) throws -> Void
    ) throws {
        let bound: SQL = if let after { "AND (standing, reached) > (\(after.key), \(after.reached))" } else { "" }
        try tx.db.forEach(
            """
            SELECT user_id, standing, reached FROM \(scores, within: tx.tenant, bookkeeping)
            WHERE board_id = \(boardId) AND standing IS NOT NULL \(bound)
            ORDER BY standing, reached LIMIT \(limit)
            """
        ) { row in
            try body(row.id(0), standing(row))
            return true
        }
    }

    /// Rows of one statement, so that an answer of a server takes at most a few megabytes of memory.
    private static let loadedAtOnce = 20_000

    /// Loads the whole order of a leaderboard. `entries` is the approximate number of entries.
    static func leaderboard(_ boardId: String, entries: Int, _ tx: Transaction) throws -> Leaderboard {
        // Slightly larger, so that the first new entries find room.
        var builder = Leaderboard.Builder(countMax: entries + entries / 16)
        var last: Standing?
        while true {
            var count = 0
            try ordered(boardId, after: last, limit: loadedAtOnce, tx) { user, standing in
                builder.append(user, standing)
                last = standing
                count += 1
            }
            if count < loadedAtOnce { return builder.finish() }
        }
    }
}
