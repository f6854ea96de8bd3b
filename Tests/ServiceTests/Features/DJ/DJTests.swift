import BellhopClient
import Database
import Domain
import Foundation
import Rows
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
        #expect(try await backend.put("/v1/shops/s1", ["name": "The Cut Club", "timeZone": "UTC"]).status == 201)
        #expect(try await service.client(as: .staff(of: "s1")).put(session, ["isActive": true]).status == 200)
        return service
    }

    static func guest(_ name: String, at service: TestService) async throws -> BellhopClient {
        let client = service.client(as: .user(name))
        #expect(try await client.put("/v1/shops/s1/presence/me").status == 200)
        return client
    }

    static func track(_ id: String) -> JSON {
        [
            "trackId": .string(id), "trackName": .string("Song \(id)"), "artistName": "Artist",
            "albumArt": .string("https://covers.example/\(id).jpg"),
        ]
    }

    static func vote(_ client: BellhopClient, _ track: String, _ vote: String) async throws -> ServiceAnswer {
        try await client.put("\(session)/tracks/\(track)/vote", ["vote": .string(vote)])
    }

    static func order(_ client: BellhopClient) async throws -> [String] {
        try await client.get(session).json["queue"].array?.compactMap { $0["trackId"].string } ?? []
    }

    /// R-CUT-D-1, R-CUT-D-5: the members of the JSON are the documented ones, and adding a track votes for it.
    @Test func tracks_areAddedAndVoted_andWatchersReceiveIt() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        let stream = try await service.listen(as: .user("watcher"), topics: ["dj:s1"])
        let initial = try await stream.next("dj:session").json
        #expect(initial["isActive"].bool == true)
        #expect(initial["queue"].array?.isEmpty == true)
        let added = try await ada.post("\(Self.session)/tracks", Self.track("t1"))
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
        #expect(try await ben.post("\(Self.session)/tracks", Self.track("t2")).json["position"].int == 2)
        try await stream.next("track:added")
        let voted = try await Self.vote(ada, "t2", "up")
        #expect(voted.status == 200)
        expect(voted.json, has: ["score": 2, "position": 1])
        let update = try await stream.next("dj:queue_update").json
        expect(update, has: ["trackId": "t2", "upvotes": 2, "downvotes": 0, "score": 2, "position": 1])
        #expect(
            Set((update.object ?? [:]).keys).subtracting(["shopId", "version", "epoch"]) == [
                "trackId", "upvotes", "downvotes", "score", "position",
            ])
        #expect(try await Self.order(ben) == ["t2", "t1"])
        try service.expectExactCounts()
    }

    @Test func currentTrack_isPinned_untilTheNextOnePlays() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        let stream = try await service.listen(as: .user("watcher"), topics: ["dj:s1"])
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        service.clock.advance(seconds: 1)
        #expect(try await ben.post("\(Self.session)/tracks", Self.track("t2")).status == 201)
        #expect(try await Self.vote(ada, "t2", "up").status == 200)
        let playing = try await staff.post("\(Self.session)/current-track")
        #expect(playing.status == 200)
        #expect(playing.json["currentTrack"]["trackId"].string == "t2")
        #expect(try await stream.next("track:playing").json["trackName"].string == "Song t2")
        // The current track stays first, whatever the votes.
        #expect(try await Self.vote(ada, "t2", "down").json["position"].int == 1)
        #expect(try await Self.vote(ben, "t2", "down").json["score"].int == -2)
        #expect(try await Self.order(ben) == ["t2", "t1"])
        #expect(try await staff.post("\(Self.session)/current-track").json["currentTrack"]["trackId"].string == "t1")
        let removed = try await stream.next("track:removed").json
        expect(removed, has: ["trackId": "t2", "reason": "played"])
        #expect(try await stream.next("track:playing").json["trackId"].string == "t1")
        #expect(try await Self.order(ben) == ["t1"])
        let silent = try await staff.post("\(Self.session)/current-track")
        #expect(silent.json["currentTrack"].isNull)
        #expect(silent.json["queue"].array?.isEmpty == true)
        #expect(try await stream.next("track:playing").json["trackId"].isNull)
        // A track that was played may be added again, and starts without the old votes.
        #expect(try await ben.post("\(Self.session)/tracks", Self.track("t2")).json["downvotes"].int == 0)
        try service.expectExactCounts()
    }

    /// R-CUT-D-1: an app that maintains its queue from events and shows its own votes immediately ends up with the
    /// service's queue.
    @Test func client_derivesTheQueue_fromEventsAlone() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("t0")).status == 201)
        let stream = try await service.listen(as: .user("ada"), topics: ["dj:s1"])
        var queue = DJQueueState(shopId: "s1")
        for index in 1...4 {
            #expect(try await ben.post("\(Self.session)/tracks", Self.track("t\(index)")).status == 201)
            service.clock.advance(seconds: 1)
        }
        _ = try await staff.post("\(Self.session)/current-track")
        for (client, track, vote) in [
            (ada, "t3", "up"), (ben, "t3", "up"), (ada, "t2", "down"), (ben, "t0", "down"), (ada, "t1", "none"),
        ] { _ = try await Self.vote(client, track, vote) }
        _ = try await staff.post("\(Self.session)/current-track")
        #expect(try await staff.delete("\(Self.session)/tracks/t4").status == 204)
        while try await stream.next().json["reason"].string != "removed" {}
        for event in stream.received { _ = queue.merge(event) }
        let shown = try await ada.get(Self.session).json
        #expect(queue.tracks.map(\.trackId) == shown["queue"].array?.compactMap { $0["trackId"].string })
        #expect(queue.tracks.map(\.score) == shown["queue"].array?.compactMap { $0["score"].int })
        #expect(queue.currentTrackId == shown["currentTrack"]["trackId"].string)
        #expect(queue.currentTrackId != nil)
        // A refused vote reverts to its previous value; an accepted one stays.
        let before = queue
        queue.show(.up, on: "t2")
        #expect(queue != before)
        var isTaken = queue.merge(track: try await Self.vote(service.client(as: .user("outside")), "t2", "up").json)
        #expect(!isTaken)
        queue.withdraw("t2")
        #expect(queue == before)
        isTaken = queue.merge(track: try await Self.vote(ada, "t2", "up").json)
        #expect(isTaken)
        #expect(queue.tracks.first { $0.trackId == "t2" }?.vote == .up)
        let isSession = queue.merge(session: try await ada.get(Self.session).json)
        let scores = try await ada.get(Self.session).json["queue"].array?.compactMap { $0["score"].int }
        #expect(isSession)
        #expect(queue.tracks.map(\.score) == scores)
    }

    /// R-CUT-D-3: one vote per user. Switching sides removes the other vote, `none` withdraws it, and repeating it
    /// changes nothing.
    @Test func vote_countsOncePerUser() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        for (vote, up, down) in [
            ("up", 2, 0), ("up", 2, 0), ("down", 1, 1), ("down", 1, 1), ("none", 1, 0), ("none", 1, 0), ("down", 1, 1),
        ] {
            let answer = try await Self.vote(ben, "t1", vote).json
            #expect(answer["upvotes"].int == up, "\(vote)")
            #expect(answer["downvotes"].int == down, "\(vote)")
            #expect(answer["score"].int == up - down)
            #expect(answer["userVote"].string == vote)
        }
        let before = try await ben.get(Self.session)
        #expect(before.json["queue"][0]["userVote"].string == "down")
        #expect(try await ada.get(Self.session).json["queue"][0]["userVote"].string == "up")
        // adding a queued track votes for it and leaves the track unchanged.
        var again = try #require(Self.track("t1").object)
        again["trackName"] = "Another name"
        let answer = try await ben.post("\(Self.session)/tracks", .object(again))
        #expect(answer.status == 200)
        expect(answer.json, has: ["upvotes": 2, "downvotes": 0, "trackName": "Song t1", "addedBy": "ada"])
        // The version is the ETag: a vote changes it, a read does not.
        let tag = try #require(before[header: "ETag"])
        #expect(try await ben.get(Self.session, headers: ["If-None-Match": tag]).status == 200)
        let now = try await ben.get(Self.session)
        _ = try await Self.vote(ben, "t1", "up")
        let same = try await ben.get(Self.session, headers: ["If-None-Match": now[header: "ETag"] ?? ""])
        #expect(same.status == 304)
        try service.expectExactCounts()
    }

    /// R-CUT-D-2: the error text is the documented one.
    @Test func voteFromOutsideTheShop_isRefused() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        let outside = service.client(as: .user("ben"))
        let refused = try await Self.vote(outside, "t1", "up")
        #expect(refused.refusal == "403 dj.not_present")
        #expect(refused.json["detail"].string == "Must be at shop to vote")
        let adding = try await outside.post("\(Self.session)/tracks", Self.track("t2"))
        #expect(adding.refusal == "403 dj.not_present")
        // Adding a queued track counts as a vote.
        #expect(try await outside.post("\(Self.session)/tracks", Self.track("t1")).status == 403)
        // Staff may add tracks from anywhere, but vote only when present at the shop.
        #expect(try await staff.post("\(Self.session)/tracks", Self.track("t2")).status == 201)
        #expect(try await Self.vote(staff, "t1", "up").status == 403)
        #expect(
            try await service.client(as: .staff(of: "s2")).post("\(Self.session)/tracks", Self.track("t3")).status
                == 403)
        #expect(try await ada.delete("/v1/shops/s1/presence/me").status == 204)
        #expect(try await Self.vote(ada, "t1", "down").status == 403)
        try service.expectExactCounts()
    }

    @Test func unknownTracks_areNotFound_andBadVotesAreNamed() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await Self.vote(ada, "t1", "up").status == 404)
        #expect(try await ada.get("/v1/shops/s2/dj").status == 404)
        #expect(try await ada.put("/v1/shops/s2/presence/me").status == 404)
        #expect(try await ada.put("/v1/shops/s2/dj/tracks/t1/vote", ["vote": "up"]).status == 404)
        #expect(try await staff.put("\(Self.session)/current-track", ["trackId": "t9"]).status == 422)
        #expect(
            try await staff.put("\(Self.session)/current-track", [:]).json["errors"][0]["pointer"].string == "/trackId")
        for body in [["vote": "sideways"], ["vote": nil], [:], ["vote": "up", "as": "ben"]] as [JSON] {
            #expect(try await ada.put("\(Self.session)/tracks/t1/vote", body).status == 422, "\(body)")
        }
        try service.expectExactCounts()
    }

    @Test func sessionAndCurrentTrack_areChangedByStaffOnly() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        #expect(try await ada.put(Self.session, ["isActive": false]).status == 403)
        #expect(try await ada.post("\(Self.session)/current-track").status == 403)
        let foreign = service.client(as: .staff(of: "s2"))
        #expect(try await foreign.put(Self.session, ["isActive": true]).json["code"].string == "not_permitted")
        #expect(try await foreign.post("\(Self.session)/current-track").status == 403)
        #expect(try await foreign.put("\(Self.session)/current-track", ["trackId": nil]).status == 403)
        #expect(try await service.client(as: .user("ada", tenant: "t2")).get(Self.session).status == 404)
        try service.expectExactCounts()
    }

    @Test func queue_endsWithTheSession() async throws {
        let ada = try await Self.guest("ada", at: service)
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        let stream = try await service.listen(as: .user("w"), topics: ["dj:s1"])
        try await stream.next("dj:session")
        let closed = try await staff.put(Self.session, ["isActive": false])
        expect(closed.json, has: ["isActive": false, "startedAt": nil])
        #expect(try await stream.next("dj:session").json["queue"].array?.isEmpty == true)
        for answer in [
            try await Self.vote(ada, "t1", "up"), try await ada.post("\(Self.session)/tracks", Self.track("t1")),
            try await staff.post("\(Self.session)/current-track"),
        ] { #expect(answer.refusal == "409 dj.not_active") }
        try service.expectExactCounts()
    }

    /// The queue and the tracks per guest are limited. A guest may remove their own tracks, and the shop may remove
    /// any.
    @Test func queue_isBounded_andTracksCanBeTakenOut() async throws {
        let (ada, ben) = (try await Self.guest("ada", at: service), try await Self.guest("ben", at: service))
        for index in 0..<DJLimits.tracksPerUserMax {
            #expect(try await ada.post("\(Self.session)/tracks", Self.track("a\(index)")).status == 201)
        }
        let tooMany = try await ada.post("\(Self.session)/tracks", Self.track("a9"))
        #expect(tooMany.refusal == "409 dj.too_many_tracks")
        #expect(try await ada.post("\(Self.session)/tracks", Self.track("a0")).status == 200)
        #expect(try await ben.delete("\(Self.session)/tracks/a0").json["code"].string == "not_permitted")
        let stream = try await service.listen(as: .user("w"), topics: ["dj:s1"])
        #expect(try await ada.delete("\(Self.session)/tracks/a0").status == 204)
        #expect(try await stream.next("track:removed").json["reason"].string == "removed")
        #expect(try await ada.delete("\(Self.session)/tracks/a0").status == 404)
        #expect(try await staff.delete("\(Self.session)/tracks/a1").status == 204)
        #expect(try await staff.put("\(Self.session)/current-track", ["trackId": "a2"]).status == 200)
        #expect(try await ada.delete("\(Self.session)/tracks/a2").json["code"].string == "dj.playing")
        for index in 3..<DJLimits.tracksMax {
            #expect(try await staff.post("\(Self.session)/tracks", Self.track("s\(index)")).status == 201)
        }
        let full = try await staff.post("\(Self.session)/tracks", Self.track("last"))
        #expect(full.refusal == "409 dj.queue_full")
        try service.expectExactCounts()
    }

    /// Two players that report the end of the same track skip only one track.
    @Test func trackEnd_reportedTwice_advancesOnce() async throws {
        for id in ["t1", "t2", "t3"] {
            #expect(try await staff.post("\(Self.session)/tracks", Self.track(id)).status == 201)
            service.clock.advance(seconds: 1)
        }
        func next(_ body: JSON?) async throws -> String? {
            let answer = try await staff.post("\(Self.session)/current-track", body)
            #expect(answer.status == 200, "\(answer.problem)")
            return answer.json["currentTrack"]["trackId"].string
        }
        #expect(try await next(["after": nil]) == "t1")
        #expect(try await next(["after": nil]) == "t1")
        #expect(try await next(["after": "t1"]) == "t2")
        #expect(try await next(["after": "t1"]) == "t2")
        #expect(try await next(nil) == "t3")
        let played = try await staff.put("\(Self.session)/current-track", ["trackId": "t3"])
        #expect(played.json["queue"].array?.count == 1)
        #expect(try await staff.put("\(Self.session)/current-track", ["trackId": nil]).json["currentTrack"].isNull)
        #expect(try await Self.order(staff).isEmpty)
    }

    /// With an Idempotency-Key, a repeated "next" skips only once.
    @Test func repeatedNext_withAKey_isDoneOnce() async throws {
        for id in ["t1", "t2"] { _ = try await staff.post("\(Self.session)/tracks", Self.track(id)) }
        for _ in 0..<3 {
            let answer = try await staff.post("\(Self.session)/current-track", headers: ["Idempotency-Key": "next-1"])
            #expect(answer.json["currentTrack"]["trackId"].string == "t1")
        }
    }

    /// R-CUT-D-4: votes of individual users are never published, in no response and in no row that others may read.
    @Test func voters_areNeverPublished() async throws {
        #expect(try await staff.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        let stream = try await service.listen(as: .service(), topics: ["dj:s1"])
        let secret = try await Self.guest("secret-voter", at: service)
        _ = try await Self.vote(secret, "t1", "down")
        try await stream.next("dj:queue_update")
        for client in [staff, service.client(as: .admin), service.client(as: .service())] {
            let answer = try await client.get(Self.session)
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
        #expect(try await staff.post("\(Self.session)/tracks", Self.track("t1")).status == 201)
        for index in 0..<5 { _ = try await Self.vote(try await Self.guest("u\(index)", at: service), "t1", "up") }
        for _ in 0..<2 { _ = try await staff.post("\(Self.session)/current-track") }
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
