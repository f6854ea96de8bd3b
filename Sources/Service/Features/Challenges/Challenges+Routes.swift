import Database
import Domain
import MicroHTTP
import Values

extension ChallengesFeature {
    static func challengeEndpoints(_ boards: Leaderboards?) -> [Endpoint] {
        [
            Endpoint(.get, "/v1/challenges", access: .bearer, query: ["limit", "cursor"], listChallenges),
            Endpoint(.get, "/v1/challenges/{id}", access: .bearer, show),
            Endpoint(.put, "/v1/challenges/{id}", access: .staffOrService, replace),
            Endpoint(.delete, "/v1/challenges/{id}", access: .staffOrService) { try remove($0, boards) },
        ]
    }

    /// The most that a page may have.
    private static let pageMax = 100

    private static func listChallenges(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: pageMax)
        return .read { tx in page.response(try list(after: page.after, limit: page.rowsMax, tx), by: \.id.text) }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        return .query(query(id, visibleTo: call.caller.scope)) { rows in
            guard let found = try rows.row(row) else { throw Failure.notFound("challenge") }
            return Response.json(200, found.challenge)
        }
    }

    /// `PUT /v1/challenges/{id}`: 201 for a new one, 200 for a change.
    private static func replace(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        let draft = try call.body(ChallengeDraft.init(reading:))
        return .write(locking: .challenge(id)) { tx in
            let known = try find(id, tx)
            let challenge = try draft.challenge(
                id, replacing: known?.challenge, hasScores: (known?.board.revision ?? 0) > 0, at: tx.now)
            // A board in memory knows which scores are the better ones: with another order it is another board.
            let isSameBoard = known.map { $0.challenge.order == challenge.order } ?? false
            let boardId = (isSameBoard ? known?.board.id : nil) ?? tx.makeID(Challenge.self).text
            if let known, !isSameBoard { try doom(known.board, tx) }
            if known == nil {
                guard try countChallenges(tx) < LeaderboardLimits.challengesMax else {
                    throw Failure(
                        .conflict, "challenge.too_many",
                        "There are \(LeaderboardLimits.challengesMax) challenges already; delete an old one.")
                }
            }
            if !isSameBoard { try insertBoard(boardId, of: id, tx) }
            try store(challenge, boardId: boardId, tx)
            return Response.json(known == nil ? 201 : 200, challenge)
        }
    }

    /// `DELETE /v1/challenges/{id}`, with all its scores.
    private static func remove(_ call: Call, _ boards: Leaderboards?) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        return .write(locking: .challenge(id)) { tx in
            let (challenge, board) = try require(id, tx)
            try remove(id, board, tx)
            notifyReplicas(of: board, challenge, tx)
            let tenant = tx.tenant
            tx.afterCommit { boards?.forget(board, tenant: tenant) }
            return .noContent
        }
    }
}
