import BellhopClient
import Domain
import Foundation
import Testing

@testable import Service

/// `leaderboard:update` on real streams (CUT L-1).
@Suite struct LeaderboardUpdatesTests {
    /// Whoever's rank has moved is told, at once and then once a second; those who watch get the top.
    @Test func updates_reachThoseWhoMoved_andThoseWhoWatch() async throws {
        let service = try await ChallengesTests.start()
        for (user, score) in [("ada", 30), ("bob", 20), ("cem", 10)] {
            try await ChallengesTests.score(service, user, score)
        }
        try await service.untilTold()
        let watcher = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        let state = try await watcher.next("leaderboard:update").json
        #expect(state["top"].array?.compactMap { $0["userId"].string } == ["ada", "bob", "cem"])
        #expect(state["changed"].int == 0 && state["entries"].int == 3 && state["version"].int == 3)
        let (ada, bob, cem) = (
            try await service.listen(as: .user("ada")), try await service.listen(as: .user("bob")),
            try await service.listen(as: .user("cem"))
        )
        // A stream begins with the own rank.
        for (stream, rank) in [(ada, 1), (bob, 2), (cem, 3)] {
            #expect(try await stream.next("leaderboard:update").json["rank"].int == rank)
        }
        service.clock.advance(seconds: 2)
        try await ChallengesTests.score(service, "cem", 15)
        let moved = try await bob.next("leaderboard:update").json
        #expect(moved["rank"].int == 3 && moved["position"].int == 3 && moved["score"].int == 20)
        #expect(moved["challengeId"].string == "c1" && moved["changed"].int == 1 && moved["version"].int == 4)
        #expect(try await cem.next("leaderboard:update").json["rank"].int == 2)
        var told = try await watcher.next("leaderboard:update").json
        while told["version"].int != 4 { told = try await watcher.next("leaderboard:update").json }
        #expect(told["top"][1]["userId"].string == "cem")
        // Within the second nothing comes; after it, all at once.
        try await ChallengesTests.score(service, "bob", 1)
        try await ChallengesTests.score(service, "bob", 100)
        service.clock.advance(seconds: 1)
        let later = try await watcher.next("leaderboard:update").json
        #expect(later["changed"].int == 2 && later["top"][0]["score"].int == 121)
        let best = try await bob.next("leaderboard:update").json
        #expect(best["rank"].int == 1 && best["changed"].int == 2)
        #expect(try await cem.next("leaderboard:update").json["rank"].int == 3)
        // Her rank moved now, and had not moved before: this is the first that she is told.
        #expect(try await ada.next("leaderboard:update").json["rank"].int == 2)
        #expect(ada.received.count { $0.name == "leaderboard:update" } == 2)
    }

    /// More people than one pass looks up: each who has moved is told once, and the next round waits for its second.
    @Test func roundOverMany_tellsEachOnce() async throws {
        let service = try await ChallengesTests.start()
        for index in 0..<30 { try await ChallengesTests.score(service, "u\(index)", 100 - index) }
        _ = try await ChallengesTests.board(service)
        try await service.untilTold()
        let (told, boards) = (Told(), service.app.boards)
        boards.stop()
        let strangers = (0..<LeaderboardLimits.lookedUpAtOnceMax).map { "stranger-\($0)" }
        let users = (0..<15).map { "u\($0)" } + strangers + (15..<30).map { "u\($0)" } + strangers
        boards.start(telling: .init(users: { _ in users }, hasUsers: { _ in true }, tell: { told.add($0) }))
        service.clock.advance(seconds: 2)
        // From the 30th place to the 7th, with u5's score: those between move, the others do not.
        try await ChallengesTests.score(service, "u29", 24)
        while told.keys.count < 24 { try await Task.sleep(for: .milliseconds(10)) }
        try await ChallengesTests.score(service, "u0", 1)
        #expect(Set(told.keys) == Set((6..<30).map { "user:u\($0)" }) && told.keys.count == 24)
        // The first one's rank stays, the own score does not.
        service.clock.advance(seconds: 1)
        while told.keys.count < 25 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(told.keys.last == "user:u0")
        boards.stop()
    }

    /// `@unchecked Sendable`: `states` is only touched while `lock` is held.
    private final class Told: @unchecked Sendable {
        /// Guards `states`.
        private let lock = NSLock()
        private var states: [OwnState] = []

        func add(_ more: [OwnState]) { lock.withLock { states += more } }
        var keys: [String] { lock.withLock { states.map(\.key) } }
    }

    /// Own ranks are no rows of the log: a stream that resumes, also after a restart, begins with the present ones.
    @Test func resumingStream_beginsWithItsRanks() async throws {
        let service = try await ChallengesTests.start()
        try await ChallengesTests.score(service, "ada", 30)
        let first = try await service.listen(as: .user("ada"))
        #expect(try await first.next("leaderboard:update").json["rank"].int == 1)
        first.close()
        service.clock.advance(seconds: 2)
        try await ChallengesTests.score(service, "bob", 40)
        let resumed = try await service.listen(as: .user("ada"), lastEventID: first.lastEventID)
        #expect(try await resumed.next("leaderboard:update").json["rank"].int == 2)
        resumed.close()
        try await service.restart()
        let after = try await service.listen(as: .user("ada"), lastEventID: first.lastEventID)
        let state = try await after.next("leaderboard:update").json
        #expect(state["rank"].int == 2 && state["version"].int == 2)
        // A challenge that is gone has no ranks.
        #expect(try await service.client(as: .service()).delete("/v1/challenges/c1").status == 204)
        let last = try await service.listen(as: .user("ada"))
        let event: JSON = ["id": "e1", "type": "visit.created", "userId": "ada"]
        #expect(try await service.client(as: .service()).post("/v1/events", event).status == 201)
        try await last.next("badges:update")
        #expect(!last.received.contains { $0.name == "leaderboard:update" })
    }

    /// The topic of another tenant's challenge, or of none, has no state; it comes when the challenge does.
    @Test func watchers_hearOfChallengesThatComeToBe() async throws {
        let service = try await ChallengesTests.start()
        let stream = try await service.listen(as: .user("u1"), topics: ["leaderboard:c9", "leaderboard:c1"])
        #expect(try await stream.next("leaderboard:update").json["challengeId"].string == "c1")
        #expect(try await service.client(as: .service()).put("/v1/challenges/c9", ChallengesTests.wish).status == 201)
        try await ChallengesTests.score(service, "u2", 1, challenge: "c9")
        #expect(try await stream.next("leaderboard:update").json["challengeId"].string == "c9")
    }
}
