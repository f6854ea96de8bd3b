import Database
import Domain
import Rows
import Values

/// The board of a challenge as its row says: how many changes there were, and which of them are published.
struct BoardRow: Sendable {
    let id: String
    let challengeId: ID<Challenge>
    /// Counts the changes of the board, one after the other in the order of their commits.
    var revision: Int64
    /// Drawn anew by each change: distinguishes a change from another one that got its number because it was rolled back.
    var mark: Int64
    var entries: Int
    /// Whether anybody has a name that is shown.
    var hasNames: Bool
    var publishedRevision: Int64
    var publishedAt: Timestamp
}

/// What one user has on a board.
struct ScoreRow: Sendable, Equatable {
    let userId: ID<User>
    /// Nil: withdrawn.
    var score: Int64?
    /// The change by which the score was reached.
    var reached: Int64
    /// The last change of the row.
    var revision: Int64
    var displayName: String?
}

extension ChallengesFeature {
    static let bookkeeping = Unscoped.bookkeeping(
        "a board's counters belong to the service; everybody may see its order")

    // MARK: Challenges

    private static let columns: SQL = """
        challenge.challenge_id, challenge.name, challenge.shop_id, challenge.starts_at, challenge.ends_at,
        challenge.mode, challenge.score_order, challenge.created_at, challenge.updated_at, board.board_id,
        board.revision, board.mark, board.entries, board.has_names, board.told_revision, board.told_at
        """

    static func query(_ id: ID<Challenge>, visibleTo scope: Scope) -> SQL {
        """
        SELECT \(columns) FROM \(challenges, visibleTo: scope) AS challenge
        JOIN \(boardRows, unscoped: bookkeeping) AS board
            ON board.tenant = challenge.tenant AND board.board_id = challenge.board_id
        WHERE challenge.challenge_id = \(id.text)
        """
    }

    static func row(_ row: Row) throws -> (challenge: Challenge, board: BoardRow) {
        guard let mode = Challenge.Mode(rawValue: try row.text(5)),
            let order = Challenge.Order(rawValue: try row.text(6))
        else { throw DatabaseError(.corrupt, "a challenge has a mode that cannot be") }
        let id = ID<Challenge>(try row.text(0))
        let challenge = Challenge(
            id: id, name: try row.text(1), shopId: try row.optionalText(2).map { ID($0) },
            startsAt: try row.moment(3), endsAt: try row.moment(4), mode: mode, order: order,
            createdAt: try row.moment(7), updatedAt: try row.moment(8))
        let board = BoardRow(
            id: try row.text(9), challengeId: id, revision: Int64(try row.integer(10)),
            mark: Int64(try row.integer(11)), entries: try row.integer(12), hasNames: try row.bool(13),
            publishedRevision: Int64(try row.integer(14)), publishedAt: try row.moment(15))
        return (challenge, board)
    }

    static func find(_ id: ID<Challenge>, _ tx: Transaction) throws -> (challenge: Challenge, board: BoardRow)? {
        try tx.db.row(query(id, visibleTo: tx.scope), row)
    }

    static func require(_ id: ID<Challenge>, _ tx: Transaction) throws -> (challenge: Challenge, board: BoardRow) {
        guard let found = try find(id, tx) else { throw Failure.notFound("challenge") }
        return found
    }

    static func list(after: String?, limit: Int, _ tx: Transaction) throws -> [Challenge] {
        try tx.db.rows(
            """
            SELECT \(columns) FROM \(challenges, visibleTo: tx.scope) AS challenge
            JOIN \(boardRows, unscoped: bookkeeping) AS board
                ON board.tenant = challenge.tenant AND board.board_id = challenge.board_id
            WHERE challenge.challenge_id > \(after ?? "") ORDER BY challenge.challenge_id LIMIT \(limit)
            """
        ) { try row($0).challenge }
    }

