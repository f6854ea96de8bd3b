import BellhopClient
import Domain
import Foundation
import TestSupport
import Testing

@testable import Service

/// `leaderboard:update` on real streams (R-CUT-L-1).
@Suite(.timed) struct LeaderboardUpdatesTests {
    let service: TestService

    init() async throws { service = try await ChallengesTests.start() }

    /// A user whose rank changes receives an update at once, and then at most once a second. Watchers receive the
    /// top.
    @Test func updates_reachMovedUsers_andWatchers() async throws {
        for (user, score) in [("ada", 30), ("bob", 20), ("cem", 10)] {
            try await service.score(user, score)
        }
        try await service.untilPublished()
        let watcher = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        var top = LeaderboardTopState(challengeId: "c1")
        let state = try await watcher.next("leaderboard:update")
        expect(state.json, has: ["changed": 0, "entries": 3])
        _ = top.merge(state)
        // Unpublished changes arrive within the second.
        service.clock.advance(seconds: 1)
        while top.version != 3 { _ = top.merge(try await watcher.next("leaderboard:update")) }
        #expect(top.lines.map(\.userId) == ["ada", "bob", "cem"])
        let ada = try await service.listen(as: .user("ada"))
        let bob = try await service.listen(as: .user("bob"))
        let cem = try await service.listen(as: .user("cem"))
        // A stream starts with the user's own rank.
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
        expect(published, has: ["since": 3, "left": []])
        #expect(published["moved"].array?.compactMap { $0["userId"].string } == ["cem", "bob"])
        // Bob was overtaken. Watchers already know his score, so it is omitted.
        expect(published["moved"][0], has: ["score": 25, "position": 2])
        expect(published["moved"][1], has: ["score": nil, "position": 3])
        // No update arrives within the second; after it, a single one covers all changes.
        try await service.score("bob", 1)
        try await service.score("bob", 100)
        service.clock.advance(seconds: 1)
        let later = try await watcher.next("leaderboard:update").json
        #expect(later["changed"].int == 2)
        expect(later["moved"][0], has: ["userId": "bob", "score": 121, "position": 1])
        let best = try await bob.next("leaderboard:update").json
        expect(best, has: ["rank": 1, "changed": 2])
        #expect(try await cem.next("leaderboard:update").json["rank"].int == 3)
        // Ada's rank changes for the first time, so this is her first update after the initial one.
        #expect(try await ada.next("leaderboard:update").json["rank"].int == 2)
        #expect(ada.received.count { $0.name == "leaderboard:update" } == 2)
    }

    /// R-CUT-L-1 and R-30: watchers see the first 100 lines live, as changes. The size of each event is bounded.
    @Test func watchers_seeTheFirstHundredLive_asChanges() async throws {
        for number in 0..<130 { try await service.score("u\(number)", 1000 - number) }
        let watcher = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        var top = LeaderboardTopState(challengeId: "c1")
        service.clock.advance(seconds: 2)
        while top.version != 130 { _ = top.merge(try await watcher.next("leaderboard:update")) }
        #expect(top.lines.count == 100)
        let other = try await service.listen(as: .user("fay"), topics: ["leaderboard:c1"])
        let state = try await other.next("leaderboard:update")
        #expect(state.json["top"].array?.count == 100)
        // A user from below the top takes the first place: all others move down, and one leaves the top.
        service.clock.advance(seconds: 2)
        try await service.score("u120", 600, name: "Newcomer")
        let entered = try await watcher.next("leaderboard:update")
        _ = top.merge(entered)
        #expect(top.lines.first?.displayName == "Newcomer")
        #expect(entered.json["left"].array?.compactMap(\.string) == ["u99"])
        #expect(entered.json["moved"].array?.count == 100)
        #expect(entered.data.utf8.count < 8 * 1024)
        service.clock.advance(seconds: 2)
        try await service.score("u5", 1)
        let small = try await watcher.next("leaderboard:update")
        _ = top.merge(small)
        #expect(small.data.utf8.count < 500)
        // A change outside the top only updates the number of entries.
        service.clock.advance(seconds: 2)
        try await service.score("last", 1)
        let below = try await watcher.next("leaderboard:update")
        _ = top.merge(below)
        #expect(top.entries == 131)
        expect(below.json, has: ["moved": [], "left": []])
        // A repeated event changes nothing, and a missing event is detected.
        let isNew = top.merge(below)
        #expect(!isNew)
        var slow = LeaderboardTopState(challengeId: "c1")
        _ = slow.merge(state)
        _ = slow.merge(small)
        #expect(slow.isBehind)
    }

