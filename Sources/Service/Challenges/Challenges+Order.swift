import Database
import Domain

/// The order of a board as plain SQL says it: for boards that are not in memory (yet), and for what must be the same.
///
/// The index answers the top at once; a place is a count over a part of it, some 100 ms in the middle of a million.
extension ChallengesFeature {
    static func top(_ count: Int, _ board: BoardRow, _ tx: Transaction) throws -> [Leaderboard.Entry] {
        var lines: [Line] = []
        try ordered(board.id, after: nil, limit: count, tx) { lines.append((userId: $0, standing: $1)) }
        return entries(lines, first: Place(rank: 1, position: 1))
    }

    static func place(of standing: Standing, _ board: BoardRow, _ tx: Transaction) throws -> Place {
        let better = try tx.db.integer(
            """
            SELECT count(*) FROM \(scores, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(board.id) AND standing < \(standing.key)
            """)
        let earlier = try tx.db.integer(
            """
            SELECT count(*) FROM \(scores, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(board.id) AND standing = \(standing.key)
                AND reached < \(standing.reached)
            """)
        return Place(rank: (better ?? 0) + 1, position: (better ?? 0) + (earlier ?? 0) + 1)
    }

    static func around(
        _ own: Leaderboard.Entry, _ count: Int, _ board: BoardRow, _ tx: Transaction
    ) throws -> [Leaderboard.Entry] {
        var before: [Line] = try tx.db.rows(
            """
            SELECT user_id, standing, reached FROM \(scores, unscoped: keeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(board.id) AND standing IS NOT NULL
                AND (standing, reached) < (\(own.standing.key), \(own.standing.reached))
            ORDER BY standing DESC, reached DESC LIMIT \(count)
            """
        ) { row in
            (ID(try row.text(0)), Standing(key: Int64(try row.integer(1)), reached: Int64(try row.integer(2))))
        }
        before.reverse()
        var lines = before + [(own.userId, own.standing)]
        try ordered(board.id, after: own.standing, limit: count, tx) { lines.append((userId: $0, standing: $1)) }
        let rank = try lines.first.map { try place(of: Standing(key: $0.standing.key, reached: 0), board, tx).rank }
        return entries(lines, first: Place(rank: rank ?? 1, position: own.place.position - before.count))
    }

    private typealias Line = (userId: ID<User>, standing: Standing)

    /// - Parameter first: the place of the first line.
    private static func entries(_ lines: [Line], first: Place) -> [Leaderboard.Entry] {
        var entries: [Leaderboard.Entry] = []
        for (index, line) in lines.enumerated() {
            let position = first.position + index
            var rank = index == 0 ? first.rank : position
            if let last = entries.last, last.standing.key == line.standing.key { rank = last.place.rank }
            entries.append(
                .init(
                    userId: line.userId, standing: line.standing, place: Place(rank: rank, position: position)))
        }
        return entries
    }
}
