import Database
import Domain
import Values

extension ChallengesFeature {
    private static let recounting = Unscoped.audit("a recount reads the rows of all tenants")
    private static let allBoards: SQL = "\(boardRows, unscoped: recounting)"
    private static let allChallenges: SQL = "\(challenges, unscoped: recounting)"
    private static let allScores: SQL = "\(scores, unscoped: recounting)"

    /// Finds counters that differ from a recount, and standings that differ from their scores.
    static let boardAudit = Audit(name: "challenges") { db in
        let counters = try db.rows(
            """
            SELECT board.tenant, board.challenge_id, board.entries, board.revision,
                coalesce(found.entries, 0), coalesce(found.revision, 0)
            FROM \(allBoards) AS board
            LEFT JOIN (
                SELECT tenant, board_id, count(score) AS entries, max(revision) AS revision
                FROM \(allScores) GROUP BY tenant, board_id
            ) AS found ON found.tenant = board.tenant AND found.board_id = board.board_id
            WHERE board.is_removed = 0 AND (coalesce(found.entries, 0) <> board.entries
                OR coalesce(found.revision, 0) <> board.revision)
            LIMIT 100
            """
        ) { row in
            """
            \(try row.text(0))/\(try row.text(1)): \(try row.integer(2)) entries after \(try row.integer(3)) changes are \
            counted, \(try row.integer(4)) after \(try row.integer(5)) are there
            """
        }
        let standings = try db.rows(
            """
            SELECT challenge.tenant, challenge.challenge_id, score.user_id
            FROM \(allChallenges) AS challenge
            JOIN \(allScores) AS score
                ON score.tenant = challenge.tenant AND score.board_id = challenge.board_id
            WHERE score.standing <> CASE challenge.score_order WHEN 'ascending' THEN score.score
                ELSE -1 - score.score END OR score.reached > score.revision
            LIMIT 100
            """
        ) { "\(try $0.text(0))/\(try $0.text(1)): \(try $0.text(2)) has a stored rank that does not match the score" }
        return counters + standings
    }

    /// Compares the order that the in-memory structure makes of the rows, inserted one by one in no order, with the
    /// order of SQL.
    static let orderAudit = Audit(name: "leaderboards") { db in
        let boards = try db.rows(
            "SELECT tenant, board_id, challenge_id FROM \(allBoards) WHERE is_removed = 0"
        ) { (tenant: ID<Tenant>(try $0.text(0)), id: try $0.text(1), challengeId: try $0.text(2)) }
        return try boards.flatMap { board -> [String] in
            var leaderboard = Leaderboard()
            try db.forEach(
                """
                SELECT user_id, standing, reached FROM \(scores, within: board.tenant, recounting)
                WHERE board_id = \(board.id) AND standing IS NOT NULL ORDER BY user_id
                """
            ) { row in
                leaderboard.set(try standing(row), of: try row.id(0))
                return true
            }
            let place = "\(board.tenant)/\(board.challengeId)"
            return try differences(of: leaderboard, board.tenant, board.id, db).map { "\(place): \($0)" }
        }
    }

    /// Maximum number of reported differences. One misplaced entry moves all entries after it.
    private static let differencesMax = 20

    /// Returns the differences of a leaderboard in memory from the table, limited to some lines.
    static func differences(
        of leaderboard: Leaderboard, _ tenant: ID<Tenant>, _ boardId: String, _ db: DatabaseConnection
    ) throws -> [String] {
        var found = leaderboard.damage.map { [$0] } ?? []
        var count = 0
        try db.forEach(
            """
            SELECT user_id, rank() OVER (ORDER BY standing) AS place,
                row_number() OVER (ORDER BY standing, reached) AS row
            FROM \(scores, within: tenant, recounting)
            WHERE board_id = \(boardId) AND standing IS NOT NULL
            """
        ) { row in
            let user = ID<User>(try row.text(0))
            let place = Place(rank: try row.integer(1), position: try row.integer(2))
            let own = leaderboard.entry(of: user)?.place
            if own != place { found.append("\(user) is \(place), but the structure has \(String(describing: own))") }
            count += 1
            return found.count < differencesMax
        }
        if found.isEmpty, count != leaderboard.count {
            found.append("\(count) entries, but the structure has \(leaderboard.count)")
        }
        return found
    }
}