    /// Challenges that have moved lately and on which the caller has a score.
    static func latelyMoved(_ tx: Transaction) throws -> [(challenge: Challenge, board: BoardRow)] {
        let earliest = tx.now.adding(seconds: -LeaderboardLimits.ownRanksSeconds)
        return try tx.db.rows(
            """
            SELECT \(columns) FROM (
                SELECT * FROM \(boardRows, unscoped: bookkeeping)
                WHERE tenant = \(tx.tenant) AND told_at > \(earliest.microseconds) AND is_doomed = 0
                ORDER BY told_at DESC LIMIT \(LeaderboardLimits.latelyMovedMax)
            ) AS board
            JOIN \(scores, visibleTo: tx.scope) AS score
                ON score.tenant = board.tenant AND score.board_id = board.board_id
                    AND score.user_id = \(tx.caller.userId.text)
            JOIN \(challenges, visibleTo: tx.scope) AS challenge
                ON challenge.tenant = board.tenant AND challenge.challenge_id = board.challenge_id
            WHERE score.score IS NOT NULL
            """, row)
    }

    static func countChallenges(_ tx: Transaction) throws -> Int {
        try tx.db.integer("SELECT count(*) FROM \(challenges, visibleTo: tx.scope)") ?? 0
    }

    static func store(_ challenge: Challenge, boardId: String, _ tx: Transaction) throws {
        let changed = try tx.db.run(
            """
            INSERT INTO \(challenges, writableBy: tx.scope)
                (tenant, challenge_id, board_id, name, shop_id, starts_at, ends_at, mode, score_order, created_at,
                updated_at)
            VALUES (\(tx.tenant), \(challenge.id.text), \(boardId), \(challenge.name), \(challenge.shopId?.text),
                \(challenge.startsAt.microseconds), \(challenge.endsAt.microseconds), \(challenge.mode.rawValue),
                \(challenge.order.rawValue), \(challenge.createdAt.microseconds), \(challenge.updatedAt.microseconds))
            ON CONFLICT (tenant, challenge_id) DO UPDATE SET board_id = excluded.board_id, name = excluded.name,
                shop_id = excluded.shop_id, starts_at = excluded.starts_at, ends_at = excluded.ends_at, mode = excluded.mode,
                score_order = excluded.score_order, updated_at = excluded.updated_at
            """)
        try requirePermission(changed)
    }

    /// What a scoped statement did not reach, the caller may not write.
    private static func requirePermission(_ changedRows: Int) throws {
        guard changedRows == 1 else { throw Failure.forbidden("You may not change this.", code: "not_permitted") }
    }

    /// Takes a challenge out of sight at once; its scores are removed by and by (`removalTick`).
    static func remove(_ id: ID<Challenge>, _ board: BoardRow, _ tx: Transaction) throws {
        let removed = try tx.db.run(
            "DELETE FROM \(challenges, writableBy: tx.scope) WHERE challenge_id = \(id.text)")
        try requirePermission(removed)
        try doom(board, tx)
    }

    // MARK: Boards

