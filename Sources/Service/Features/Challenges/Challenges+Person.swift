import Database
import Domain
import Values

extension ChallengesFeature {
    /// Boards of one transaction of an erasure, each with the statements of a withdrawn score.
    private static let erasedAtOnceMax = 16

    /// Withdraws the scores of an erased person, and removes the person from the published tops.
    ///
    /// The row of a withdrawn score stays, because its number is that of the board's last change. It gets an id of its
    /// own. A replica that follows the changes would not find the person's row, so each loads the board again.
    static func personStep(_ boards: Leaderboards?) -> PersonStep {
        PersonStep("challenges.scores") { person, place, tx in
            let last = try tx.lastID(
                after: place, of: PersonStep.lookedUpAtOnce,
                in: WalkedTable(boardRows, by: "board_id", bookkeeping))
            guard let last else { return nil }
            let found = try tx.db.rows(
                """
                SELECT board.board_id, board.challenge_id FROM \(boardRows, within: tx.tenant, bookkeeping) AS board
                JOIN \(scores, within: tx.tenant, bookkeeping) AS score ON score.tenant = board.tenant
                    AND score.board_id = board.board_id AND score.user_id = \(person)
                WHERE board.board_id > \(place ?? "") AND board.board_id <= \(last)
                ORDER BY board.board_id LIMIT \(erasedAtOnceMax)
                """
            ) { (boardId: try $0.text(0), challengeId: try $0.id(1) as ID<Challenge>) }
            try tx.lock(found.map { .challenge($0.challengeId) })
            for (boardId, challengeId) in found {
                if let board = try find(challengeId, tx), board.id == boardId {
                    try erase(person, from: board, boards, tx)
                } else {
                    // The scores of a deleted challenge.
                    try tx.db.run(
                        "DELETE FROM \(scores, of: person, in: tx.tenant) WHERE board_id = \(boardId)")
                }
            }
            return found.count < erasedAtOnceMax ? last : place ?? ""
        }
    }

    private static func erase(
        _ person: ID<User>, from before: BoardRow, _ boards: Leaderboards?, _ tx: Transaction
    ) throws {
        guard let known = try findScore(of: person, before, tx) else { return }
        var board = before
        board.revision += 1
        board.mark = .random(in: .min ... .max)
        board.entries -= known.score == nil ? 0 : 1
        try tx.db.run(
            """
            UPDATE \(scores, within: tx.tenant, bookkeeping)
            SET user_id = \("\(ID<User>.erased):\(board.revision)"), score = NULL, standing = NULL,
                reached = \(board.revision), revision = \(board.revision), display_name = NULL
            WHERE board_id = \(board.id) AND user_id = \(person)
            """)
        // Published now, because the stored top has the person's name.
        board.publishedAt = Timestamp(microseconds: 0)
        try publishIfDue(&board, tx)
        try update(board, tx)
        notifyReplicas(of: board, isReloaded: true, tx)
        let key = board.key(in: tx.tenant)
        tx.afterCommit { boards?.forget(key) }
    }
}
