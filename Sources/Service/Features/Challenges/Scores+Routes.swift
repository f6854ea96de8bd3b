import Database
import Domain
import MicroHTTP
import Realtime
import Rows
import Values

extension ChallengesFeature {
    static func scoreEndpoints(_ boards: Leaderboards?) -> [Endpoint] {
        [
            Endpoint(.post, "/v1/challenges/{id}/scores", access: .bearer, Endpoint.serving(boards, addScore)),
            Endpoint(
                .delete, "/v1/challenges/{id}/scores/{userId}", access: .bearer, Endpoint.serving(boards, withdraw)),
            Endpoint(
                .get, "/v1/challenges/{id}/leaderboard", access: .bearer, query: ["limit", "around"],
                Endpoint.serving(boards, showLeaderboard)),
        ]
    }

    // MARK: Writing

    /// `POST /v1/challenges/{id}/scores`: the caller's own, or whose a backend names.
    ///
    /// The key is required: points that a client sends again after a lost answer would count twice.
    @Sendable private static func addScore(_ call: Call, _ boards: Leaderboards) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        guard call.request.header("Idempotency-Key") != nil else {
            throw Failure(
                .malformed, "idempotency.missing_key", "Send an Idempotency-Key, so that no score counts twice.",
                fields: [Failure.Field("Idempotency-Key", "is missing")])
        }
        let draft = try call.body { fields in
            let draft = ScoreDraft(reading: &fields)
            if call.caller.isService, draft.userId == nil {
                fields.reject("userId", "is missing: a backend says whose score it is")
            }
            return draft
        }
        let user = draft.userId ?? call.caller.userId
        return .write(locking: .challenge(id)) { tx in
            let (challenge, board) = try require(id, tx)
            try challenge.requireRunning(at: tx.now)
            let known = try findScore(of: user, board, tx)
            let score = try challenge.score(draft.score, after: known?.score)
            var row = known ?? ScoreRow(userId: user, score: nil, reached: 0, revision: 0, displayName: nil)
            row.score = score
            row.displayName = draft.displayName ?? row.displayName
            let change = try store(row, replacing: known, challenge, board, boards, tx)
            let standing = Standing(key: challenge.order.key(of: score), reached: change.row.reached)
            let place =
                try boards.place(of: standing, user, challenge.order, behind: board, with: change.board, tx)
                ?? place(of: standing, board, tx)
            let item = LeaderboardItem(
                userId: user, displayName: change.row.displayName, score: score, place: place)
            return Response.json { writer in
                writer.member("challengeId", id)
                item.write(membersTo: &writer)
                writer.member("changed", known?.score != score)
                writer.member("entries", (change.board ?? board).entries)
                writer.member("version", (change.board ?? board).revision)
            }
        }
    }

    /// `DELETE …/scores/{userId}`: the own score, or anybody's for admins and backends.
    @Sendable private static func withdraw(_ call: Call, _ boards: Leaderboards) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        let user = try call.pathID(1, User.self)
        return .write(locking: .challenge(id)) { tx in
            let (challenge, board) = try require(id, tx)
            guard let known = try findScore(of: user, board, tx), known.score != nil else {
                throw Failure.notFound("score")
            }
            var row = known
            (row.score, row.displayName) = (nil, nil)
            _ = try store(row, replacing: known, challenge, board, boards, tx)
            return .noContent
        }
    }

    /// Stores what a user has, with the number of the change, and what follows from it.
    ///
    /// What is as it was is stored too, for the table's policy to say whether the caller may, and changes nothing.
    ///
    /// - Returns: the row as stored, and the board's row behind the change; nil if nothing has changed.
    private static func store(
        _ wanted: ScoreRow, replacing known: ScoreRow?, _ challenge: Challenge, _ before: BoardRow,
        _ boards: Leaderboards, _ tx: Transaction
    ) throws -> (row: ScoreRow, board: BoardRow?) {
        guard wanted != known else {
            try store(wanted, challenge.order, before, tx)
            return (wanted, nil)
        }
        var (row, board) = (wanted, before)
        board.revision += 1
        board.mark = .random(in: .min ... .max)
        board.entries += (row.score == nil ? 0 : 1) - (known?.score == nil ? 0 : 1)
        board.hasNames = board.hasNames || row.displayName != nil
        guard board.entries <= LeaderboardLimits.entriesMax else {
            throw Failure(
                .conflict, "challenge.full", "A leaderboard has at most \(LeaderboardLimits.entriesMax) entries.")
        }
        row.revision = board.revision
        if row.score != known?.score { row.reached = board.revision }
        try store(row, challenge.order, board, tx)
        try publishIfDue(challenge, &board, tx)
        try update(board, tx)
        let (stored, changed, order, tenant) = (row, board, challenge.order, tx.tenant)
        let standing = row.score.map { Standing(key: order.key(of: $0), reached: stored.reached) }
        tx.afterCommit { boards.committed(standing, of: stored.userId, changed, order, tenant: tenant) }
        return (stored, changed)
    }

    // MARK: Reading

    /// `GET …/leaderboard`: the top, or those around the caller; the caller's own place always.
    @Sendable private static func showLeaderboard(_ call: Call, _ boards: Leaderboards) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        let isAround = try call.query.word("around", Around.self) != nil
        let limit =
            try call.query.int("limit", in: 1...(isAround ? LeaderboardLimits.aroundMax : LeaderboardLimits.topMax))
            ?? (isAround ? LeaderboardLimits.aroundDefault : LeaderboardLimits.topDefault)
        return .read { tx in
            let (challenge, board) = try require(id, tx)
            // One board's count of changes says it all; what is the caller's own depends on the caller.
            let tag = LeaderboardTag.make(board, tx.caller)
            if call.request.hasSeen(tag) { return .notModified(etag: tag) }
            let me = tx.caller.userId
            let inMemory = try boards.read(board, challenge.order, tx) { leaderboard in
                View(
                    entries: isAround
                        ? leaderboard.entries(around: me, limit) : leaderboard.entries(in: 0..<limit),
                    own: leaderboard.entry(of: me), count: leaderboard.count)
            }
            let view = try inMemory ?? readView(isAround, limit, challenge.order, board, tx)
            return Response.json(200, try view.json(challenge, board, tx), etag: tag)
        }
    }

    private enum Around: String, CaseIterable {
        case me
    }

    /// The same in SQL, for a board that is not in memory.
    private static func readView(
        _ isAround: Bool, _ limit: Int, _ order: Challenge.Order, _ board: BoardRow, _ tx: Transaction
    ) throws -> View {
        var own: Leaderboard.Entry?
        if let row = try findScore(of: tx.caller.userId, board, tx), let score = row.score {
            let standing = Standing(key: order.key(of: score), reached: row.reached)
            own = Leaderboard.Entry(
                userId: row.userId, standing: standing, place: try place(of: standing, board, tx))
        }
        let entries =
            try isAround ? own.map { try around($0, limit, board, tx) } ?? [] : top(limit, board, tx)
        return View(entries: entries, own: own, count: board.entries)
    }

    /// What a caller is shown of a board.
    private struct View {
        let entries: [Leaderboard.Entry]
        let own: Leaderboard.Entry?
        let count: Int

        func json(_ challenge: Challenge, _ board: BoardRow, _ tx: Transaction) throws -> [UInt8] {
            let shown = entries + [own].compactMap { $0 }
            let names = try displayNames(of: shown.lazy.map(\.userId), board, tx)
            func item(_ entry: Leaderboard.Entry) -> LeaderboardItem {
                LeaderboardItem(entry, challenge.order, names)
            }
            return JSONWriter.object { writer in
                writer.member("challengeId", challenge.id)
                writer.member("entries", count)
                writer.member("version", board.revision)
                writer.member("items", entries.map(item))
                writer.member("me", own.map(item))
            }
        }
    }
}

/// One line of a leaderboard, as it is shown.
struct LeaderboardItem: JSONWritable {
    let userId: ID<User>
    let displayName: String?
    let score: Int64
    let place: Place

    init(userId: ID<User>, displayName: String?, score: Int64, place: Place) {
        self.userId = userId
        self.displayName = displayName
        self.score = score
        self.place = place
    }

    init(_ entry: Leaderboard.Entry, _ order: Challenge.Order, _ names: [ID<User>: String]) {
        self.init(
            userId: entry.userId, displayName: names[entry.userId],
            score: order.score(of: entry.standing.key), place: entry.place)
    }

    func write(to writer: inout JSONWriter) { writer.object { write(membersTo: &$0) } }

    func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("displayName", displayName)
        writer.member("score", score)
        writer.member("rank", place.rank)
        writer.member("position", place.position)
    }
}

/// The version of what a caller is shown of a board.
enum LeaderboardTag {
    static func make(_ board: BoardRow, _ caller: Caller) -> String {
        // The same on every replica. A challenge that was made anew counts from the beginning, on another board.
        let whose = FNV1a.hash(Array(board.id.utf8) + [0] + Array(caller.userId.text.utf8))
        return "\(board.revision)-\(String(whose, radix: 36))"
    }
}
