import BellhopClient
import Foundation
import TestSupport
import Testing
import Values

@testable import Domain

/// Many concurrent votes: the counts equal a recount, the order is total, and watchers are not flooded.
@Suite(.timed) struct DJStormTests {
    /// Casts the votes of one guest in sequence; the last vote on each track counts.
    private static func voteRepeatedly(
        _ client: BellhopClient, times: Int, on tracks: [String], seed: UInt64
    ) async throws -> [String: DJVote] {
        var random = SeededGenerator(seed: seed)
        var last: [String: DJVote] = [:]
        for _ in 0..<times {
            let track = tracks[Int.random(in: tracks.indices, using: &random)]
            let vote = DJVote.allCases[Int.random(in: 0..<3, using: &random)]
            let answer = try await client.vote(.init(rawValue: vote.rawValue), on: track)
            #expect(answer.value.userVote.rawValue == vote.rawValue)
            last[track] = vote
        }
        return last
    }

    /// Adds tracks on one service and plays them on the next.
    private static func playForeignTracks(on services: [TestService], count: Int) async throws {
        for index in 0..<count {
            let (name, staff) = ("x\(index)", services[index % services.count].client(as: .staff(of: "s1")))
            let added = try await staff.addTrack(id: "s1", DJTests.track(name))
            #expect(added.status == 201)
            let played = try await staff.playTrack(id: "s1", .init(trackId: name))
            #expect(played.status == 200)
        }
    }

    private static func tallies(_ last: [[String: DJVote]], of tracks: [String]) -> [String: DJTally] {
        Dictionary(
            uniqueKeysWithValues: tracks.map { track in
                // Adding a track also votes for it.
                (track, last.reduce(DJTally(upvotes: 1)) { $0.replacing(.none, by: $1[track] ?? .none) })
            })
    }

    private static func expect(_ tallies: [String: DJTally], in queue: [Bellhop.DJItemView], _ comment: String) {
        #expect(queue.count == tallies.count)
        for (index, item) in queue.enumerated() {
            let tally = tallies[item.trackId]
            #expect(item.upvotes == tally?.upvotes && item.downvotes == tally?.downvotes, "\(comment)")
            #expect(item.score == tally?.score && item.position == index + 1, "\(comment)")
        }
        let places = queue.dropFirst().map { item -> DJPlace in
            let addedAt = Timestamp(microseconds: Int64((item.addedAt.timeIntervalSince1970 * 1000).rounded()) * 1000)
            return DJPlace(score: item.score, addedAt: addedAt, trackId: ID(item.trackId))
        }
        #expect(places == places.sorted(), "\(comment)")
    }

    /// 10,000 concurrent votes of 200 guests, while the first track plays. A contributor's run has fewer.
    @Test func tenThousandVotes_endInTheRecount_andWatchersReceiveTheEnd() async throws {
        let seed = randomSeed()
        let service = try await DJTests.open()
        let staff = service.client(as: .staff(of: "s1"))
        let tracks = (0..<10).map { "t\($0)" }
        for track in tracks.shuffled() {
            #expect(try await staff.addTrack(id: "s1", DJTests.track(track)).status == 201)
        }
        #expect(try await staff.playTrack(id: "s1", .init(trackId: "t0")).status == 200)
        let stream = try await service.listen(as: .user("watcher"), topics: ["dj:s1"])
        try await stream.next("dj:session")
        let (guests, votes) = (effort(quick: 60, full: 200, long: 200), effort(quick: 10, full: 50, long: 200))
        let last = try await concurrently(0..<guests) { index -> [String: DJVote] in
            let guest = try await DJTests.guest("u\(index)", at: service)
            return try await Self.voteRepeatedly(guest, times: votes, on: tracks, seed: seed &+ UInt64(index))
        }
        let expected = Self.tallies(last, of: tracks)
        let session = try await staff.getDJSession(id: "s1").value
        #expect(session.currentTrack?.trackId == "t0")
        #expect(session.queue[0].trackId == "t0")
        Self.expect(expected, in: session.queue, "seed \(seed)")
        try service.expectExactCounts()
        // All votes fall into one second of the service's clock. Watchers receive the remaining updates in the next
        // second.
        service.clock.advance(seconds: 1)
        var delivered: [String: JSON] = [:]
        var updates = 0
        while delivered.count < tracks.count
            || tracks.contains(where: { delivered[$0]?["upvotes"].int != expected[$0]?.upvotes })
            || tracks.contains(where: { delivered[$0]?["downvotes"].int != expected[$0]?.downvotes })
        {
            let update = try await stream.next("dj:queue_update").json
            delivered[update["trackId"].string ?? ""] = update
            updates += 1
        }
        #expect(updates <= DJLimits.updatesPerSecondMax + tracks.count, "\(updates)")
        for item in session.queue {
            #expect(delivered[item.trackId]?["position"].int == item.position, "seed \(seed)")
        }
    }

    /// Votes on two replicas at the same time, while tracks are added and removed: each vote counts once.
    @Test func votesOnTwoReplicas_countOnce() async throws {
        let seed = randomSeed()
        let (a, b) = try TestService.startReplicas()
        let backend = a.client(as: .service())
        #expect(try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC")).status == 201)
        #expect(try await backend.replaceDJSession(id: "s1", .init(isActive: true)).status == 200)
        let tracks = (0..<5).map { "t\($0)" }
        for track in tracks {
            #expect(try await backend.addTrack(id: "s1", DJTests.track(track)).status == 201)
        }
        let stream = try await b.listen(as: .user("watcher"), topics: ["dj:s1"])
        let (foreign, votes) = (effort(quick: 8, full: 20, long: 20), effort(quick: 6, full: 25, long: 100))
        async let played: Void = Self.playForeignTracks(on: [a, b], count: foreign)
        let last = try await concurrently(0..<24) { index -> [String: DJVote] in
            let guest = try await DJTests.guest("u\(index)", at: index % 2 == 0 ? a : b)
            return try await Self.voteRepeatedly(guest, times: votes, on: tracks, seed: seed &+ UInt64(index))
        }
        try await played
        #expect(try await backend.playTrack(id: "s1", .init(trackId: nil)).status == 200)
        let session = try await b.client("anybody").getDJSession(id: "s1").value
        Self.expect(Self.tallies(last, of: tracks), in: session.queue, "seed \(seed)")
        try a.expectExactCounts()
        while try await !stream.next("track:playing").json["trackId"].isNull {}
        // A recent event of the other replica may be delivered although the initial state already includes it.
        let added = stream.received.filter { $0.name == "track:added" }.compactMap { $0.json["trackId"].string }
        #expect(added.filter { $0.hasPrefix("x") } == (0..<foreign).map { "x\($0)" })
        // Both replicas accept the same codes.
        #expect(try await backend.replacePresenceRule(id: "s1", .init(codeRequired: true)).status == 200)
        let code = try await backend.getPresenceCode(id: "s1").value.code
        let guest = b.client("late")
        #expect(try await guest.showPresence(id: "s1", .init(code: code)).status == 200)
    }
}
