import Database
import Domain
import MicroHTTP
import Values

extension ChallengesFeature {
    static func challengeEndpoints(_ boards: Leaderboards?) -> [Endpoint] {
        [
            Endpoint(.get, "/v1/challenges", access: .bearer, query: ["limit", "cursor"], listChallenges),
            Endpoint(.get, "/v1/challenges/{id}", access: .bearer, show),
            Endpoint(.put, "/v1/challenges/{id}", access: .staffOrService, adds: true, replace),
            Endpoint(.delete, "/v1/challenges/{id}", access: .staffOrService) { try remove($0, boards) },
        ]
    }

    /// The maximum size of a page.
    private static let pageMax = 100

    private static func listChallenges(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: pageMax)
        let listing = query(
            "> \(page.after ?? "") ORDER BY challenge.challenge_id LIMIT \(page.rowsMax)", visibleTo: call.caller.scope)
        return .query(listing) { rows in page.response(try rows.rows { try board($0).challenge }, by: \.id.text) }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        return .query(query("= \(id)", visibleTo: call.caller.scope)) { rows in
            Response.json(200, try rows.row(board).required("challenge").challenge)
        }
    }

    /// `PUT /v1/challenges/{id}`: 201 for a new challenge, 200 for a change.
    private static func replace(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        let draft = try call.body(ChallengeDraft.init(reading:))
        return .write(locking: .challenge(id)) { tx in
            let known = try find(id, tx)
            let challenge = try draft.challenge(
                id, replacing: known?.challenge, hasScores: (known?.revision ?? 0) > 0, at: tx.now)
            if known == nil { try requireRoom(tx) }
            // A leaderboard in memory has a fixed sort order. A different order requires a new leaderboard.
            if let known, known.challenge.order == challenge.order {
                try store(challenge, boardId: known.id, tx)
            } else {
                if let known { try scheduleRemoval(known, tx) }
                try store(challenge, boardId: insertBoard(of: id, tx), tx)
            }
            return Response.json(known == nil ? 201 : 200, challenge)
        }
    }

    private static func requireRoom(_ tx: Transaction) throws {
        let count = try tx.db.integer("SELECT count(*) FROM \(challenges, visibleTo: tx.scope)") ?? 0
        guard count < LeaderboardLimits.challengesMax else {
            throw Failure(
                .conflict, "challenge.too_many",
                "There are already \(LeaderboardLimits.challengesMax) challenges. Delete one first.")
        }
    }

    /// `DELETE /v1/challenges/{id}`: deletes the challenge with all its scores.
    private static func remove(_ call: Call, _ boards: Leaderboards?) throws -> Answer {
        let id = try call.pathID(0, Challenge.self)
        return .write(locking: .challenge(id)) { tx in
            let board = try require(id, tx)
            try remove(board, tx)
            notifyReplicas(of: board, tx)
            let key = board.key(in: tx.tenant)
            tx.afterCommit { boards?.forget(key) }
            return .noContent
        }
    }
}
