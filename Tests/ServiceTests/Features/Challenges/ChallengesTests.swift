import BellhopClient
import Database
import Domain
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// Challenges and leaderboards over real HTTP and SSE (R-CUT-L-1, R-CUT-L-2; R-11).
@Suite(.timed) struct ChallengesTests {
    let service: TestService

    init() async throws { service = try await Self.start() }

    static let draft = Bellhop.ReplaceChallengeBody(
        name: "Most cuts", startsAt: moment("2026-01-01T00:00:00Z"), endsAt: moment("2026-02-01T00:00:00Z"), mode: .add)
    static let best: Bellhop.ReplaceChallengeBody = {
        var best = draft
        (best.mode, best.order) = (.best, .ascending)
        return best
    }()

    /// Starts a service in the middle of a challenge.
    static func start(
        _ draft: Bellhop.ReplaceChallengeBody = draft, settings: [String: String] = [:]
    ) async throws -> TestService {
        let service = try TestService.start(settings, at: "2026-01-10T08:00:00Z")
        #expect(try await service.client(as: .service()).replaceChallenge(id: "c1", draft).status == 201)
        return service
    }

    static func lines(_ board: Bellhop.Leaderboard) -> [String] {
        board.items.map { "\($0.position) \($0.rank) \($0.userId) \($0.score)" }
    }

    // MARK: Challenges

    @Test func rule_isChanged_onlyBeforeThereAreScores() async throws {
        let backend = service.client(as: .service())
        let shown = try await service.client("u1").getChallenge(id: "c1").value
        #expect(shown.mode == .add && shown.order == .descending && shown.shopId == nil)
        var change = Self.draft
        change.name = "More cuts"
        #expect(try await backend.replaceChallenge(id: "c1", change).status == 200)
        try await service.board()
        (change.mode, change.order) = (.best, .ascending)
        #expect(try await backend.replaceChallenge(id: "c1", change).status == 200)
        try await service.score("u1", 5)
        change.mode = .add
        let refusal = try await refusal(of: await backend.replaceChallenge(id: "c1", change))
        #expect(refusal == "409 challenge.has_scores")
    }

    @Test func challenges_areListedInPages() async throws {
        for id in ["c2", "c3"] {
            #expect(try await service.client(as: .service()).replaceChallenge(id: id, Self.draft).status == 201)
        }
        let page = try await service.client("u1").listChallenges(limit: 2).value
        #expect(page.items.map(\.id) == ["c1", "c2"])
        let next = try #require(page.next)
        let rest = try await service.client("u1").listChallenges(limit: 2, cursor: next).value
        #expect(rest.items.map(\.id) == ["c3"])
    }

    @Test func deletedChallenge_takesItsScoresAlong() async throws {
        let backend = service.client(as: .service())
        try await service.score("u1", 5)
        #expect(try await backend.deleteChallenge(id: "c1").status == 204)
        #expect(try await status(of: await backend.getChallenge(id: "c1")) == 404)
        #expect(try await status(of: await backend.getLeaderboard(id: "c1")) == 404)
        // A new challenge with the same id starts with an empty board.
        #expect(try await service.client(as: .service()).replaceChallenge(id: "c1", Self.draft).status == 201)
        #expect(try await service.board(as: "u1").entries == 0)
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
        var draft = Self.draft
        #expect(try await status(of: await own.replaceChallenge(id: "c2", draft)) == 403)
        draft.shopId = "s1"
        #expect(try await status(of: await others.replaceChallenge(id: "c2", draft)) == 403)
        #expect(try await own.replaceChallenge(id: "c2", draft).status == 201)
        #expect(try await status(of: await others.replaceChallenge(id: "c2", draft)) == 403)
        draft.shopId = "s2"
        #expect(try await status(of: await own.replaceChallenge(id: "c2", draft)) == 403)
        #expect(try await status(of: await others.deleteChallenge(id: "c2")) == 403)
        #expect(try await own.deleteChallenge(id: "c2").status == 204)
        #expect(try await status(of: await service.client("u1").replaceChallenge(id: "c3", Self.draft)) == 403)
        #expect(try await service.client(as: .admin).replaceChallenge(id: "c3", Self.draft).status == 201)
        // Another tenant cannot see them.
        let elsewhere = try await problem(
            of: await service.client(as: .user("u1", tenant: "t2")).getChallenge(id: "c1"))
        #expect(elsewhere.status == 404)
    }

