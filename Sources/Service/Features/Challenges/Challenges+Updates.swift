import Database
import Domain
import Realtime
import Values
import Visibility

/// The updates of a leaderboard to its watchers and to the replicas: at most one per second.
///
/// The first change after a pause is published in its own transaction. A tick publishes the changes of the following
/// second together. Watchers get the first lines once, and then the differences.
extension ChallengesFeature {
    static let updateEvent: StaticString = "leaderboard:update"
    static let movedMessage: StaticString = "bellhop:leaderboard"

    /// A topic that any user can watch. Its first event is the state as last published, so that the next change follows
    /// it.
    static let leaderboardTopic = TopicKind(prefix: "leaderboard") { tx, id in
        let board = try require(ID(id), tx)
        let published = try publishedTop(of: board, tx)
        let version = published == nil ? board.revision : board.publishedRevision
        return (
            "\(updateEvent)",
            state(
                try published ?? presentTop(of: board, tx), board, version: version, epoch: tx.epoch, changes: 0)
        )
    }

    /// Publishes the changes since the last time, if that was at least a second ago, and records this in the row.
    static func publishIfDue(_ board: inout BoardRow, _ tx: Transaction) throws {
        let due = board.publishedAt.adding(seconds: LeaderboardLimits.updatePauseSeconds)
        // A time in the future was stored before the clock was set back. It must not stop the leaderboard until then.
        guard board.revision > board.publishedRevision, tx.now >= due || tx.now < board.publishedAt else { return }
        let changes = Int(board.revision - board.publishedRevision)
        let topic = "leaderboard:\(board.challenge.id)"
        let (before, top) = (try publishedTop(of: board, tx), try presentTop(of: board, tx))
        tx.publish(
            updateEvent, audience: challenges.read.audience { _ in nil }, topic: topic, collapse: topic,
            data: before.map { change(of: top, since: $0, board, epoch: tx.epoch, changes: changes) }
                ?? state(top, board, version: board.revision, epoch: tx.epoch, changes: changes))
        try store(top, of: board, tx)
        notifyReplicas(of: board, tx)
        (board.publishedRevision, board.publishedAt) = (board.revision, tx.now)
    }

    /// Notifies every replica to check a leaderboard again.
    ///
    /// - Parameter isReloaded: Whether they must load it again, because the rows no longer show the change.
    static func notifyReplicas(of board: BoardRow, isReloaded: Bool = false, _ tx: Transaction) {
        tx.notifyReplicas(
            movedMessage,
            data: JSONWriter.object { writer in
                writer.member("boardId", board.id)
                writer.member("challengeId", board.challenge.id)
                writer.member("order", board.challenge.order.rawValue)
                writer.member("revision", board.revision)
                if isReloaded { writer.member("reloaded", true) }
            })
    }

    // MARK: The top

