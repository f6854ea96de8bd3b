import Database
import Domain
import Values

/// The order of a leaderboard in plain SQL, for leaderboards that are not in memory (yet), and for comparison with
/// them.
///
/// The index answers the top at once. A place is a count over a part of the index, which takes some 100 ms in the
/// middle of a million entries.
extension ChallengesFeature {
    static func top(_ count: Int, _ board: BoardRow, _ tx: Transaction) throws -> [Leaderboard.Entry] {
        var lines: [Line] = []
        try ordered(board.id, after: nil, limit: count, tx) { lines.append((userId: $0, standing: $1)) }
        return Leaderboard.Entry.entries(lines, first: Place(rank: 1, position: 1))
    }

    static func place(of standing: Standing, _ board: BoardRow, _ tx: Transaction) throws -> Place {
        let better = try tx.db.integer(
            """
            SELECT count(*) FROM \(scores, within: tx.tenant, bookkeeping)
            WHERE board_id = \(board.id) AND standing < \(standing.key)
            """)
        let earlier = try tx.db.integer(
            """
            SELECT count(*) FROM \(scores, within: tx.tenant, bookkeeping)
            WHERE board_id = \(board.id) AND standing = \(standing.key)
                AND reached < \(standing.reached)
            """)
        return Place(rank: (better ?? 0) + 1, position: (better ?? 0) + (earlier ?? 0) + 1)
    }

    static func around(
        _ own: Leaderboard.Entry, count: Int, _ board: BoardRow, _ tx: Transaction
    ) throws -> [Leaderboard.Entry] {
        var before: [Line] = try tx.db.rows(
            """
            SELECT user_id, standing, reached FROM \(scores, within: tx.tenant, bookkeeping)
            WHERE board_id = \(board.id) AND standing IS NOT NULL
                AND (standing, reached) < (\(own.standing.key), \(own.standing.reached))
            ORDER BY standing DESC, reached DESC LIMIT \(count)
            """
        ) { (try $0.id(0), try standing($0)) }
        before.reverse()
        var lines = before + [(own.userId, own.standing)]
        try ordered(board.id, after: own.standing, limit: count, tx) { lines.append((userId: $0, standing: $1)) }
        let rank = try place(of: Standing(key: lines[0].standing.key, reached: 0), board, tx).rank
        return Leaderboard.Entry.entries(lines, first: Place(rank: rank, position: own.place.position - before.count))
    }

    private typealias Line = (userId: ID<User>, standing: Standing)
}