    // MARK: Scores

    /// R-CUT-L-1: the answer contains the new rank. Equal scores share a rank; the score that was reached first is
    /// listed first.
    @Test func scores_areAdded_andRanked() async throws {
        try await service.score("ada", 30, name: "Ada")
        try await service.score("bob", 40)
        try await service.score("cem", 30)
        let dan = try await service.score("dan", 10).value
        #expect(dan.rank == 4 && dan.position == 4 && dan.changed && dan.entries == 4 && dan.version == 4)
        #expect(dan.displayName == nil)
        let risen = try await service.score("dan", 20).value
        #expect(risen.score == 30 && risen.rank == 2 && risen.position == 4)
        let board = try await service.board(as: "cem")
        #expect(Self.lines(board) == ["1 1 bob 40", "2 2 ada 30", "3 2 cem 30", "4 2 dan 30"])
        #expect(board.me?.position == 3)
        #expect(board.items[1].displayName == "Ada")
        // R-CUT-L-2: the rank of a user outside the board is null, not -1.
        #expect(try await service.board().me == nil)
        try service.expectExactCounts()
    }

    @Test func bestScoreStays_andTheLowestCanBeTheBest() async throws {
        let service = try await Self.start(Self.best)
        #expect(try await service.score("ada", 61).value.changed)
        try await service.score("bob", 59)
        let worse = try await service.score("bob", 70).value
        #expect(!worse.changed && worse.score == 59 && worse.rank == 1)
        #expect(try await service.score("ada", -5).value.rank == 1)
        #expect(Self.lines(try await service.board()) == ["1 1 ada -5", "2 2 bob 59"])
    }

    @Test func scoresOutsideThePeriod_orTooLarge_areRefused() async throws {
        var draft = Self.draft
        (draft.startsAt, draft.endsAt) = (moment("2026-01-10T08:00:10Z"), moment("2026-01-10T08:00:20Z"))
        let service = try await Self.start(draft)
        #expect(try await problem(of: await service.score("u1", 1)).code == .challengeNotStarted)
        service.clock.advance(seconds: 10)
        try await service.score("u1", 1)
        let overflow = try await problem(of: await service.score("u1", .max))
        #expect(overflow.refusal == "409 score.overflow")
        #expect(overflow.pointers == ["/score"])
        service.clock.advance(seconds: 10)
        #expect(try await problem(of: await service.score("u1", 1)).code == .challengeEnded)
        #expect(Self.lines(try await service.board()) == ["1 1 u1 1"])
    }

    @Test func scoreWithoutAKey_isRefused_andARepeatedOneCountsOnce() async throws {
        let service = try await Self.start(settings: ["selfDeclared": "true"])
        let refused = try await service.call("POST", "/v1/challenges/c1/scores", as: .user("u1"), ["score": 5])
        #expect(refused.refusal == "400 idempotency.missing_key")
        for _ in 0..<3 {
            let added = try await service.client("u1").addScore(id: "c1", .init(score: 5), idempotencyKey: "k1").value
            #expect(added.score == 5 && added.version == 1)
        }
        #expect(try await service.board(as: "u1").me?.score == 5)
    }

