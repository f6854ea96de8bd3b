import Database
import Domain
import MicroHTTP
import Values

extension ChallengesFeature {
    static func scoreEndpoints(_ boards: Leaderboards?) -> [Endpoint] {
        [
            Endpoint(
                .post, "/v1/challenges/{id}/scores", access: .bearer, adds: true, countsCalls: true,
                Endpoint.serving(boards, addScore)),
            Endpoint(
                .delete, "/v1/challenges/{id}/scores/{userId}", access: .bearer, Endpoint.serving(boards, withdraw)),
            Endpoint(
                .get, "/v1/challenges/{id}/leaderboard", access: .bearer, query: ["limit", "around"],
                Endpoint.serving(boards, showLeaderboard)),
        ]
    }

    /// `POST /v1/challenges/{id}/scores`: a backend or an administrator names the user; users may add their own scores
    /// if a setting allows it. Without an idempotency key, points that a client sends again after a lost answer would
    /// count twice.
    @Sendable private static func addScore(_ call: Call, _ boards: Leaderboards) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        guard call.request.header("Idempotency-Key") != nil else {
            throw Failure(
                .malformed, "idempotency.missing_key", "An Idempotency-Key is required, so that no score counts twice.",
                fields: [Failure.Field("Idempotency-Key", "is missing")])
        }
        let draft = try call.body { fields in
            let draft = ScoreDraft(reading: &fields)
            if call.caller.isService, draft.userId == nil {
                fields.reject("userId", "is missing: a backend must name the user of the score")
            }
            return draft
        }
        guard call.settings.selfDeclared || isJudge(call.caller) else {
            throw Failure.forbidden(
                "Only a backend or an administrator of the tenant may post scores.", code: "score.not_judge")
        }
        let user = draft.userId ?? call.caller.userId
        return .write(locking: .challenge(id)) { tx in
            let before = try require(id, tx)
            try before.challenge.requireRunning(at: tx.now)
            let known = try findScore(of: user, before, tx)
            let score = try before.challenge.score(draft.score, after: known?.score)
            var row = known ?? ScoreRow(userId: user)
            row.score = score
            row.displayName = draft.displayName ?? row.displayName
            let change = try store(&row, replacing: known, on: before, boards, tx)
            let standing = Standing(key: before.challenge.order.key(of: score), reached: row.reached)
            let place =
                try boards.place(of: standing, user, behind: before, with: change, tx)
                ?? place(of: standing, before, tx)
            let item = LeaderboardItem(userId: user, displayName: row.displayName, score: score, place: place)
            let board = change ?? before
            return Response.json { writer in
                writer.member("challengeId", id)
                item.write(membersTo: &writer)
                writer.member("changed", known?.score != score)
                writer.member("entries", board.entries)
                writer.version(board.revision, in: tx.epoch)
            }
        }
    }

    /// Whether the table's policy lets a caller write the scores of all users.
    private static func isJudge(_ caller: Caller) -> Bool {
        scores.write.audience { _ in nil }.contains(where: caller.scope.keys.contains)
    }

    /// `DELETE …/scores/{userId}`: users withdraw their own score, admins and backends any.
    @Sendable private static func withdraw(_ call: Call, _ boards: Leaderboards) throws -> Answer {
        let (id, user) = try (call.pathID(0, Challenge.self), call.pathID(1, User.self))
        return .write(locking: .challenge(id)) { tx in
            let board = try require(id, tx)
            let known = try findScore(of: user, board, tx)
            guard known?.score != nil, var row = known else { throw Failure.notFound("score") }
            (row.score, row.displayName) = (nil, nil)
            _ = try store(&row, replacing: known, on: board, boards, tx)
            return .noContent
        }
    }

    /// Stores a user's score with the number of the change, and performs the consequences. An unchanged row is stored
    /// too, because the table's policy decides whether the caller may write it.
    ///
    /// - Returns: The leaderboard's row after the change; nil if nothing has changed.
    private static func store(
        _ row: inout ScoreRow, replacing known: ScoreRow?, on before: BoardRow, _ boards: Leaderboards,
        _ tx: Transaction
    ) throws -> BoardRow? {
        guard row != known else {
            try store(row, before, tx)
            return nil
        }
        var board = before
        board.revision += 1
        board.mark = .random(in: .min ... .max)
        board.entries += (row.score == nil ? 0 : 1) - (known?.score == nil ? 0 : 1)
        board.hasNames = board.hasNames || row.displayName != nil
        guard board.entries <= LeaderboardLimits.entriesMax else {
            throw Failure(
                .conflict, "challenge.full", "A leaderboard can have at most \(LeaderboardLimits.entriesMax) entries.")
        }
        row.revision = board.revision
        if row.score != known?.score { row.reached = board.revision }
        try store(row, board, tx)
        try publishIfDue(&board, tx)
        try update(board, tx)
        let (standing, user) = (row.standing(board.challenge.order), row.userId)
        let (key, revision) = (board.key(in: tx.tenant), board.revision)
        tx.afterCommit { boards.committed(standing, of: user, key, revision: revision) }
        return board
    }

    /// `GET …/leaderboard`: the top, or the entries around the caller; always with the caller's own place.
    @Sendable private static func showLeaderboard(_ call: Call, _ boards: Leaderboards) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        let isAround = try call.query.word("around", Around.self) != nil
        let limit =
            try call.query.int("limit", in: 1...(isAround ? LeaderboardLimits.aroundMax : LeaderboardLimits.topMax))
            ?? (isAround ? LeaderboardLimits.aroundDefault : LeaderboardLimits.topDefault)
        return .read { tx in
            let board = try require(id, tx)
            // A challenge that was created again counts from the beginning, on another leaderboard.
            let tag = tx.tag(board.revision, variant: board.id)
            if call.request.seen(tag) != nil { return .notModified(tag) }
            let me = tx.caller.userId
            let inMemory = try boards.read(board, tx) { leaderboard in
                View(
                    entries: isAround ? leaderboard.entries(around: me, limit) : leaderboard.entries(in: 0..<limit),
                    own: leaderboard.entry(of: me), count: leaderboard.count)
            }
            let view = try inMemory ?? readView(isAround: isAround, limit: limit, board, tx)
            return Response.json(200, try view.json(board, tx), tag: tag)
        }
    }

    private enum Around: String, CaseIterable { case me }

    /// Reads the same in SQL, for a leaderboard that is not in memory.
    private static func readView(isAround: Bool, limit: Int, _ board: BoardRow, _ tx: Transaction) throws -> View {
        let me = tx.caller.userId
        let own = try findScore(of: me, board, tx)?.standing(board.challenge.order).map {
            Leaderboard.Entry(userId: me, standing: $0, place: try place(of: $0, board, tx))
        }
        let entries = try isAround ? own.map { try around($0, count: limit, board, tx) } ?? [] : top(limit, board, tx)
        return View(entries: entries, own: own, count: board.entries)
    }

    /// The parts of a leaderboard that a caller is shown.
    private struct View {
        let entries: [Leaderboard.Entry]
        let own: Leaderboard.Entry?
        let count: Int

        func json(_ board: BoardRow, _ tx: Transaction) throws -> [UInt8] {
            let shown = entries + [own].compactMap { $0 }
            let names = try displayNames(of: shown.lazy.map(\.userId), board, tx)
            func item(_ entry: Leaderboard.Entry) -> LeaderboardItem {
                LeaderboardItem(entry, board.challenge.order, names)
            }
            return JSONWriter.object { writer in
                writer.member("challengeId", board.challenge.id)
                writer.member("entries", count)
                writer.version(board.revision, in: tx.epoch)
                writer.member("items", entries.map(item))
                writer.member("me", own.map(item))
            }
        }
    }
}

/// One displayed line of a leaderboard.
struct LeaderboardItem: JSONWritable {
    let userId: ID<User>
    let displayName: String?
    let score: Int64
    let place: Place

    func write(to writer: inout JSONWriter) { writer.object { write(membersTo: &$0) } }

    func write(membersTo writer: inout JSONWriter) {
        writer.member("userId", userId)
        writer.member("displayName", displayName)
        writer.member("score", score)
        writer.member("rank", place.rank)
        writer.member("position", place.position)
    }
}

extension LeaderboardItem {
    init(_ entry: Leaderboard.Entry, _ order: Challenge.Order, _ names: [ID<User>: String]) {
        self.init(
            userId: entry.userId, displayName: names[entry.userId],
            score: order.score(of: entry.standing.key), place: entry.place)
    }
}
