import BellhopClient
import Database
import Domain
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Challenges and leaderboards over real HTTP and SSE (R-CUT-L-1, R-CUT-L-2; R-11).
@Suite(.timed) struct ChallengesTests {
    let service: TestService

    init() async throws { service = try await Self.start() }

    static let draft: JSON = [
        "name": "Most cuts", "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-02-01T00:00:00Z", "mode": "add",
    ]

    /// Starts a service in the middle of a challenge.
    static func start(
        _ change: [String: JSON] = [:], settings: [String: String] = [:]
    ) async throws -> TestService {
        let service = try TestService.start(settings, at: "2026-01-10T08:00:00Z")
        let draft = JSON.object((Self.draft.object ?? [:]).merging(change) { $1 })
        let made = try await service.client(as: .service()).put("/v1/challenges/c1", draft)
        #expect(made.status == 201, "\(made.problem)")
        return service
    }

    static func lines(_ board: JSON) -> [String] {
        (board["items"].array ?? []).map { item in
            """
            \(item["position"].int ?? 0) \(item["rank"].int ?? 0) \(item["userId"].string ?? "") \
            \(item["score"].int ?? 0)
            """
        }
    }

    // MARK: Challenges

    @Test func rule_isChanged_onlyBeforeThereAreScores() async throws {
        let backend = service.client(as: .service())
        let shown = try await service.client(as: .user("u1")).get("/v1/challenges/c1").json
        expect(shown, has: ["mode": "add", "order": "descending", "shopId": nil])
        var change = Self.draft.object ?? [:]
        change["name"] = "More cuts"
        #expect(try await backend.put("/v1/challenges/c1", .object(change)).status == 200)
        _ = try await service.board()
        (change["mode"], change["order"]) = ("best", "ascending")
        #expect(try await backend.put("/v1/challenges/c1", .object(change)).status == 200)
        try await service.score("u1", 5)
        change["mode"] = "add"
        let refused = try await backend.put("/v1/challenges/c1", .object(change))
        #expect(refused.refusal == "409 challenge.has_scores")
    }

