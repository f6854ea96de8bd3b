import Database
import Domain
import Realtime
import Values
import Visibility

/// What is published of a board to those who watch it, and to the replicas: at most once a second.
///
/// The first change after a pause is published in its own transaction; those within a second of it together, by a tick.
extension ChallengesFeature {
    static let updateEvent: StaticString = "leaderboard:update"
    static let movedMessage: StaticString = "bellhop:leaderboard"

    /// Watched by whoever names it; the state comes first.
    static let leaderboardTopic = TopicKind(prefix: "leaderboard") { tx, id in
        ("\(updateEvent)", try state(require(ID(id), tx), changes: 0, tx))
    }

    /// Publishes what has changed since the last time, if that was a second ago, and notes so in the row.
    static func publishIfDue(_ board: inout BoardRow, _ tx: Transaction) throws {
        let due = board.publishedAt.adding(seconds: LeaderboardLimits.updatePauseSeconds)
        guard board.revision > board.publishedRevision, tx.now >= due else { return }
        let changes = Int(board.revision - board.publishedRevision)
        let topic = "leaderboard:\(board.challenge.id)"
        tx.publish(
            updateEvent, audience: challenges.read.audience { _ in nil }, topic: topic, collapse: topic,
            data: try state(board, changes: changes, tx))
        notifyReplicas(of: board, tx)
        (board.publishedRevision, board.publishedAt) = (board.revision, tx.now)
    }

    /// Has every replica look at a board again.
    static func notifyReplicas(of board: BoardRow, _ tx: Transaction) {
        tx.notifyReplicas(
            movedMessage,
            data: JSONWriter.object { writer in
                writer.member("boardId", board.id)
                writer.member("challengeId", board.challenge.id)
                writer.member("order", board.challenge.order.rawValue)
                writer.member("revision", board.revision)
            })
    }

    private static func state(_ board: BoardRow, changes: Int, _ tx: Transaction) throws -> [UInt8] {
        let top = try top(LeaderboardLimits.watchedTop, board, tx)
        let names = try displayNames(of: top.lazy.map(\.userId), board, tx)
        return JSONWriter.object { writer in
            writer.member("challengeId", board.challenge.id)
            writer.member("entries", board.entries)
            writer.member("top", top.map { LeaderboardItem($0, board.challenge.order, names) })
            writer.member("changed", changes)
            writer.member("version", board.revision)
        }
    }

    // MARK: Own ranks

    /// Where a user stands, for all streams of that user.
    static func ownRank(_ entry: Leaderboard.Entry, on key: Board.Key, changes: Int, revision: Int64) -> OwnState {
        let data = JSONWriter.object { writer in
            writer.member("challengeId", key.challengeId)
            writer.member("rank", entry.place.rank)
            writer.member("position", entry.place.position)
            writer.member("score", key.order.score(of: entry.standing.key))
            writer.member("changed", changes)
            writer.member("version", revision)
        }
        return OwnState(
            tenant: key.tenant, key: AudienceKey.make("user", entry.userId.text), name: "\(updateEvent)",
            collapse: CollapseKey.of("leaderboard-rank:\(key.challengeId)"), data: data)
    }

    /// What the caller's stream begins with: the ranks on boards that have moved lately, since own ranks are no rows of
    /// the log and are not replayed.
    static func ownRanks(_ boards: Leaderboards, _ tx: Transaction) throws -> [OwnState] {
        guard !tx.caller.isService else { return [] }
        return try latelyMoved(tx).prefix(LeaderboardLimits.ownRanksMax).compactMap { board in
            let key = board.key(in: tx.tenant)
            let found = try boards.read(board, tx) { leaderboard in
                leaderboard.entry(of: tx.caller.userId).map {
                    ownRank($0, on: key, changes: 0, revision: board.revision)
                }
            }
            // To count in SQL what thousands ask who come back at once would take minutes.
            if found == nil { boards.publishLater(key, revision: board.revision) }
            return found ?? nil
        }
    }

    /// Publishes what has changed within a second after the last time.
    static let updateTick = Tick(
        name: "challenges.telling", everySeconds: 1,
        due: { "SELECT 1 FROM \(boardRows, unscoped: bookkeeping) WHERE \(isUnpublished(at: $0)) LIMIT 1" }
    ) { tx in
        let ids: [ID<Challenge>] = try tx.db.rows(
            """
            SELECT challenge_id FROM \(boardRows, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND \(isUnpublished(at: tx.now)) ORDER BY told_at LIMIT \(updatedAtOnceMax)
            """
        ) { try $0.id(0) }
        for id in ids {
            try tx.lock(.challenge(id))
            guard var board = try find(id, tx) else { continue }
            try publishIfDue(&board, tx)
            try update(board, tx)
        }
    }

    private static func isUnpublished(at now: Timestamp) -> SQL {
        let due = now.adding(seconds: -LeaderboardLimits.updatePauseSeconds)
        return "revision > told_revision AND is_doomed = 0 AND told_at <= \(due)"
    }

    /// Boards of one tick: some milliseconds of the writer. Those that wait longest come first.
    private static let updatedAtOnceMax = 64

    // MARK: Removal

    /// Removes the scores of deleted challenges, a few at a time, and then their boards.
    static let removalTick = Tick(
        name: "challenges.removal", everySeconds: 5,
        due: { _ in "SELECT 1 FROM \(boardRows, unscoped: bookkeeping) WHERE is_doomed = 1 LIMIT 1" }
    ) { tx in
        let boardId = try tx.db.row(
            """
            SELECT board_id FROM \(boardRows, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND is_doomed = 1 ORDER BY board_id LIMIT 1
            """
        ) { try $0.text(0) }
        guard let boardId else { return }
        let removed = try tx.db.run(
            """
            DELETE FROM \(scores, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND board_id = \(boardId)
                AND user_id IN (
                    SELECT user_id FROM \(scores, unscoped: bookkeeping)
                    WHERE tenant = \(tx.tenant) AND board_id = \(boardId) LIMIT \(LeaderboardLimits.removedAtOnceMax))
            """)
        guard removed < LeaderboardLimits.removedAtOnceMax else { return }
        try tx.db.run(
            "DELETE FROM \(boardRows, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND board_id = \(boardId)")
    }
}
