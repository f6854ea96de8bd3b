import Database
import Domain
import Realtime
import Values
import Visibility

/// What is published of a board to those who watch it, and to the replicas: at most once a second.
///
/// The first change after a pause is published in its own transaction; those within a second of it together, by a tick.
/// Those who watch get the first lines once, and what has become of them since.
extension ChallengesFeature {
    static let updateEvent: StaticString = "leaderboard:update"
    static let movedMessage: StaticString = "bellhop:leaderboard"

    /// Watched by whoever names it; the state comes first: as it was published last, so that the next change follows it.
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

    /// Publishes what has changed since the last time, if that was a second ago, and notes so in the row.
    static func publishIfDue(_ board: inout BoardRow, _ tx: Transaction) throws {
        let due = board.publishedAt.adding(seconds: LeaderboardLimits.updatePauseSeconds)
        // A moment in the future is of a clock that was set back since: it must not stop the board until then.
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

    // MARK: The top

    /// The whole of it: at the beginning, and where nobody knows what was published.
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

    /// What has become of it since it was published last: a board of a hundred where one has moved is one line or some.
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

    /// As it was published last; nil where it never was as a top of so many.
    private static func publishedTop(of board: BoardRow, _ tx: Transaction) throws -> WatchedTop? {
        let lines = try tx.db.row(
            """
            SELECT lines FROM \(tops, unscoped: bookkeeping)
            WHERE tenant = \(tx.tenant) AND board_id = \(board.id) AND revision = \(board.publishedRevision)
            """
        ) { try $0.bytes(0) }
        return lines.flatMap { WatchedTop(reading: $0) }
    }

    /// Stores what is published of a board as of its present change.
    private static func store(_ top: WatchedTop, of board: BoardRow, _ tx: Transaction) throws {
        let lines = String(decoding: JSONWriter.bytes(top), as: UTF8.self)
        try tx.db.run(
            """
            INSERT INTO \(tops, unscoped: bookkeeping) (tenant, board_id, revision, lines)
            VALUES (\(tx.tenant), \(board.id), \(board.revision), \(lines))
            ON CONFLICT (tenant, board_id) DO UPDATE SET revision = excluded.revision, lines = excluded.lines
            """)
    }

    // MARK: Own ranks

    /// Where a user stands, for all streams of that user.
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

    /// What the caller's stream begins with: the ranks on boards that have moved lately, since own ranks are no rows of
    /// the log and are not replayed.
    static func ownRanks(_ boards: Leaderboards, _ tx: Transaction) throws -> [OwnState] {
        guard !tx.caller.isService else { return [] }
        return try latelyMoved(tx).prefix(LeaderboardLimits.ownRanksMax).compactMap { board in
            let key = board.key(in: tx.tenant)
            let found = try boards.read(board, tx) { leaderboard in
                leaderboard.entry(of: tx.caller.userId).map {
                    ownRank($0, on: key, changes: 0, revision: board.revision, epoch: tx.epoch)
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
        return "revision > told_revision AND is_doomed = 0 AND NOT (told_at > \(due) AND told_at <= \(now))"
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
            "DELETE FROM \(tops, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND board_id = \(boardId)")
        try tx.db.run(
            "DELETE FROM \(boardRows, unscoped: bookkeeping) WHERE tenant = \(tx.tenant) AND board_id = \(boardId)")
    }
}
