import Database
import Domain
import Realtime
import Rows
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
        let (challenge, board) = try require(ID(id), tx)
        return ("\(updateEvent)", try state(challenge, board, changes: 0, tx))
    }

    /// Publishes what has changed since the last time, if that was a second ago, and notes so in the row.
    static func publishIfDue(_ challenge: Challenge, _ board: inout BoardRow, _ tx: Transaction) throws {
        let due = board.publishedAt.adding(seconds: LeaderboardLimits.updatePauseSeconds)
        guard board.revision > board.publishedRevision, tx.now >= due else { return }
        let changes = Int(board.revision - board.publishedRevision)
        let audience = challenges.read.audience { _ in nil }
        tx.publish(
            updateEvent, audience: audience, topic: "leaderboard:\(challenge.id.text)",
            collapse: "leaderboard:\(challenge.id.text)",
            data: try state(challenge, board, changes: changes, tx))
        notifyReplicas(of: board, challenge, tx)
        (board.publishedRevision, board.publishedAt) = (board.revision, tx.now)
    }

    /// Has every replica look at a board again.
    static func notifyReplicas(of board: BoardRow, _ challenge: Challenge, _ tx: Transaction) {
        tx.notifyReplicas(
            movedMessage,
            data: JSONWriter.object { writer in
                writer.member("boardId", board.id)
                writer.member("challengeId", challenge.id)
                writer.member("order", challenge.order.rawValue)
                writer.member("revision", board.revision)
            })
    }

    private static func state(
        _ challenge: Challenge, _ board: BoardRow, changes: Int, _ tx: Transaction
    ) throws -> [UInt8] {
        let top = try top(LeaderboardLimits.watchedTop, board, tx)
        let names = try displayNames(of: top.lazy.map(\.userId), board, tx)
        return JSONWriter.object { writer in
            writer.member("challengeId", challenge.id)
            writer.member("entries", board.entries)
            writer.member("top", top.map { LeaderboardItem($0, challenge.order, names) })
            writer.member("changed", changes)
            writer.member("version", board.revision)
        }
    }

    // MARK: Own ranks

    /// Where a user stands, for all streams of that user.
    static func ownRank(
        _ entry: Leaderboard.Entry, of challengeId: ID<Challenge>, _ order: Challenge.Order, tenant: String,
        changes: Int, revision: Int64
    ) -> OwnState {
        let data = JSONWriter.object { writer in
            writer.member("challengeId", challengeId)
            writer.member("rank", entry.place.rank)
            writer.member("position", entry.place.position)
            writer.member("score", order.score(of: entry.standing.key))
            writer.member("changed", changes)
            writer.member("version", revision)
        }
        return OwnState(
            tenant: tenant, key: AudienceKey.make("user", entry.userId.text), name: "\(updateEvent)",
            collapse: CollapseKey.of("leaderboard-rank:\(challengeId.text)"), data: data)
    }

    /// What the caller's stream begins with: the ranks on boards that have moved lately, since own ranks are no rows of
    /// the log and are not replayed.
    static func ownRanks(_ boards: Leaderboards, _ tx: Transaction) throws -> [OwnState] {
        guard !tx.caller.isService else { return [] }
        return try latelyMoved(tx).prefix(LeaderboardLimits.ownRanksMax).compactMap { challenge, board in
            let (order, user) = (challenge.order, tx.caller.userId)
            let found = try boards.read(board, order, tx) { leaderboard in
                leaderboard.entry(of: user).map {
                    ownRank(
                        $0, of: challenge.id, order, tenant: tx.tenant, changes: 0, revision: board.revision)
                }
            }
            // To count in SQL what thousands ask who come back at once would take minutes.
            guard let found else {
                boards.publishLater(board, order, tenant: tx.tenant)
                return nil
            }
            return found
        }
    }

    /// Publishes what has changed within a second after the last time.
    static let updateTick = Tick(name: "challenges.telling", everySeconds: 1, isDue: isUpdateDue) { tx in
        let due = tx.now.adding(seconds: -LeaderboardLimits.updatePauseSeconds)
        let ids = try tx.db.rows(
            """
            SELECT challenge_id FROM \(boardRows, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND revision > told_revision AND is_doomed = 0
                AND told_at <= \(due.microseconds)
            ORDER BY told_at LIMIT \(updatedAtOnceMax)
            """
        ) { ID<Challenge>(try $0.text(0)) }
        for id in ids {
            try tx.lock(.challenge(id))
            guard var (challenge, board) = try find(id, tx) else { continue }
            try publishIfDue(challenge, &board, tx)
            try update(board, tx)
        }
    }

    private static func isUpdateDue(_ db: Connection, _ now: Timestamp) throws -> Bool {
        let due = now.adding(seconds: -LeaderboardLimits.updatePauseSeconds)
        return try db.exists(
            """
            SELECT 1 FROM \(boardRows, unscoped: bookkeeping)
            WHERE revision > told_revision AND is_doomed = 0 AND told_at <= \(due.microseconds) LIMIT 1
            """)
    }

    /// Boards of one tick: some milliseconds of the writer. Those that wait longest come first.
    private static let updatedAtOnceMax = 64

    // MARK: Removal

    /// Removes the scores of deleted challenges, a few at a time, and then their boards.
    static let removalTick = Tick(name: "challenges.removal", everySeconds: 5, isDue: isRemovalDue) { tx in
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
            """
            DELETE FROM \(boardRows, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND board_id = \(boardId)
            """)
    }

    private static func isRemovalDue(_ db: Connection, _ now: Timestamp) throws -> Bool {
        try db.exists("SELECT 1 FROM \(boardRows, unscoped: bookkeeping) WHERE is_doomed = 1 LIMIT 1")
    }
}
