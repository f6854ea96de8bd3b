import BellhopClient
import Domain
import Foundation
import Rows
import TestSupport
import Testing

@testable import Service

/// `leaderboard:update` on real streams (CUT L-1).
@Suite struct LeaderboardUpdatesTests {
    let service: TestService

    init() async throws { service = try await ChallengesTests.start() }

    /// Whoever's rank has moved is sent it, at once and then once a second; those who watch get the top.
    @Test func updates_reachThoseWhoMoved_andThoseWhoWatch() async throws {
        for (user, score) in [("ada", 30), ("bob", 20), ("cem", 10)] {
            try await service.score(user, score)
        }
        try await service.untilPublished()
        let watcher = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        let state = try await watcher.next("leaderboard:update").json
        #expect(state["top"].array?.compactMap { $0["userId"].string } == ["ada", "bob", "cem"])
        expect(state, has: ["changed": 0, "entries": 3, "version": 3])
        let ada = try await service.listen(as: .user("ada"))
        let bob = try await service.listen(as: .user("bob"))
        let cem = try await service.listen(as: .user("cem"))
        // A stream begins with the own rank.
        for (stream, rank) in [(ada, 1), (bob, 2), (cem, 3)] {
            #expect(try await stream.next("leaderboard:update").json["rank"].int == rank)
        }
        service.clock.advance(seconds: 2)
        try await service.score("cem", 15)
        let moved = try await bob.next("leaderboard:update").json
        expect(moved, has: ["rank": 3, "position": 3, "score": 20, "challengeId": "c1", "changed": 1, "version": 4])
        #expect(try await cem.next("leaderboard:update").json["rank"].int == 2)
        var published = try await watcher.next("leaderboard:update").json
        while published["version"].int != 4 { published = try await watcher.next("leaderboard:update").json }
        #expect(published["top"][1]["userId"].string == "cem")
        // Within the second nothing comes; after it, all at once.
        try await service.score("bob", 1)
        try await service.score("bob", 100)
        service.clock.advance(seconds: 1)
        let later = try await watcher.next("leaderboard:update").json
        #expect(later["changed"].int == 2)
        #expect(later["top"][0]["score"].int == 121)
        let best = try await bob.next("leaderboard:update").json
        expect(best, has: ["rank": 1, "changed": 2])
        #expect(try await cem.next("leaderboard:update").json["rank"].int == 3)
        // Her rank moved now, and had not moved before: this is the first that she is sent.
        #expect(try await ada.next("leaderboard:update").json["rank"].int == 2)
        #expect(ada.received.count { $0.name == "leaderboard:update" } == 2)
    }

    /// More people than one pass looks up: each who has moved is sent it once, and the next round waits for its second.
    @Test func roundOverMany_reachesEachOnce() async throws {
        for index in 0..<30 { try await service.score("u\(index)", 100 - index) }
        _ = try await service.board()
        try await service.untilPublished()
        service.app.rankUpdates.stop()
        let strangers = (0..<LeaderboardLimits.lookedUpAtOnceMax).map { "stranger-\($0)" }
        let users = (0..<15).map { "u\($0)" } + strangers + (15..<30).map { "u\($0)" } + strangers
        let published = Collected<OwnState>()
        let updates = RankUpdates(
            boards: service.app.boards, now: service.app.runner.clock.now, users: { _ in users },
            hasUsers: { _ in true }, deliver: { published.append(contentsOf: $0) })
        updates.start()
        service.clock.advance(seconds: 2)
        // From the 30th place to the 7th, with u5's score: those between move, the others do not.
        try await service.score("u29", 24)
        try await eventually("who has moved receives it") { published.all.count >= 24 }
        try await service.score("u0", 1)
        #expect(published.all.map(\.key).sorted() == (6..<30).map { "user:u\($0)" }.sorted())
        // The first one's rank stays, the own score does not.
        service.clock.advance(seconds: 1)
        try await eventually("the first one receives the own score") { published.all.count >= 25 }
        #expect(published.all.last?.key == "user:u0")
        updates.stop()
    }

    /// Own ranks are no rows of the log: a stream that resumes, also after a restart, begins with the present ones.
    @Test func resumingStream_beginsWithItsRanks() async throws {
        try await service.score("ada", 30)
        let first = try await service.listen(as: .user("ada"))
        #expect(try await first.next("leaderboard:update").json["rank"].int == 1)
        first.close()
        service.clock.advance(seconds: 2)
        try await service.score("bob", 40)
        let resumed = try await service.listen(as: .user("ada"), lastEventID: first.lastEventID)
        #expect(try await resumed.next("leaderboard:update").json["rank"].int == 2)
        resumed.close()
        try await service.restart()
        let after = try await service.listen(as: .user("ada"), lastEventID: first.lastEventID)
        let state = try await after.next("leaderboard:update").json
        expect(state, has: ["rank": 2, "version": 2])
        // A challenge that is gone has no ranks.
        #expect(try await service.client(as: .service()).delete("/v1/challenges/c1").status == 204)
        let last = try await service.listen(as: .user("ada"))
        let event: JSON = ["id": "e1", "type": "visit.created", "userId": "ada"]
        #expect(try await service.client(as: .service()).post("/v1/events", event).status == 201)
        try await last.next("badges:update")
        #expect(!last.received.contains { $0.name == "leaderboard:update" })
    }

    /// The topic of another tenant's challenge, or of none, has no state; it comes when the challenge does.
    @Test func watchers_receiveChallengesThatComeToBe() async throws {
        let stream = try await service.listen(as: .user("u1"), topics: ["leaderboard:c9", "leaderboard:c1"])
        #expect(try await stream.next("leaderboard:update").json["challengeId"].string == "c1")
        #expect(try await service.client(as: .service()).put("/v1/challenges/c9", ChallengesTests.draft).status == 201)
        try await service.score("u2", 1, challenge: "c9")
        #expect(try await stream.next("leaderboard:update").json["challengeId"].string == "c9")
    }
}