    /// Returns the whole top, for the beginning, and for when the last published state is unknown.
    private static func state(
        _ top: WatchedTop, _ board: BoardRow, version: Int64, epoch: String, changes: Int
    ) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("challengeId", board.challenge.id)
            writer.member("entries", board.entries)
            writer.member(
                "top",
                zip(top.lines, top.places).map { line, place in
                    LeaderboardItem(
                        userId: line.userId, displayName: line.displayName, score: line.score, place: place)
                })
            writer.member("changed", changes)
            writer.version(version, in: epoch)
        }
    }

    /// Returns the difference to the last published top. If one of a hundred entries moved, it has one line or a few.
    private static func change(
        of top: WatchedTop, since before: WatchedTop, _ board: BoardRow, epoch: String, changes: Int
    ) -> [UInt8] {
        let (moved, left) = top.changes(since: before)
        return JSONWriter.object { writer in
            writer.member("challengeId", board.challenge.id)
            writer.member("entries", board.entries)
            writer.member("since", board.publishedRevision)
            writer.member("moved", moved)
            writer.member("left", left)
            writer.member("changed", changes)
            writer.version(board.revision, in: epoch)
        }
    }

    private static func presentTop(of board: BoardRow, _ tx: Transaction) throws -> WatchedTop {
        let entries = try top(LeaderboardLimits.watchedTop, board, tx)
        let names = try displayNames(of: entries.lazy.map(\.userId), board, tx)
        return WatchedTop(
            entries.map { entry in
                WatchedTop.Line(
                    userId: entry.userId, score: board.challenge.order.score(of: entry.standing.key),
                    displayName: names[entry.userId])
            })
    }

    /// Returns the last published top; nil if no top of this size was published.
    private static func publishedTop(of board: BoardRow, _ tx: Transaction) throws -> WatchedTop? {
        let lines = try tx.db.row(
            """
            SELECT lines FROM \(tops, within: tx.tenant, bookkeeping)
            WHERE board_id = \(board.id) AND revision = \(board.publishedRevision)
            """
        ) { try $0.bytes(0) }
        return lines.flatMap { WatchedTop(reading: $0) }
    }

    /// Stores the published top of a leaderboard at its current revision.
    private static func store(_ top: WatchedTop, of board: BoardRow, _ tx: Transaction) throws {
        let lines = String(decoding: JSONWriter.bytes(top), as: UTF8.self)
        try tx.db.run(
            """
            INSERT INTO \(tops, within: tx.tenant, bookkeeping) (tenant, board_id, revision, lines)
            VALUES (\(tx.tenant), \(board.id), \(board.revision), \(lines))
            ON CONFLICT (tenant, board_id) DO UPDATE SET revision = excluded.revision, lines = excluded.lines
            """)
    }

    // MARK: Own ranks

    /// Returns the rank of a user, for all streams of that user.
    static func ownRank(
        _ entry: Leaderboard.Entry, on key: Board.Key, changes: Int, revision: Int64, epoch: String
    ) -> OwnState {
        let data = JSONWriter.object { writer in
            writer.member("challengeId", key.challengeId)
            writer.member("rank", entry.place.rank)
            writer.member("position", entry.place.position)
            writer.member("score", key.order.score(of: entry.standing.key))
            writer.member("changed", changes)
            writer.version(revision, in: epoch)
        }
        return OwnState(
            tenant: key.tenant, key: AudienceKey.make("user", entry.userId.text), name: "\(updateEvent)",
            collapse: CollapseKey.of("leaderboard-rank:\(key.challengeId)"), data: data)
    }

    /// Returns the ranks on recently moved leaderboards, with which the caller's stream begins. Own ranks are not rows
    /// of the log, so they are not replayed.
    static func ownRanks(_ boards: Leaderboards, _ tx: Transaction) throws -> [OwnState] {
        guard !tx.caller.isService else { return [] }
        return try recentlyMoved(tx).prefix(LeaderboardLimits.ownRanksMax).compactMap { board in
            let key = board.key(in: tx.tenant)
            let found = try boards.read(board, tx) { leaderboard in
                leaderboard.entry(of: tx.caller.userId).map {
                    ownRank($0, on: key, changes: 0, revision: board.revision, epoch: tx.epoch)
                }
            }
            // If thousands of users reconnect at once, counting their ranks in SQL would take minutes.
            if found == nil { boards.publishLater(key, revision: board.revision) }
            return found ?? nil
        }
    }

    /// Publishes the changes that came within a second after the last update.
    static let updateTick = Tick(
        name: "challenges.telling", everySeconds: 1,
        due: { "SELECT tenant FROM \(boardRows, unscoped: bookkeeping) WHERE \(unpublishedCondition(at: $0))" }
    ) { tx in
        let ids: [ID<Challenge>] = try tx.db.rows(
            """
            SELECT challenge_id FROM \(boardRows, within: tx.tenant, bookkeeping)
            WHERE \(unpublishedCondition(at: tx.now)) ORDER BY published_at LIMIT \(updatedAtOnceMax)
            """
        ) { try $0.id(0) }
        for id in ids {
            try tx.lock(.challenge(id))
            guard var board = try find(id, tx) else { continue }
            try publishIfDue(&board, tx)
            try update(board, tx)
        }
    }

    private static func unpublishedCondition(at now: Timestamp) -> SQL {
        let due = now.adding(seconds: -LeaderboardLimits.updatePauseSeconds)
        return
            "revision > published_revision AND is_removed = 0 AND NOT (published_at > \(due) AND published_at <= \(now))"
    }

    /// Leaderboards of one tick: some milliseconds of the writer. The longest waiting ones come first.
    private static let updatedAtOnceMax = 64

    // MARK: Removal

    /// Removes the scores of deleted challenges in small steps, and then their leaderboards.
    static let removalTick = Tick(
        name: "challenges.removal", everySeconds: 5,
        due: { _ in "SELECT tenant FROM \(boardRows, unscoped: bookkeeping) WHERE is_removed = 1" },
        isTidying: true
    ) { tx in
        let boardId = try tx.db.row(
            """
            SELECT board_id FROM \(boardRows, within: tx.tenant, bookkeeping)
            WHERE is_removed = 1 ORDER BY board_id LIMIT 1
            """
        ) { try $0.text(0) }
        guard let boardId else { return }
        let removed = try tx.db.run(
            """
            DELETE FROM \(scores, within: tx.tenant, bookkeeping) WHERE board_id = \(boardId)
                AND user_id IN (
                    SELECT user_id FROM \(scores, within: tx.tenant, bookkeeping)
                    WHERE board_id = \(boardId) LIMIT \(LeaderboardLimits.removedAtOnceMax))
            """)
        guard removed < LeaderboardLimits.removedAtOnceMax else { return }
        try tx.db.run(
            "DELETE FROM \(tops, within: tx.tenant, bookkeeping) WHERE board_id = \(boardId)")
        try tx.db.run(
            "DELETE FROM \(boardRows, within: tx.tenant, bookkeeping) WHERE board_id = \(boardId)")
    }
}