    static func insertBoard(_ id: String, of challengeId: ID<Challenge>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(boardRows, unscoped: bookkeeping)
                (tenant, board_id, challenge_id, revision, mark, entries, has_names, told_revision, told_at, is_doomed)
            VALUES (\(tx.tenant), \(id), \(challengeId.text), 0, 0, 0, 0, 0, 0, 0)
            """)
    }

    static func doom(_ board: BoardRow, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(boardRows, unscoped: bookkeeping) SET is_doomed = 1
            WHERE tenant = \(tx.tenant) AND board_id = \(board.id)
            """)
    }

    static func update(_ board: BoardRow, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(boardRows, unscoped: bookkeeping) SET revision = \(board.revision), mark = \(board.mark),
                entries = \(board.entries), has_names = \(board.hasNames), told_revision = \(board.publishedRevision),
                told_at = \(board.publishedAt.microseconds)
            WHERE tenant = \(tx.tenant) AND board_id = \(board.id)
            """)
    }

    /// How many changes a board has had, and how many entries it has; nil for one that is gone.
    static func extent(of boardId: String, _ tx: Transaction) throws -> (revision: Int64, entries: Int)? {
        try tx.db.row(
            """
            SELECT revision, entries FROM \(boardRows, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(boardId) AND is_doomed = 0
            """
        ) { (Int64(try $0.integer(0)), try $0.integer(1)) }
    }

    // MARK: Scores

    static func findScore(of user: ID<User>, _ board: BoardRow, _ tx: Transaction) throws -> ScoreRow? {
        try tx.db.row(
            """
            SELECT user_id, score, reached, revision, display_name FROM \(scores, visibleTo: tx.scope)
            WHERE board_id = \(board.id) AND user_id = \(user.text)
            """
        ) { row in
            ScoreRow(
                userId: ID(try row.text(0)), score: try row.optionalInteger(1).map(Int64.init),
                reached: Int64(try row.integer(2)), revision: Int64(try row.integer(3)),
                displayName: try row.optionalText(4))
        }
    }

    static func store(_ row: ScoreRow, _ order: Challenge.Order, _ board: BoardRow, _ tx: Transaction) throws {
        let changed = try tx.db.run(
            """
            INSERT INTO \(scores, writableBy: tx.scope)
                (tenant, board_id, user_id, score, standing, reached, revision, display_name, updated_at)
            VALUES (\(tx.tenant), \(board.id), \(row.userId.text), \(row.score),
                \(row.score.map { order.key(of: $0) }), \(row.reached), \(row.revision), \(row.displayName),
                \(tx.now.microseconds))
            ON CONFLICT (tenant, board_id, user_id) DO UPDATE SET score = excluded.score,
                standing = excluded.standing, reached = excluded.reached, revision = excluded.revision,
                display_name = excluded.display_name, updated_at = excluded.updated_at
            """)
        try requirePermission(changed)
    }

    /// Names that are shown, of those among the given users who have one.
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

    // MARK: What boards in memory are read from

    /// One change of a board: where a user stands since.
    struct Change: Sendable {
        let userId: ID<User>
        /// Nil: nowhere any more.
        let standing: Standing?
    }

    /// Where those stand whose rows have changed with `after < revision ≤ through`; of several changes of a user the
    /// last.
    static func changes(
        of boardId: String, after: Int64, through: Int64, limit: Int, _ tx: Transaction
    ) throws -> [Change] {
        try tx.db.rows(
            """
            SELECT user_id, standing, reached FROM \(scores, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(boardId) AND revision > \(after) AND revision <= \(through)
            ORDER BY revision LIMIT \(limit)
            """
        ) { row in
            let reached = Int64(try row.integer(2))
            return Change(
                userId: ID(try row.text(0)),
                standing: try row.optionalInteger(1).map { Standing(key: Int64($0), reached: reached) })
        }
    }

    /// A part of the order; `after` nil: from its beginning.
    static func ordered(
        _ boardId: String, after: Standing?, limit: Int, _ tx: Transaction,
        _ body: (ID<User>, Standing) throws -> Void
    ) throws {
        let bound: SQL =
            if let after { "AND (standing, reached) > (\(after.key), \(after.reached))" } else { "" }
        try tx.db.forEach(
            """
            SELECT user_id, standing, reached FROM \(scores, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(boardId) AND standing IS NOT NULL \(bound)
            ORDER BY standing, reached LIMIT \(limit)
            """
        ) { row in
            try body(
                ID(try row.text(0)), Standing(key: Int64(try row.integer(1)), reached: Int64(try row.integer(2))))
            return true
        }
    }
    /// Rows of one statement, so that no answer of a server takes more memory than a few megabytes.
    private static let loadedAtOnce = 20_000

    /// The whole order of a board; `entries`: about how many there are.
    static func leaderboard(_ boardId: String, entries: Int, _ tx: Transaction) throws -> Leaderboard {
        // A little more, so that the first newcomers find room.
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