    /// Users cannot award themselves points. Backends and administrators submit scores, and any user
    /// may leave a challenge.
    @Test func usersPostNoScores_unlessASettingAllowsIt() async throws {
        for identity in [TestService.Identity.user("u1"), .staff(of: "s1")] {
            let client = service.client(as: identity)
            #expect(try await refusal(of: await client.score(1_000_000)) == "403 score.not_judge")
            #expect(try await refusal(of: await client.score(5, of: "u2")) == "403 score.not_judge")
        }
        #expect(try await service.board(as: "u1").entries == 0)
        #expect(try await service.client(as: .service()).score(5, of: "u1").status == 200)
        #expect(try await service.client(as: .admin).score(5, of: "u1").status == 200)
        #expect(try await service.board(as: "u1").me?.score == 10)
        #expect(try await service.client("u1").withdrawScore(id: "c1", userId: "u1").status == 204)
    }

    @Test func usersPostTheirOwnScores_whereAllowed() async throws {
        let service = try await Self.start(settings: ["selfDeclared": "true"])
        let (u1, backend) = (service.client("u1"), service.client(as: .service()))
        #expect(try await u1.score(5).status == 200)
        #expect(try await u1.score(5, of: "u1").status == 200)
        #expect(try await status(of: await u1.score(5, of: "u2")) == 403)
        #expect(try await service.client(as: .admin).score(5, of: "u2").status == 200)
        #expect(try await status(of: await u1.score(5, of: "u2")) == 403)
        #expect(try await problem(of: await backend.score(5)).mistakes == "422 /userId")
        let wrong = try await service.call(
            "POST", "/v1/challenges/c1/scores", as: .user("u1"), ["score": 1.5, "displayName": "", "points": 1],
            headers: ["Idempotency-Key": "k"])
        #expect(wrong.pointers == ["/score", "/displayName", "/points"])
        #expect(try await status(of: await u1.withdrawScore(id: "c1", userId: "u2")) == 403)
        #expect(try await u1.withdrawScore(id: "c1", userId: "u1").status == 204)
        #expect(try await status(of: await u1.withdrawScore(id: "c1", userId: "u1")) == 404)
        #expect(Self.lines(try await service.board(as: "u1")) == ["1 1 u2 5"])
        // A user starts from zero after returning.
        #expect(try await u1.score(7).value.rank == 1)
        #expect(try await backend.withdrawScore(id: "c1", userId: "u2").status == 204)
        #expect(try await service.board(as: "u1").entries == 1)
        try service.expectExactCounts()
    }

    // MARK: Leaderboards

    @Test func leaderboard_showsTheTop_orThoseAround_andSaysWhenNothingChanged() async throws {
        for index in 1...12 { try await service.score("u\(index)", 100 - index) }
        let around = try await service.board(as: "u6", around: .me, limit: 2)
        #expect(Self.lines(around).map { $0.split(separator: " ")[2] } == ["u4", "u5", "u6", "u7", "u8"])
        let edge = try await service.board(as: "u12", around: .me, limit: 1)
        #expect(Self.lines(edge) == ["11 11 u11 89", "12 12 u12 88"])
        #expect(try await service.board(around: .me).items.isEmpty)
        #expect(Self.lines(try await service.board(limit: 1)) == ["1 1 u1 99"])
        let client = service.client("u1")
        for query in ["?limit=0", "?limit=501", "?around=u2", "?around=me&limit=101", "?offset=1"] {
            let answer = try await service.call("GET", "/v1/challenges/c1/leaderboard\(query)", as: .user("u1"))
            #expect(answer.status == 422)
        }
        let tag = try #require(try await client.getLeaderboard(id: "c1").etag)
        #expect(try await client.getLeaderboard(id: "c1", ifNoneMatch: tag) == nil)
        // The ETag includes the caller, because another user receives another answer.
        #expect(try await service.client("u2").getLeaderboard(id: "c1", ifNoneMatch: tag) != nil)
        try await service.score("u1", 0, name: "First")
        let now = try #require(try await client.getLeaderboard(id: "c1", ifNoneMatch: tag))
        #expect(now.value.items[0].displayName == "First")
    }

