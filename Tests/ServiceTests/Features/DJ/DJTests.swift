import BellhopClient
import Database
import Domain
import Foundation
import TestSupport
import Testing
import Values

@testable import Service

/// DJ mode over real HTTP and real streams (R-CUT-D-1 to R-CUT-D-5, R-9 and R-10).
@Suite(.timed) struct DJTests {
    let service: TestService
    let staff: BellhopClient

    init() async throws {
        service = try await Self.open()
        staff = service.client(as: .staff(of: "s1"))
    }

    static let session = "/v1/shops/s1/dj"

    /// Starts a service with a shop whose guests choose the music.
    static func open(_ overrides: [String: String] = [:]) async throws -> TestService {
        let service = try TestService.start(overrides, at: "2026-01-10T20:00:00Z")
        let backend = service.client(as: .service())
        #expect(try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC")).status == 201)
        #expect(
            try await service.client(as: .staff(of: "s1")).replaceDJSession(id: "s1", .init(isActive: true)).status
                == 200)
        return service
    }

    static func guest(_ name: String, at service: TestService) async throws -> BellhopClient {
        let client = service.client(name)
        #expect(try await client.showPresence(id: "s1").status == 200)
        return client
    }

    static func track(_ id: String) -> Bellhop.AddTrackBody {
        .init(
            trackId: id, trackName: "Song \(id)", artistName: "Artist", albumArt: "https://covers.example/\(id).jpg")
    }

    /// R-CUT-D-1, R-CUT-D-5, R-33: the members of the JSON are the documented ones, and adding a track votes for it.
    @Test func tracks_areAddedAndVoted_andWatchersReceiveIt() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        let stream = try await service.listen(as: .user("watcher"), topics: ["dj:s1"])
        let initial = try await stream.next("dj:session").json
        #expect(initial["isActive"].bool == true)
        #expect(initial["queue"].array?.isEmpty == true)
        let track: JSON = ["trackId": "t1", "trackName": "Song t1", "artistName": "Artist"]
        let added = try await service.call("POST", "\(Self.session)/tracks", as: .user("ada"), track)
        #expect(added.status == 201, "\(added.problem)")
        #expect(
            Set((added.json.object ?? [:]).keys) == [
                "trackId", "trackName", "artistName", "albumArt", "addedBy", "upvotes", "downvotes", "score", "addedAt",
                "position", "userVote", "version", "epoch",
            ])
        expect(added.json, has: ["score": 1, "userVote": "up"])
        let delivered = try await stream.next("track:added").json
        expect(delivered, has: ["trackId": "t1", "addedBy": "ada", "userVote": nil, "position": 1, "shopId": "s1"])
        service.clock.advance(seconds: 1)
        #expect(try await ben.addTrack(id: "s1", Self.track("t2")).value.position == 2)
        try await stream.next("track:added")
        let voted = try await ada.vote(.up, on: "t2")
        #expect(voted.status == 200)
        #expect(voted.value.score == 2 && voted.value.position == 1)
        let update = try await stream.next("dj:queue_update").json
        expect(update, has: ["trackId": "t2", "upvotes": 2, "downvotes": 0, "score": 2, "position": 1])
        #expect(
            Set((update.object ?? [:]).keys).subtracting(["shopId", "version", "epoch"]) == [
                "trackId", "upvotes", "downvotes", "score", "position",
            ])
        #expect(try await ben.order() == ["t2", "t1"])
        try service.expectExactCounts()
    }

    @Test func currentTrack_isPinned_untilTheNextOnePlays() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        let stream = try await service.listen(as: .user("watcher"), topics: ["dj:s1"])
        #expect(try await ada.addTrack(id: "s1", Self.track("t1")).status == 201)
        service.clock.advance(seconds: 1)
        #expect(try await ben.addTrack(id: "s1", Self.track("t2")).status == 201)
        #expect(try await ada.vote(.up, on: "t2").status == 200)
        #expect(try await staff.playNextTrack(id: "s1").value.currentTrack?.trackId == "t2")
        #expect(try await stream.next("track:playing").json["trackName"].string == "Song t2")
        // The current track stays first, whatever the votes.
        #expect(try await ada.vote(.down, on: "t2").value.position == 1)
        #expect(try await ben.vote(.down, on: "t2").value.score == -2)
        #expect(try await ben.order() == ["t2", "t1"])
        #expect(try await staff.playNextTrack(id: "s1").value.currentTrack?.trackId == "t1")
        let removed = try await stream.next("track:removed").json
        expect(removed, has: ["trackId": "t2", "reason": "played"])
        #expect(try await stream.next("track:playing").json["trackId"].string == "t1")
        #expect(try await ben.order() == ["t1"])
        let silent = try await staff.playNextTrack(id: "s1")
        #expect(silent.value.currentTrack == nil)
        #expect(silent.value.queue.isEmpty)
        #expect(try await stream.next("track:playing").json["trackId"].isNull)
        // A track that was played may be added again, and starts without the old votes.
        #expect(try await ben.addTrack(id: "s1", Self.track("t2")).value.downvotes == 0)
        try service.expectExactCounts()
    }

    /// R-CUT-D-1: an app that maintains its queue from events and shows its own votes immediately ends up with the
    /// service's queue.
    @Test func client_derivesTheQueue_fromEventsAlone() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        #expect(try await ada.addTrack(id: "s1", Self.track("t0")).status == 201)
        let stream = try await service.listen(as: .user("ada"), topics: ["dj:s1"])
        var queue = DJQueueState(shopId: "s1")
        for index in 1...4 {
            #expect(try await ben.addTrack(id: "s1", Self.track("t\(index)")).status == 201)
            service.clock.advance(seconds: 1)
        }
        try await staff.playNextTrack(id: "s1")
        for (client, track, vote) in [
            (ada, "t3", .up), (ben, "t3", .up), (ada, "t2", .down), (ben, "t0", .down), (ada, "t1", .nothing),
        ] as [(BellhopClient, String, Bellhop.DJVote)] { try await client.vote(vote, on: track) }
        try await staff.playNextTrack(id: "s1")
        #expect(try await staff.removeTrack(id: "s1", trackId: "t4").status == 204)
        while try await stream.next().json["reason"].string != "removed" {}
        for event in stream.received { _ = queue.merge(event) }
        let shown = try await ada.getDJSession(id: "s1").value
        #expect(queue.tracks.map(\.trackId) == shown.queue.map(\.trackId))
        #expect(queue.tracks.map(\.score) == shown.queue.map(\.score))
        #expect(queue.currentTrackId == shown.currentTrack?.trackId)
        #expect(queue.currentTrackId != nil)
        // A refused vote reverts to its previous value; an accepted one stays.
        let before = queue
        queue.show(.up, on: "t2")
        #expect(queue != before)
        let path = "\(Self.session)/tracks/t2/vote"
        var isTaken = queue.merge(track: try await service.call("PUT", path, as: .user("outside"), ["vote": "up"]).json)
        #expect(!isTaken)
        queue.withdraw("t2")
        #expect(queue == before)
        isTaken = queue.merge(track: try await service.call("PUT", path, as: .user("ada"), ["vote": "up"]).json)
        #expect(isTaken)
        #expect(queue.tracks.first { $0.trackId == "t2" }?.vote == .up)
        let isSession = queue.merge(session: try await service.call("GET", Self.session, as: .user("ada")).json)
        #expect(isSession)
        #expect(try await queue.tracks.map(\.score) == ada.getDJSession(id: "s1").value.queue.map(\.score))
    }

    /// R-CUT-D-3: one vote per user. Switching sides removes the other vote, `none` withdraws it, and repeating it
    /// changes nothing.
    @Test func vote_countsOncePerUser() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        #expect(try await ada.addTrack(id: "s1", Self.track("t1")).status == 201)
        for (vote, up, down) in [
            (.up, 2, 0), (.up, 2, 0), (.down, 1, 1), (.down, 1, 1), (.nothing, 1, 0), (.nothing, 1, 0), (.down, 1, 1),
        ] as [(Bellhop.DJVote, Int, Int)] {
            let track = try await ben.vote(vote, on: "t1").value
            #expect(track.upvotes == up && track.downvotes == down && track.score == up - down, "\(vote)")
            #expect(track.userVote == vote)
        }
        let before = try await ben.getDJSession(id: "s1")
        #expect(before.value.queue[0].userVote == .down)
        #expect(try await ada.getDJSession(id: "s1").value.queue[0].userVote == .up)
        // R-9: adding a queued track votes for it and leaves the track unchanged.
        var again = Self.track("t1")
        again.trackName = "Another name"
        let answer = try await ben.addTrack(id: "s1", again)
        #expect(answer.status == 200)
        #expect(answer.value.upvotes == 2 && answer.value.downvotes == 0 && answer.value.trackName == "Song t1")
        #expect(answer.value.addedBy == "ada")
        // The version is the ETag: a vote changes it, a read does not.
        let tag = try #require(before.etag)
        #expect(try await ben.getDJSession(id: "s1", ifNoneMatch: tag) != nil)
        let now = try await ben.getDJSession(id: "s1")
        try await ben.vote(.up, on: "t1")
        #expect(try await ben.getDJSession(id: "s1", ifNoneMatch: now.etag ?? "") == nil)
        try service.expectExactCounts()
    }

    /// R-CUT-D-2: the error text is the documented one.
    @Test func voteFromOutsideTheShop_isRefused() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await ada.addTrack(id: "s1", Self.track("t1")).status == 201)
        let outside = service.client("ben")
        let refused = try await problem(of: await outside.vote(.up, on: "t1"))
        #expect(refused.refusal == "403 dj.not_present")
        #expect(refused.detail == "Must be at shop to vote")
        let adding = try await problem(of: await outside.addTrack(id: "s1", Self.track("t2")))
        #expect(adding.refusal == "403 dj.not_present")
        // Adding a queued track counts as a vote.
        #expect(try await status(of: await outside.addTrack(id: "s1", Self.track("t1"))) == 403)
        // Staff may add tracks from anywhere, but vote only when present at the shop.
        #expect(try await staff.addTrack(id: "s1", Self.track("t2")).status == 201)
        #expect(try await status(of: await staff.vote(.up, on: "t1")) == 403)
        #expect(
            try await status(of: await service.client(as: .staff(of: "s2")).addTrack(id: "s1", Self.track("t3")))
                == 403)
        #expect(try await ada.endPresence(id: "s1").status == 204)
        #expect(try await status(of: await ada.vote(.down, on: "t1")) == 403)
        try service.expectExactCounts()
    }

    @Test func unknownTracks_areNotFound_andBadVotesAreNamed() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await status(of: await ada.vote(.up, on: "t1")) == 404)
        #expect(try await status(of: await ada.getDJSession(id: "s2")) == 404)
        #expect(try await status(of: await ada.showPresence(id: "s2")) == 404)
        #expect(try await status(of: await ada.voteOnTrack(id: "s2", trackId: "t1", .init(vote: .up))) == 404)
        #expect(try await status(of: await staff.playTrack(id: "s1", .init(trackId: "t9"))) == 422)
        let nothing = try await service.call("PUT", "\(Self.session)/current-track", as: .staff(of: "s1"), [:])
        #expect(nothing.mistakes == "422 /trackId")
        for body in [["vote": "sideways"], ["vote": nil], [:], ["vote": "up", "as": "ben"]] as [JSON] {
            let answer = try await service.call("PUT", "\(Self.session)/tracks/t1/vote", as: .user("ada"), body)
            #expect(answer.status == 422, "\(body)")
        }
        try service.expectExactCounts()
    }

    @Test func sessionAndCurrentTrack_areChangedByStaffOnly() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await ada.addTrack(id: "s1", Self.track("t1")).status == 201)
        #expect(try await status(of: await ada.replaceDJSession(id: "s1", .init(isActive: false))) == 403)
        #expect(try await status(of: await ada.playNextTrack(id: "s1")) == 403)
        let foreign = service.client(as: .staff(of: "s2"))
        #expect(
            try await problem(of: await foreign.replaceDJSession(id: "s1", .init(isActive: true))).code == .notPermitted
        )
        #expect(try await status(of: await foreign.playNextTrack(id: "s1")) == 403)
        #expect(try await status(of: await foreign.playTrack(id: "s1", .init(trackId: nil))) == 403)
        #expect(
            try await status(of: await service.client(as: .user("ada", tenant: "t2")).getDJSession(id: "s1")) == 404)
        try service.expectExactCounts()
    }

    @Test func queue_endsWithTheSession() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await ada.addTrack(id: "s1", Self.track("t1")).status == 201)
        let stream = try await service.listen(as: .user("w"), topics: ["dj:s1"])
        try await stream.next("dj:session")
        let closed = try await staff.replaceDJSession(id: "s1", .init(isActive: false))
        #expect(!closed.value.isActive && closed.value.startedAt == nil)
        #expect(try await stream.next("dj:session").json["queue"].array?.isEmpty == true)
        for refusal in [
            try await refusal(of: await ada.vote(.up, on: "t1")),
            try await refusal(of: await ada.addTrack(id: "s1", Self.track("t1"))),
            try await refusal(of: await staff.playNextTrack(id: "s1")),
        ] { #expect(refusal == "409 dj.not_active") }
        try service.expectExactCounts()
    }

    /// The queue and the tracks per guest are limited. A guest may remove their own tracks, and the shop may remove
    /// any.
    @Test func queue_isBounded_andTracksCanBeTakenOut() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        for index in 0..<DJLimits.tracksPerUserMax {
            #expect(try await ada.addTrack(id: "s1", Self.track("a\(index)")).status == 201)
        }
        let tooMany = try await problem(of: await ada.addTrack(id: "s1", Self.track("a9")))
        #expect(tooMany.refusal == "409 dj.too_many_tracks")
        #expect(try await ada.addTrack(id: "s1", Self.track("a0")).status == 200)
        #expect(try await problem(of: await ben.removeTrack(id: "s1", trackId: "a0")).code == .notPermitted)
        let stream = try await service.listen(as: .user("w"), topics: ["dj:s1"])
        #expect(try await ada.removeTrack(id: "s1", trackId: "a0").status == 204)
        #expect(try await stream.next("track:removed").json["reason"].string == "removed")
        #expect(try await status(of: await ada.removeTrack(id: "s1", trackId: "a0")) == 404)
        #expect(try await staff.removeTrack(id: "s1", trackId: "a1").status == 204)
        #expect(try await staff.playTrack(id: "s1", .init(trackId: "a2")).status == 200)
        #expect(try await problem(of: await ada.removeTrack(id: "s1", trackId: "a2")).code == .djPlaying)
        for index in 3..<DJLimits.tracksMax {
            #expect(try await staff.addTrack(id: "s1", Self.track("s\(index)")).status == 201)
        }
        let full = try await problem(of: await staff.addTrack(id: "s1", Self.track("last")))
        #expect(full.refusal == "409 dj.queue_full")
        try service.expectExactCounts()
    }

    /// Two players that report the end of the same track skip only one track.
    @Test func trackEnd_reportedTwice_advancesOnce() async throws {
        for id in ["t1", "t2", "t3"] {
            #expect(try await staff.addTrack(id: "s1", Self.track(id)).status == 201)
            service.clock.advance(seconds: 1)
        }
        func next(_ body: String?) async throws -> String? {
            let answer = try await service.call("POST", "\(Self.session)/current-track", as: .staff(of: "s1"), body)
            #expect(answer.status == 200, "\(answer.problem)")
            return answer.json["currentTrack"]["trackId"].string
        }
        #expect(try await next(#"{"after":null}"#) == "t1")
        #expect(try await next(#"{"after":null}"#) == "t1")
        #expect(try await next(#"{"after":"t1"}"#) == "t2")
        #expect(try await next(#"{"after":"t1"}"#) == "t2")
        #expect(try await next(nil) == "t3")
        let played = try await staff.playTrack(id: "s1", .init(trackId: "t3"))
        #expect(played.value.queue.count == 1)
        #expect(try await staff.playTrack(id: "s1", .init(trackId: nil)).value.currentTrack == nil)
        #expect(try await staff.order().isEmpty)
    }

    /// With an Idempotency-Key, a repeated "next" skips only once.
    @Test func repeatedNext_withAKey_isDoneOnce() async throws {
        for id in ["t1", "t2"] { try await staff.addTrack(id: "s1", Self.track(id)) }
        for _ in 0..<3 {
            let answer = try await staff.playNextTrack(id: "s1", idempotencyKey: "next-1")
            #expect(answer.value.currentTrack?.trackId == "t1")
        }
    }

    /// R-CUT-D-4: votes of individual users are never published, in no response and in no row that others may read.
    @Test func voters_areNeverPublished() async throws {
        #expect(try await staff.addTrack(id: "s1", Self.track("t1")).status == 201)
        let stream = try await service.listen(as: .service(), topics: ["dj:s1"])
        let secret = try await Self.guest("secret-voter", at: service)
        try await secret.vote(.down, on: "t1")
        try await stream.next("dj:queue_update")
        for identity in [TestService.Identity.staff(of: "s1"), .admin, .service()] {
            let answer = try await service.call("GET", Self.session, as: identity)
            #expect(!answer.text.contains("secret-voter"))
            #expect(answer.json["queue"][0]["downvotes"].int == 1)
        }
        #expect(!stream.received.contains { $0.data.contains("secret-voter") })
        let scopes = [["tenant:service"], ["tenant:admin"], ["shop:s1:staff"], ["user:ada"], ["everyone"]]
        for keys in scopes {
            let scope = Scope(tenant: "default", keys: Set(keys + ["everyone"]))
            let seen = try service.app.store.read { db -> [Int?] in
                try db.enter(scope)
                return [
                    try db.integer(
                        "SELECT count(*) FROM \(DJFeature.votes, visibleTo: scope) WHERE user_id <> 'staff'"),
                    try db.integer("SELECT count(*) FROM \(DJFeature.presences, visibleTo: scope)"),
                ]
            }
            #expect(seen == [0, 0], "\(keys)")
        }
    }

    /// The votes on removed tracks are deleted gradually.
    @Test func votesOfPlayedTracks_areForgotten() async throws {
        #expect(try await staff.addTrack(id: "s1", Self.track("t1")).status == 201)
        for index in 0..<5 { try await Self.guest("u\(index)", at: service).vote(.up, on: "t1") }
        for _ in 0..<2 { try await staff.playNextTrack(id: "s1") }
        let audit = Unscoped.audit("a test counts")
        try await eventually("all old votes are deleted", step: { service.clock.advance(seconds: 1) }) {
            try service.app.store.read { db in
                let votes = try db.integer("SELECT count(*) FROM \(DJFeature.votes, unscoped: audit)")
                return try votes == 0 && db.integer("SELECT count(*) FROM \(DJFeature.tracks, unscoped: audit)") == 0
            }
        }
        try service.expectExactCounts()
    }
}

/// The calls of guests and staff of the shop `s1`.
extension BellhopClient {
    @discardableResult
    func vote(_ vote: Bellhop.DJVote, on track: String) async throws -> Bellhop.Answer<Bellhop.DJItemAnswer> {
        try await voteOnTrack(id: "s1", trackId: track, .init(vote: vote))
    }

    /// Returns the ids of the tracks in the order of the queue.
    func order() async throws -> [String] { try await getDJSession(id: "s1").value.queue.map(\.trackId) }
}