    /// For any changes, the state that a watcher assembles from events equals the top of the board. A later watcher
    /// starts with the same state.
    @Test func watchedTop_alwaysMatchesTheBoard() async throws {
        var random = SeededGenerator(seed: 30)
        let watcher = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        var top = LeaderboardTopState(challengeId: "c1")
        _ = top.merge(try await watcher.next("leaderboard:update"))
        for round in 0..<effort(quick: 6, full: 25, long: 150) {
            for _ in 0..<Int.random(in: 1...15, using: &random) {
                let user = "u\(Int.random(in: 0..<160, using: &random))"
                if Int.random(in: 0..<8, using: &random) == 0 {
                    let backend = service.client(as: .service())
                    _ = try await status(of: await backend.withdrawScore(id: "c1", userId: user))
                } else {
                    let name = Bool.random(using: &random) ? "Name \(round)" : nil
                    try await service.score(user, Int.random(in: -5...20, using: &random), name: name)
                }
            }
            let board = try await service.board(as: "eve", limit: 100)
            service.clock.advance(seconds: 2)
            while top.version != board.version {
                _ = top.merge(try await watcher.next("leaderboard:update"))
                try #require(!top.isBehind)
            }
            #expect(try top.lines == Self.lines(of: board), "round \(round)")
            #expect(top.entries == board.entries)
            let later = try await service.listen(as: .user("fay"), topics: ["leaderboard:c1"])
            var fresh = LeaderboardTopState(challengeId: "c1")
            _ = fresh.merge(try await later.next("leaderboard:update"))
            #expect(fresh.lines == top.lines, "round \(round)")
            later.close()
        }
    }

    /// Returns the lines of a board's answer as a client reads them from its first event.
    private static func lines(of board: Bellhop.Leaderboard) throws -> [LeaderboardTopState.Line] {
        let state: JSON = [
            "challengeId": "c1", "entries": .integer(Int64(board.entries)), "changed": 0,
            "top": try JSON(parsing: Bellhop.encoder.encode(board.items)),
            "version": .integer(Int64(board.version)), "epoch": .string(board.epoch),
        ]
        var top = LeaderboardTopState(challengeId: "c1")
        _ = top.merge(ServerSentEvent(id: "", name: "leaderboard:update", data: state.text))
        return top.lines
    }

    /// More users than one pass looks up. Each moved user is updated once, and the next round waits one second.
    @Test func updatesOfManyUsers_reachEachOnce() async throws {
        for index in 0..<30 { try await service.score("u\(index)", 100 - index) }
        try await service.board()
        try await service.untilPublished()
        service.app.rankUpdates.stop()
        let strangers = (0..<LeaderboardLimits.lookupsPerPassMax).map { "stranger-\($0)" }
        let users = (0..<15).map { "u\($0)" } + strangers + (15..<30).map { "u\($0)" } + strangers
        let published = Collected<OwnState>()
        let updates = RankUpdates(
            boards: service.app.boards, log: service.app.runner.reader.log, clock: service.app.runner.clock,
            users: { _ in users },
            hasUsers: { _ in true }, deliver: { published.append(contentsOf: $0) })
        updates.start()
        service.clock.advance(seconds: 2)
        // From place 30 to place 7, level with u5's score: the users in between move, the others do not.
        try await service.score("u29", 24)
        try await eventually("each user who moved receives an update") { published.all.count >= 24 }
        try await service.score("u0", 1)
        #expect(published.all.map(\.key).sorted() == (6..<30).map { "user:u\($0)" }.sorted())
        // The rank of the first user stays the same, but the score changes.
        service.clock.advance(seconds: 1)
        try await eventually("the first user receives the new score") { published.all.count >= 25 }
        #expect(published.all.last?.key == "user:u0")
        updates.stop()
    }

    /// Own ranks are not stored in the log. A resumed stream, even after a restart, starts with the current ranks.
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
        // A deleted challenge has no ranks.
        #expect(try await service.client(as: .service()).deleteChallenge(id: "c1").status == 204)
        let last = try await service.listen(as: .user("ada"))
        let event = Bellhop.Event(id: "e1", type: .visitCreated, userId: "ada")
        #expect(try await service.client(as: .service()).postEvent(event).status == 201)
        try await last.next("badges:update")
        #expect(!last.received.contains { $0.name == "leaderboard:update" })
    }

    /// The clock is set back, as by NTP or by hand. Updates continue without waiting until it passes the old time.
    @Test func clockSetBack_stopsNoBoard_alsoNotAfterARestart() async throws {
        func watch(until version: Int, _ stream: StreamListener) async throws {
            while try await stream.next("leaderboard:update").json["version"].int != version {}
        }
        let watcher = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        try await service.score("ada", 30)
        try await watch(until: 1, watcher)
        service.clock.advance(seconds: -7200)
        // The first change is published at once, the second by the periodic job.
        try await service.score("ada", 1)
        try await service.score("ada", 1)
        service.clock.advance(seconds: 2)
        try await watch(until: 3, watcher)
        watcher.close()
        try await service.score("ada", 1)
        service.clock.advance(seconds: -7200)
        try await service.restart()
        let after = try await service.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        try await service.score("ada", 1)
        // Published by now, or one second after the previous update.
        service.clock.advance(seconds: 2)
        try await watch(until: 5, after)
    }

    /// The topic of a missing challenge, or of another tenant's, has no state. Its events arrive once the challenge
    /// exists.
    @Test func watchers_receiveNewChallenges() async throws {
        let stream = try await service.listen(as: .user("u1"), topics: ["leaderboard:c9", "leaderboard:c1"])
        #expect(try await stream.next("leaderboard:update").json["challengeId"].string == "c1")
        #expect(
            try await service.client(as: .service()).replaceChallenge(id: "c9", ChallengesTests.draft).status == 201)
        try await service.score("u2", 1, challenge: "c9")
        #expect(try await stream.next("leaderboard:update").json["challengeId"].string == "c9")
    }
}