    /// Many concurrent requests that share one commit: each rank is the one directly after its own change.
    @Test func ranksOfOneGroup_areThoseOfTheirOrder() async throws {
        // Loads the board into memory, so that places account for uncommitted changes.
        try await service.board()
        let answers = try await concurrently(0..<120) { index in
            try await service.score("u\(index % 40)", .random(in: 1...50)).value
        }
        var plain: [String: (score: Int64, reached: Int)] = [:]
        for answer in answers.sorted(by: { $0.version < $1.version }) {
            let own = (score: answer.score, reached: answer.version)
            plain[answer.userId] = own
            let better = plain.values.count { $0.score > own.score }
            let before = plain.values.count { ($0.score, -$0.reached) > (own.score, -own.reached) }
            #expect(answer.rank == better + 1, "version \(answer.version)")
            #expect(answer.position == before + 1, "version \(answer.version)")
        }
        #expect(Set(answers.map(\.version)) == Set(1...120))
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
        #expect(try await service.client(as: .service()).replaceChallenge(id: "c2", Self.best).status == 201)
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
                    let backend = service.client(as: .service())
                    let status = try await status(of: await backend.withdrawScore(id: challenge, userId: user))
                    #expect(status == 204 || status == 404)
                case 1...4:
                    let board = try await service.board(as: user, around: .me, challenge: challenge)
                    #expect(board.items.contains { $0.userId == user } == (board.me != nil))
                default:
                    let points = Int.random(in: -3...9, using: &random)
                    #expect(try await service.score(user, points, challenge: challenge).status == 200)
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
                    let path = "/v1/challenges/c1/leaderboard\(query)"
                    var board = try await service.call("GET", path, as: .user(user)).json.object ?? [:]
                    // Each database has its own epoch.
                    #expect(board.removeValue(forKey: "epoch") != nil)
                    views.append("\(JSON.object(board))")
                }
            }
            return views
        }
        func fill(_ service: TestService) async throws -> [Int] {
            var ranks: [Int] = []
            for index in 0..<60 {
                let answer = try await service.score("u\(index % 30)", index % 7).value
                ranks += [answer.rank, answer.position]
                if index % 10 == 0 { try await service.board() }
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
                SET revision = \(entries), published_revision = \(entries), entries = \(entries)
                """)
        }
        // Reads and submits a score while the board is not in memory; SQL counts the place.
        let first = try await service.board(as: "u77", around: .me)
        let score = try await service.score("new", 500).value
        #expect(first.entries == entries)
        #expect(score.entries == entries + 1)
        while service.app.boards.ready.isEmpty { try await service.board() }
        try service.expectExactBoards()
        let again = try await service.score("new", 0).value
        #expect(again.rank == score.rank)
        #expect(again.position == score.position)
        let later = try await service.board(as: "u77", around: .me)
        #expect(later.me?.score == first.me?.score)
        try service.expectExactCounts()
        #expect(try await service.board(as: "new").me?.rank == score.rank)
    }
}

extension TestService {
    @discardableResult
    func score(
        _ user: String, _ score: Int, name: String? = nil, challenge: String = "c1"
    ) async throws -> Bellhop.Answer<Bellhop.AddedScore> {
        try await client(as: .service()).score(Int64(score), of: user, name: name, challenge: challenge)
    }

    @discardableResult
    func board(
        as user: String = "nobody", around: Bellhop.GetLeaderboardAround? = nil, limit: Int? = nil,
        challenge: String = "c1"
    ) async throws -> Bellhop.Leaderboard {
        try await client(user).getLeaderboard(id: challenge, limit: limit, around: around).value
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

extension BellhopClient {
    @discardableResult
    func score(
        _ score: Int64, of user: String? = nil, name: String? = nil, challenge: String = "c1"
    ) async throws -> Bellhop.Answer<Bellhop.AddedScore> {
        try await addScore(
            id: challenge, .init(userId: user, score: score, displayName: name), idempotencyKey: UUID().uuidString)
    }
}