    @Test func challenges_areListedInPages() async throws {
        let backend = service.client(as: .service())
        for id in ["c2", "c3"] { #expect(try await backend.put("/v1/challenges/\(id)", Self.draft).status == 201) }
        let page = try await service.client(as: .user("u1")).get("/v1/challenges?limit=2").json
        #expect(page["items"].array?.compactMap { $0["id"].string } == ["c1", "c2"])
        let next = try #require(page["next"].string)
        let rest = try await service.client(as: .user("u1")).get("/v1/challenges?limit=2&cursor=\(next)").json
        #expect(rest["items"].array?.compactMap { $0["id"].string } == ["c3"])
    }

    @Test func deletedChallenge_takesItsScoresAlong() async throws {
        let backend = service.client(as: .service())
        try await service.score("u1", 5)
        #expect(try await backend.delete("/v1/challenges/c1").status == 204)
        for path in ["/v1/challenges/c1", "/v1/challenges/c1/leaderboard"] {
            #expect(try await backend.get(path).status == 404)
        }
        // A new challenge with the same id starts with an empty board.
        #expect(try await backend.put("/v1/challenges/c1", Self.draft).status == 201)
        #expect(try await service.board(as: "u1")["entries"].int == 0)
        // The rows of the deleted challenge are removed gradually.
        func leftovers() throws -> Int {
            try service.app.store.read { db in
                let why = ChallengesFeature.bookkeeping
                return try db.integer("SELECT count(*) FROM \(ChallengesFeature.scores, unscoped: why)") ?? -1
            }
        }
        try await eventually("no rows are left", step: { service.clock.advance(seconds: 5) }) { try leftovers() == 0 }
        try service.expectExactCounts()
    }

    /// The staff of a shop manages only that shop's challenges.
    @Test func challengeOfAShop_isManagedByItsStaff() async throws {
        let (own, others) = (service.client(as: .staff(of: "s1")), service.client(as: .staff(of: "s2")))
        var draft = Self.draft.object ?? [:]
        #expect(try await own.put("/v1/challenges/c2", .object(draft)).status == 403)
        draft["shopId"] = "s1"
        #expect(try await others.put("/v1/challenges/c2", .object(draft)).status == 403)
        #expect(try await own.put("/v1/challenges/c2", .object(draft)).status == 201)
        #expect(try await others.put("/v1/challenges/c2", .object(draft)).status == 403)
        draft["shopId"] = "s2"
        #expect(try await own.put("/v1/challenges/c2", .object(draft)).status == 403)
        #expect(try await others.delete("/v1/challenges/c2").status == 403)
        #expect(try await own.delete("/v1/challenges/c2").status == 204)
        #expect(try await service.client(as: .user("u1")).put("/v1/challenges/c3", Self.draft).status == 403)
        #expect(try await service.client(as: .admin).put("/v1/challenges/c3", Self.draft).status == 201)
        // Another tenant cannot see them.
        let elsewhere = try await service.client(as: .user("u1", tenant: "t2")).get("/v1/challenges/c1")
        #expect(elsewhere.status == 404)
    }

    // MARK: Scores

    /// R-CUT-L-1: the answer contains the new rank. Equal scores share a rank; the score that was reached first is
    /// listed first.
    @Test func scores_areAdded_andRanked() async throws {
        try await service.score("ada", 30, name: "Ada")
        try await service.score("bob", 40)
        try await service.score("cem", 30)
        let answer = try await service.score("dan", 10).json
        expect(
            answer, has: ["rank": 4, "position": 4, "changed": true, "entries": 4, "version": 4, "displayName": nil])
        let risen = try await service.score("dan", 20).json
        expect(risen, has: ["score": 30, "rank": 2, "position": 4])
        let board = try await service.board(as: "cem")
        #expect(Self.lines(board) == ["1 1 bob 40", "2 2 ada 30", "3 2 cem 30", "4 2 dan 30"])
        #expect(board["me"]["position"].int == 3)
        #expect(board["items"][1]["displayName"].string == "Ada")
        // R-CUT-L-2: the rank of a user outside the board is null, not -1.
        #expect(try await service.board()["me"].isNull)
        try service.expectExactCounts()
    }

    @Test func bestScoreStays_andTheLowestCanBeTheBest() async throws {
        let service = try await Self.start(["mode": "best", "order": "ascending"])
        #expect(try await service.score("ada", 61).json["changed"].bool == true)
        try await service.score("bob", 59)
        let worse = try await service.score("bob", 70).json
        expect(worse, has: ["changed": false, "score": 59, "rank": 1])
        #expect(try await service.score("ada", -5).json["rank"].int == 1)
        #expect(Self.lines(try await service.board()) == ["1 1 ada -5", "2 2 bob 59"])
    }

    @Test func scoresOutsideThePeriod_orTooLarge_areRefused() async throws {
        let service = try await Self.start(["startsAt": "2026-01-10T08:00:10Z", "endsAt": "2026-01-10T08:00:20Z"])
        func code() async throws -> String? { try await service.score("u1", 1).json["code"].string }
        #expect(try await code() == "challenge.not_started")
        service.clock.advance(seconds: 10)
        #expect(try await code() == nil)
        let overflow = try await service.score("u1", .max)
        #expect(overflow.refusal == "409 score.overflow")
        #expect(overflow.json["errors"][0]["pointer"].string == "/score")
        service.clock.advance(seconds: 10)
        #expect(try await code() == "challenge.ended")
        #expect(Self.lines(try await service.board()) == ["1 1 u1 1"])
    }

    @Test func scoreWithoutAKey_isRefused_andARepeatedOneCountsOnce() async throws {
        let service = try await Self.start(settings: ["selfDeclared": "true"])
        let client = service.client(as: .user("u1"))
        let refused = try await client.post("/v1/challenges/c1/scores", ["score": 5])
        #expect(refused.refusal == "400 idempotency.missing_key")
        for _ in 0..<3 {
            let answer = try await client.post(
                "/v1/challenges/c1/scores", ["score": 5], headers: ["Idempotency-Key": "k1"])
            expect(answer.json, has: ["score": 5, "version": 1])
        }
        #expect(try await service.board(as: "u1")["me"]["score"].int == 5)
    }

    /// Users cannot award themselves points (R-29). Backends and administrators submit scores, and any user
    /// may leave a challenge.
    @Test func usersPostNoScores_unlessASettingAllowsIt() async throws {
        func post(_ identity: TestService.Identity, _ body: JSON) async throws -> ServiceAnswer {
            try await service.client(as: identity).post(
                "/v1/challenges/c1/scores", body, headers: ["Idempotency-Key": UUID().uuidString])
        }
        for identity in [TestService.Identity.user("u1"), .staff(of: "s1")] {
            #expect(try await post(identity, ["score": 1_000_000]).refusal == "403 score.not_judge")
            #expect(try await post(identity, ["score": 5, "userId": "u2"]).refusal == "403 score.not_judge")
        }
        #expect(try await service.board(as: "u1")["entries"].int == 0)
        #expect(try await post(.service(), ["score": 5, "userId": "u1"]).status == 200)
        #expect(try await post(.admin, ["score": 5, "userId": "u1"]).status == 200)
        #expect(try await service.board(as: "u1")["me"]["score"].int == 10)
        let path = "/v1/challenges/c1/scores/u1"
        #expect(try await service.client(as: .user("u1")).delete(path).status == 204)
    }

    @Test func usersPostTheirOwnScores_whereAllowed() async throws {
        let service = try await Self.start(settings: ["selfDeclared": "true"])
        func post(_ identity: TestService.Identity, _ body: JSON) async throws -> ServiceAnswer {
            try await service.client(as: identity).post(
                "/v1/challenges/c1/scores", body, headers: ["Idempotency-Key": UUID().uuidString])
        }
        #expect(try await post(.user("u1"), ["score": 5]).status == 200)
        #expect(try await post(.user("u1"), ["score": 5, "userId": "u1"]).status == 200)
        #expect(try await post(.user("u1"), ["score": 5, "userId": "u2"]).status == 403)
        #expect(try await post(.admin, ["score": 5, "userId": "u2"]).status == 200)
        #expect(try await post(.user("u1"), ["score": 5, "userId": "u2"]).status == 403)
        let missing = try await post(.service(), ["score": 5])
        #expect(missing.mistakes == "422 /userId")
        let wrong = try await post(.user("u1"), ["score": 1.5, "displayName": "", "points": 1])
        let places = wrong.json["errors"].array?.compactMap { $0["pointer"].string }
        #expect(places == ["/score", "/displayName", "/points"])
        let path = "/v1/challenges/c1/scores/"
        #expect(try await service.client(as: .user("u1")).delete(path + "u2").status == 403)
        #expect(try await service.client(as: .user("u1")).delete(path + "u1").status == 204)
        #expect(try await service.client(as: .user("u1")).delete(path + "u1").status == 404)
        #expect(Self.lines(try await service.board(as: "u1")) == ["1 1 u2 5"])
        // A user starts from zero after returning.
        #expect(try await post(.user("u1"), ["score": 7]).json["rank"].int == 1)
        #expect(try await service.client(as: .service()).delete(path + "u2").status == 204)
        #expect(try await service.board(as: "u1")["entries"].int == 1)
        try service.expectExactCounts()
    }

    // MARK: Leaderboards

    @Test func leaderboard_showsTheTop_orThoseAround_andSaysWhenNothingChanged() async throws {
        for index in 1...12 { try await service.score("u\(index)", 100 - index) }
        let around = try await service.board(as: "u6", "?around=me&limit=2")
        #expect(Self.lines(around).map { $0.split(separator: " ")[2] } == ["u4", "u5", "u6", "u7", "u8"])
        let edge = try await service.board(as: "u12", "?around=me&limit=1")
        #expect(Self.lines(edge) == ["11 11 u11 89", "12 12 u12 88"])
        #expect(try await service.board("?around=me")["items"].array?.isEmpty == true)
        #expect(Self.lines(try await service.board("?limit=1")) == ["1 1 u1 99"])
        let client = service.client(as: .user("u1"))
        for query in ["?limit=0", "?limit=501", "?around=u2", "?around=me&limit=101", "?offset=1"] {
            #expect(try await client.get("/v1/challenges/c1/leaderboard\(query)").status == 422)
        }
        let known = try await client.get("/v1/challenges/c1/leaderboard")
        let tag = try #require(known.headers["etag"])
        func poll(_ user: String) async throws -> Int {
            try await service.client(as: .user(user)).get(
                "/v1/challenges/c1/leaderboard", headers: ["If-None-Match": tag]
            ).status
        }
        #expect(try await poll("u1") == 304)
        // The ETag includes the caller, because another user receives another answer.
        #expect(try await poll("u2") == 200)
        try await service.score("u1", 0, name: "First")
        #expect(try await poll("u1") == 200)
        #expect(try await client.get("/v1/challenges/c1/leaderboard").json["items"][0]["displayName"].string == "First")
    }

    /// Many concurrent requests that share one commit: each rank is the one directly after its own change.
    @Test func ranksOfOneGroup_areThoseOfTheirOrder() async throws {
        // Loads the board into memory, so that places account for uncommitted changes.
        _ = try await service.board()
        let answers = try await concurrently(0..<120) { index in
            try await service.score("u\(index % 40)", Int.random(in: 1...50)).json
        }
        var plain: [String: (score: Int, reached: Int)] = [:]
        for answer in answers.sorted(by: { ($0["version"].int ?? 0) < ($1["version"].int ?? 0) }) {
            let (user, version) = (answer["userId"].string ?? "", answer["version"].int ?? 0)
            let own = (score: answer["score"].int ?? 0, reached: version)
            plain[user] = own
            let better = plain.values.count { $0.score > own.score }
            let before = plain.values.count { ($0.score, -$0.reached) > (own.score, -own.reached) }
            #expect(answer["rank"].int == better + 1, "version \(version)")
            #expect(answer["position"].int == before + 1, "version \(version)")
        }
        #expect(Set(answers.compactMap { $0["version"].int }) == Set(1...120))
        try service.expectExactCounts()
        try service.expectExactBoards()
    }

    /// A rolled-back change leaves no trace, neither in the next place nor after another change reuses its revision.
    @Test func rolledBackChanges_areForgotten() {
        var board = BoardState()
        let start = Timestamp(microseconds: 0)
        let challenge = Challenge(
            id: ID("c1"), name: "c1", shopId: nil, startsAt: start, endsAt: start, mode: .add, order: .descending,
            createdAt: start, updatedAt: start)
        func row(_ revision: Int64, mark: Int64) -> BoardRow {
            BoardRow(
                challenge: challenge, id: "b", revision: revision, mark: mark, entries: 0, hasNames: false,
                publishedRevision: 0, publishedAt: start)
        }
        func position(_ key: Int64, _ user: String, _ before: BoardRow, _ after: BoardRow) -> Int? {
            let standing = Standing(key: key, reached: after.revision)
            let answer = board.place(of: standing, ID(user), behind: before, with: after)
            if case .place(let place) = answer { return place.position }
            return nil
        }
        func commit(_ key: Int64, _ user: String, revision: Int64) -> Bool {
            board.commit(Standing(key: key, reached: revision), of: ID(user), revision: revision)
        }
        board.install(Leaderboard(), revision: 0)
        let empty = row(0, mark: 0)
        #expect(position(1, "u1", empty, row(1, mark: 10)) == 1)
        // The change of u1 was rolled back, so u2 is alone.
        #expect(position(5, "u2", empty, row(1, mark: 20)) == 1)
        #expect(position(7, "u3", row(1, mark: 20), row(2, mark: 21)) == 2)
        // Another replica has committed other changes as revisions 1 and 2, so the pending changes here are invalid.
        #expect(position(9, "u4", row(2, mark: 99), row(3, mark: 100)) == nil)
        board.setPending(
            [.init(userId: ID("u8"), standing: Standing(key: 3, reached: 1))], behind: 0, through: row(2, mark: 99))
        #expect(position(9, "u4", row(2, mark: 99), row(3, mark: 100)) == 2)
        // Changes are applied in order. A revision that arrives too early must be read from the database.
        #expect(!commit(9, "u4", revision: 3))
        #expect(commit(3, "u8", revision: 1))
        board.follow([.init(userId: ID("u4"), standing: Standing(key: 9, reached: 3))], through: 3)
        #expect(commit(9, "u4", revision: 3))
        #expect(board.leaderboard(atLeast: 3)?.count == 2)
        #expect(board.leaderboard(atLeast: 4) == nil)
    }

    /// Thousands of concurrent operations, then a recount: the counters, the order in SQL, and every board in memory
    /// must agree.
    @Test func randomScores_leaveWhatARecountFinds() async throws {
        let seed = randomSeed()
        let best: JSON = .object((Self.draft.object ?? [:]).merging(["mode": "best", "order": "ascending"]) { $1 })
        #expect(try await service.client(as: .service()).put("/v1/challenges/c2", best).status == 201)
        try await Self.play(on: [service], seed: seed, steps: effort(quick: 400, full: 1500, long: 8000))
        try service.expectExactCounts()
        try service.expectExactBoards()
    }

    /// Adds, withdraws and reads scores at random, with eight workers, on each of the services in turn.
    static func play(on services: [TestService], seed: UInt64, steps: Int) async throws {
        try await concurrently(0..<8) { worker in
            var random = SeededGenerator(seed: seed &+ UInt64(worker))
            for step in 0..<(steps / 8) {
                let service = services[(worker + step) % services.count]
                let challenge = Bool.random(using: &random) ? "c1" : "c2"
                let user = "u\(Int.random(in: 0..<60, using: &random))"
                switch Int.random(in: 0..<20, using: &random) {
                case 0:
                    let path = "/v1/challenges/\(challenge)/scores/\(user)"
                    let status = try await service.client(as: .service()).delete(path).status
                    #expect(status == 204 || status == 404)
                case 1...4:
                    let board = try await service.board(as: user, "?around=me", challenge: challenge)
                    let own = board["me"]
                    let isThere = board["items"].array?.contains { $0["userId"].string == user } == true
                    #expect(isThere != own.isNull)
                default:
                    let points = Int.random(in: -3...9, using: &random)
                    let answer = try await service.score(user, points, challenge: challenge)
                    #expect(answer.status == 200, "\(answer.problem)")
                }
            }
        }
    }

    /// A board that is not in memory is answered from SQL. After a restart, the board in memory gives the same
    /// answers.
    @Test func boardOutsideMemory_returnsTheSameRanks() async throws {
        func views(_ service: TestService) async throws -> [String] {
            var views: [String] = []
            for query in ["", "?limit=4", "?around=me&limit=3", "?around=me&limit=100"] {
                for user in ["u0", "u17", "u29", "nobody"] {
                    var board = try await service.board(as: user, query).object ?? [:]
                    // Each database has its own epoch.
                    #expect(board.removeValue(forKey: "epoch") != nil)
                    views.append("\(JSON.object(board))")
                }
            }
            return views
        }
        func fill(_ service: TestService) async throws -> [Int?] {
            var ranks: [Int?] = []
            for index in 0..<60 {
                let answer = try await service.score("u\(index % 30)", index % 7).json
                ranks += [answer["rank"].int, answer["position"].int]
                if index % 10 == 0 { _ = try await service.board() }
            }
            return ranks
        }
        let (cached, plain) = (try await Self.start(), try await Self.start(settings: ["leaderboardMegabytes": "0"]))
        #expect(try await fill(cached) == fill(plain))
        let inMemory = try await views(cached)
        #expect(try await views(plain) == inMemory)
        try cached.expectExactBoards()
        try await cached.restart()
        #expect(try await views(cached) == inMemory)
        try cached.expectExactBoards()
        #expect(cached.app.boards.ready.count == 1)
        #expect(plain.app.boards.ready.isEmpty)
    }

    /// Above the size that a request may load itself, SQL answers until the board is in memory. Both give the same
    /// answers.
    @Test func largeBoard_isLoadedInTheBackground() async throws {
        let entries = LeaderboardLimits.loadedInlineMax + 500
        try await service.app.store.write { db in
            let why = ChallengesFeature.bookkeeping
            let board = try db.row("SELECT tenant, board_id FROM \(ChallengesFeature.boardRows, unscoped: why)") {
                (tenant: try $0.text(0), id: try $0.text(1))
            }
            guard let board else { return }
            for number in 1...entries {
                let (user, score) = ("u\(number)", number * 7919 % 1000)
                try db.run(
                    """
                    INSERT INTO \(ChallengesFeature.scores, unscoped: why)
                        (tenant, board_id, user_id, score, standing, reached, revision, updated_at)
                    VALUES (\(board.tenant), \(board.id), \(user), \(score), \(~score), \(number), \(number), 0)
                    """)
            }
            try db.run(
                """
                UPDATE \(ChallengesFeature.boardRows, unscoped: why)
                SET revision = \(entries), told_revision = \(entries), entries = \(entries)
                """)
        }
        // Reads and submits a score while the board is not in memory; SQL counts the place.
        let first = try await service.board(as: "u77", "?around=me")
        let score = try await service.score("new", 500).json
        #expect(first["entries"].int == entries)
        #expect(score["entries"].int == entries + 1)
        while service.app.boards.ready.isEmpty { _ = try await service.board() }
        try service.expectExactBoards()
        let again = try await service.score("new", 0).json
        #expect(again["rank"].int == score["rank"].int)
        #expect(again["position"].int == score["position"].int)
        let later = try await service.board(as: "u77", "?around=me")
        #expect(later["me"]["score"].int == first["me"]["score"].int)
        try service.expectExactCounts()
        #expect(try await service.board(as: "new")["me"]["rank"].int == score["rank"].int)
    }
}

extension TestService {
    @discardableResult
    func score(
        _ user: String, _ score: Int, name: String? = nil, challenge: String = "c1"
    ) async throws -> ServiceAnswer {
        var body: [String: JSON] = ["userId": .string(user), "score": .integer(Int64(score))]
        body["displayName"] = name.map(JSON.string)
        return try await client(as: .service()).post(
            "/v1/challenges/\(challenge)/scores", .object(body), headers: ["Idempotency-Key": UUID().uuidString])
    }

    func board(
        as user: String = "nobody", _ query: String = "", challenge: String = "c1"
    ) async throws -> JSON {
        let answer = try await client(as: .user(user)).get("/v1/challenges/\(challenge)/leaderboard\(query)")
        #expect(answer.status == 200, "\(answer.problem)")
        return answer.json
    }

    /// Checks that the boards in memory equal the table.
    func expectExactBoards() throws {
        for board in app.boards.ready {
            try app.boards.catchUp(board)
            guard let leaderboard = board.withLock({ $0.leaderboard(atLeast: 0) }) else { continue }
            let differences = try app.store.read { db in
                try ChallengesFeature.differences(of: leaderboard, board.key.tenant, board.key.id, db)
            }
            #expect(differences.isEmpty, "\(differences)")
        }
    }

    /// Waits until all changes are published.
    func untilPublished() async throws {
        try await eventually("all changes are published", step: { clock.advance(seconds: 1) }) {
            !app.boards.hasWork
        }
    }
}
