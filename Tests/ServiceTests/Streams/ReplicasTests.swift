import BellhopClient
import Database
import Foundation
import PostgresServer
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Two replicas on one PostgreSQL: an action on one takes effect on the other.
@Suite(.timed) struct ReplicasTests {
    private let a: TestService
    private let b: TestService

    init() throws { (a, b) = try TestService.startReplicas() }

    private static func notify(_ service: TestService, _ user: String, _ id: String) async throws -> Int {
        try await service.client(as: .service()).post(
            "/v1/events",
            [
                "id": .string(id), "type": "visit.created", "userId": .string(user),
                "data": ["visitId": "v1", "visitType": "Check-up", "hospital": "St. Mary", "status": "confirmed"],
            ]
        ).status
    }

    /// The shared content of a message's events is stored once. Streams of the other replica receive it whole, live
    /// and after a resume.
    @Test func messageToSeveral_isCompleteOnTheOtherReplica() async throws {
        let id = try await a.converse("ana", "ben", "cem")
        let onB = try await b.listen(as: .user("ben"))
        let sent = try await a.send("a text for all", to: id, as: "ana")
        let live = try await onB.next("message:created")
        #expect(live.json["message"] == sent.json["message"])
        #expect(live.json["unread"] == 1)
        let resumed = try await b.listen(as: .user("ben"), lastEventID: onB.ready.id)
        #expect(try await resumed.next("message:created").json == live.json)
    }

    /// Updates of a board's top arrive in sequence, whichever replica publishes them.
    @Test func watchedTop_isExact_onAnyReplica() async throws {
        let made = try await a.client(as: .service()).put(
            "/v1/challenges/c1",
            ["name": "c1", "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2099-01-01T00:00:00Z", "mode": "add"])
        #expect(made.status == 201, "\(made.problem)")
        let watcher = try await b.listen(as: .user("eve"), topics: ["leaderboard:c1"])
        var top = LeaderboardTopState(challengeId: "c1")
        for round in 1...effort(quick: 5, full: 12, long: 50) {
            try await (round % 2 == 0 ? a : b).score("u\(round % 5)", round)
            a.clock.advance(seconds: 2)
            while top.version != round {
                _ = top.merge(try await watcher.next("leaderboard:update", advancing: a.clock))
            }
            #expect(!top.isBehind)
        }
        let board = try await a.board(as: "eve")
        #expect(top.lines.map(\.userId) == board["items"].array?.compactMap { $0["userId"].string })
        #expect(top.lines.map(\.score) == board["items"].array?.compactMap { $0["score"].int })
    }

    /// Both replicas write concurrently. The streams of both receive the same events in the same order, without gaps.
    @Test func streamsOfBothReplicas_receiveTheSameEvents() async throws {
        let (onA, onB) = (try await a.listen(as: .user("u1")), try await b.listen(as: .user("u1")))
        let count = 40
        try await concurrently(0..<count) { index in
            let (service, user) = (index % 2 == 0 ? a : b, index % 5 == 0 ? "u2" : "u1")
            let status = try await Self.notify(service, user, "e\(index)")
            #expect(status == 201)
        }
        #expect(try await Self.notify(a, "u1", "last") == 201)
        func eventIds(_ listener: StreamListener) async throws -> [String] {
            var ids: [String] = []
            while ids.last != "last" {
                ids.append(try await listener.next("notification:created").json["eventId"].string ?? "")
            }
            return ids
        }
        let (first, second) = (try await eventIds(onA), try await eventIds(onB))
        #expect(first == second)
        #expect(first.count == count * 4 / 5 + 1)
        #expect(Set(first).count == first.count)
        let numbers = a.sequences(onA.received)
        #expect(numbers == numbers.sorted())
        // Both replicas decode the same ids.
        #expect(b.sequences(onA.received) == numbers)
        // A stream resumes on the other replica directly after its last event.
        let resumed = try await b.listen(as: .user("u1"), lastEventID: onA.received[3].id)
        while resumed.received.last?.id != onA.lastEventID { try await resumed.next() }
        let missed = onA.received.dropFirst(4).filter { $0.name == "notification:created" }.map(\.id)
        #expect(resumed.received.filter { $0.name == "notification:created" }.map(\.id) == missed)
        try a.expectExactCounts()
        // Commits of the other replica are never hidden by a cache: a count that changed there is not answered with
        // 304.
        let known = try await b.client(as: .user("u1")).get("/v1/badges")
        #expect(try await Self.notify(a, "u1", "afterwards") == 201)
        let tag = try #require(known.headers["etag"])
        let asked = try await b.client(as: .user("u1")).get("/v1/badges", headers: ["If-None-Match": tag])
        #expect(asked.status == 200)
        #expect(asked.json["bell"].int == (known.json["bell"].int ?? 0) + 1)
    }

    /// Concurrent messages, positions and members through both: sequence numbers without gaps, counts without drift.
    @Test func conversationsThroughBoth_leaveNoDrift() async throws {
        try await ConversationPlay(a, and: [b]).run(steps: effort(quick: 8, full: 25, long: 100))
    }

    /// The requester has already received the failure that no replica answered, and may have sent another request
    /// since.
    @Test func lateReplicaRequest_isIgnored() async throws {
        let stream = try await b.listen(as: .user("u1"))
        let id = try #require(stream.ready.json["streamId"].string)
        let asker = Caller(
            tenant: "default", userId: "u1", role: "", isService: false,
            scope: Scope(tenant: "default", keys: ["user:u1", "everyone"]))
        func relay(_ topic: String, until: Timestamp) async throws {
            let data = ReplicaRequests.requestData(
                "q-\(topic)", about: id, as: asker, .replace(SubscriptionDraft(topics: [topic])), until: until)
            let runner = a.app.runner
            try await a.app.store.write { db in
                try runner.write(as: .system(tenant: "default"), in: db) {
                    $0.notifyReplicas(ReplicaRequests.asked, data: data)
                }
            }
        }
        func topics() async throws -> [String?]? {
            let shown = try await a.client(as: .user("u1")).get("/v1/streams/\(id)/subscriptions")
            return shown.json["topics"].array?.map(\.string)
        }
        try await relay("queue:in-time", until: a.clock.now.adding(seconds: 2))
        #expect(try await topics()?.contains("queue:in-time") == true)
        let acknowledged = try await b.client(as: .user("u1")).put(
            "/v1/streams/\(id)/subscriptions", ["topics": ["queue:newer"]])
        #expect(acknowledged.status == 200)
        try await relay("queue:late", until: a.clock.now)
        // This request is after the late one in the log, so its answer comes after the late one was handled.
        #expect(try await topics()?.contains("queue:newer") == true)
        #expect(try await topics()?.contains("queue:late") == false)
        #expect(
            try await b.client(as: .admin).get("/metrics").text
                .contains("bellhop_stream_failures_total{reason=\"late\"} 1"))
    }

    @Test func ticketOfOne_opensOneStream_onTheOther() async throws {
        let made = try await a.client(as: .user("u1")).post("/v1/stream-tickets")
        let ticket = try #require(made.json["ticket"].string)
        let raw = try RawConnection(b.port)
        try raw.send("GET /v1/stream?ticket=\(ticket) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "\"serverTime\"").hasPrefix("HTTP/1.1 200"))
        for service in [a, b] {
            let again = try await service.anyone.get("/v1/stream?ticket=\(ticket)")
            #expect(again.status == 401)
        }
    }

    @Test func revocationOnOne_closesStreams_andRefusesTokens_onTheOther() async throws {
        let identity = TestService.Identity(subject: "u1", claims: ["jti": "token-1"])
        let token = b.token(for: identity)
        let stream = StreamListener(b.anyone.with(token: token).events())
        try await stream.next("stream:ready")
        let answer = try await a.client(as: .service()).post("/v1/revocations", ["tokenId": "token-1"])
        #expect(answer.status == 201)
        #expect(try await stream.next("stream:closing").json["reason"].string == "revoked")
        #expect(try await b.anyone.with(token: token).get("/v1/badges").status == 401)
    }

    /// A network that silently drops everything between one replica and the database. That replica misses revocations
    /// of the others, so after a while it accepts no token.
    @Test func partitionedReplica_distrustsItsRevocations_andLogsIt() async throws {
        let partition = try PartitionProxy(to: PostgresServer.shared().port)
        defer { partition.stop() }
        let (a, b) = try TestService.startReplicas(
            ["databaseTimeoutSeconds": "5", "revocationsTrustedSeconds": "5"], secondThrough: partition)
        let identity = TestService.Identity(subject: "u1", claims: ["jti": "token-1"])
        let revoked = b.anyone.with(token: b.token(for: identity))
        let stream = StreamListener(revoked.events())
        try await stream.next("stream:ready")
        partition.cut()
        #expect(try await a.client(as: .service()).post("/v1/revocations", ["tokenId": "token-1"]).status == 201)
        #expect(try await stream.next("stream:closing").json["reason"].string == "unavailable")
        let (good, open) = (b.client(as: .user("u2")), b.anyone)
        for path in ["/v1/me", "/v1/stream"] {
            let refused = try await good.get(path)
            #expect(refused.refusal == "503 revocations.unknown", "\(path)")
            #expect(refused[header: "Retry-After"] == "5", "\(path)")
        }
        let ready = try await open.get("/readyz")
        #expect(ready.refusal == "503 not_ready")
        #expect(ready.json["detail"].string?.contains("revocations of other replicas are unknown") == true)
        #expect(try await open.get("/metrics").text.contains("bellhop_revocations_trusted 0"))
        // The other replica is not affected.
        #expect(try await a.client(as: .user("u2")).get("/v1/me").status == 200)
        partition.heal()
        // The replica knows the revocation before it accepts tokens again.
        var answer = try await revoked.get("/v1/me")
        while answer.status == 503 { answer = try await revoked.get("/v1/me") }
        #expect(answer.refusal == "401 invalid_token.revoked")
        #expect(try await good.get("/v1/me").status == 200)
        #expect(try await open.get("/metrics").text.contains("bellhop_revocations_trusted 1"))
    }

    /// No sticky sessions: any replica answers a request about a stream.
    @Test func requestsAboutAStream_areAnsweredByAnyReplica() async throws {
        let shop: JSON = ["name": "The Cut Club", "timeZone": "Europe/Berlin"]
        #expect(try await a.client(as: .service()).put("/v1/shops/s1", shop).status == 201)
        let identity = TestService.Identity.user("u1")
        let stream = try await a.listen(as: identity)
        let id = try #require(stream.ready.json["streamId"].string)
        let path = "/v1/streams/\(id)/subscriptions"
        let topics: JSON = ["topics": ["queue:s1"]]
        let replaced = try await b.client(as: identity).put(path, topics)
        #expect(replaced.status == 200, "\(replaced.json)")
        #expect(try await stream.next("queue:update").json["shopId"].string == "s1")
        let shown = try await b.client(as: identity).get(path)
        #expect(shown.json["topics"].array?.compactMap(\.string) == ["personal", "queue:s1"])
        let renewed: JSON = ["token": .string(a.token(for: identity, lifetimeSeconds: 7200))]
        #expect(try await b.client(as: identity).put("/v1/streams/\(id)/token", renewed).status == 200)
        // The stream of another user is not found on any replica, and neither is a closed one.
        #expect(try await b.client(as: .user("u2")).get(path).status == 404)
        #expect(try await b.client(as: identity).get("/v1/streams/abc-0-0-0/subscriptions").status == 404)
    }

    @Test func idempotencyKey_sentToBothAtOnce_isDoneOnce() async throws {
        let body: JSON = [
            "userId": "u1", "type": "REMINDER", "category": "visit", "priority": "HIGH", "title": "t", "message": "m",
        ]
        for round in 0..<5 {
            let answers = try await concurrently(0..<8) { index -> ServiceAnswer in
                let client = (index % 2 == 0 ? a : b).client(as: .service())
                return try await client.post("/v1/notifications", body, headers: ["Idempotency-Key": "key-\(round)"])
            }
            #expect(Set(answers.map(\.status)) == [201])
            #expect(Set(answers.compactMap { $0.json["notification"]["id"].string }).count == 1)
        }
        #expect(try await b.client(as: .user("u1")).get("/v1/badges").json["bell"].int == 5)
    }

    /// One board, written and read on both replicas concurrently: each answer includes all earlier commits of both.
    /// At the end, both boards in memory equal a recount.
    @Test func leaderboards_areTheSame_onBoth() async throws {
        var draft = ChallengesTests.draft.object ?? [:]
        (draft["startsAt"], draft["endsAt"]) = ("2020-01-01T00:00:00Z", "2200-01-01T00:00:00Z")
        for id in ["c1", "c2"] {
            #expect(try await a.client(as: .service()).put("/v1/challenges/\(id)", .object(draft)).status == 201)
        }
        for service in [a, b] { _ = try await service.board() }
        let seed = randomSeed()
        try await ChallengesTests.play(on: [a, b], seed: seed, steps: effort(quick: 160, full: 800, long: 4000))
        // A score written on one replica is read on the other.
        for index in 0..<20 {
            let (writer, reader) = index % 2 == 0 ? (a, b) : (b, a)
            let answer = try await writer.score("u\(index)", 1000 + index).json
            let own = try await reader.board(as: "u\(index)")["me"]
            #expect(own["rank"].int == answer["rank"].int)
            #expect(own["score"].int == answer["score"].int)
        }
        for challenge in ["c1", "c2"] {
            let boards = [try await a.board(challenge: challenge), try await b.board(challenge: challenge)]
            #expect(boards[0] == boards[1])
        }
        try a.expectExactCounts()
        for service in [a, b] { try service.expectExactBoards() }
    }

    /// A score on one replica moves a rank, and the streams of the other deliver the update.
    @Test func ranksMovedOnOne_areDeliveredOnTheOther() async throws {
        var draft = ChallengesTests.draft.object ?? [:]
        (draft["startsAt"], draft["endsAt"]) = ("2020-01-01T00:00:00Z", "2200-01-01T00:00:00Z")
        #expect(try await a.client(as: .service()).put("/v1/challenges/c1", .object(draft)).status == 201)
        try await a.score("u1", 10)
        let own = try await b.listen(as: .user("u1"))
        let watcher = try await b.listen(as: .user("u9"), topics: ["leaderboard:c1"])
        a.clock.advance(seconds: 2)
        try await a.score("u2", 20)
        while try await own.next("leaderboard:update", advancing: a.clock).json["rank"].int != 2 {}
        while try await watcher.next("leaderboard:update", advancing: a.clock).json["version"].int != 2 {}
    }

    @Test func publishedEvents_reachStreamsOfTheOtherReplica() async throws {
        let onB = try await b.listen(as: .user("u1"))
        let event: JSON = ["event": "order:changed", "to": ["user:u1"], "data": ["orderId": "o1"]]
        #expect(try await a.client(as: .service()).post("/v1/publish", event).status == 202)
        #expect(try await onB.next("order:changed").json == ["orderId": "o1"])
    }

    /// No barber is double-booked, whichever replica receives the request.
    @Test func bookings_neverOverlap_onAnyReplica() async throws {
        let backend = a.client(as: .service())
        let shop: JSON = ["name": "The Cut Club", "timeZone": "Europe/Berlin"]
        #expect(try await backend.put("/v1/shops/s1", shop).status == 201)
        #expect(try await backend.put("/v1/shops/s1/barbers/b1", ["onDuty": true]).status == 201)
        let statuses = try await concurrently(0..<60) { index -> Int in
            let start = "2030-01-10T\(10 + index % 4):\(index % 3)0:00Z"
            let client = (index % 2 == 0 ? a : b).client(as: .user("u\(index)"))
            return try await client.post("/v1/bookings", BookingsTests.draft(start, minutes: 60)).status
        }
        #expect(statuses.count { $0 == 201 || $0 == 409 } == 60, "\(statuses)")
        #expect((2...4).contains(statuses.count { $0 == 201 }), "\(statuses)")
        try a.expectExactCounts()
    }

    /// R-CNT-G4 for a client that spreads its requests over replicas: the replicas add up their counts once a second.
    @Test func rateLimit_isSharedByReplicas() async throws {
        let (a, b) = try TestService.startReplicas(["rateLimitUser": "20"])
        a.clock.set(Timestamp(rfc3339: "2030-01-10T12:00:00Z")!)
        let (onA, onB) = (a.client(as: .user("u1")), b.client(as: .user("u1")))
        for _ in 0..<12 { #expect(try await onA.get("/v1/badges").status == 200) }
        for _ in 0..<4 { #expect(try await onB.get("/v1/badges").status == 200) }
        // The replicas' clocks stand still; each step lets them share their counts once.
        var remaining = Int.max
        while remaining > 5 {
            a.clock.advance(seconds: 1)
            let header = try await onB.get("/v1/badges").headers["ratelimit"] ?? ""
            remaining =
                header.split(separator: ";").first { $0.hasPrefix("r=") }.flatMap { Int($0.dropFirst(2)) } ?? .max
        }
        var statuses: [Int] = []
        for _ in 0..<6 { statuses.append(try await onB.get("/v1/badges").status) }
        #expect(statuses.contains(429))
    }

    /// A failover to a server that lacks the last commits. Their sequence numbers will be reused, so streams start
    /// again in a new epoch.
    ///
    /// - Parameter written: the number of events written immediately, which reuse numbers before any replica has
    ///   polled.
    @Test(arguments: [0, 6]) func logThatLostDeliveredEvents_getsANewEpoch_onAllReplicas(written: Int) async throws {
        let (onA, onB) = (try await a.listen(as: .user("u1")), try await b.listen(as: .user("u1")))
        for index in 0..<3 { #expect(try await Self.notify(a, "u1", "e\(index)") == 201) }
        for stream in [onA, onB] {
            while stream.received.last?.json["eventId"].string != "e2" { try await stream.next("notification:created") }
        }
        let cursor = onA.lastEventID
        try await a.alterTable(
            sqlite: "SELECT 1",
            postgres: """
                WITH back AS (UPDATE event_counter SET newest = newest - 3 RETURNING newest),
                    routes AS (DELETE FROM event_routes WHERE sequence > (SELECT newest FROM back))
                DELETE FROM events WHERE sequence > (SELECT newest FROM back)
                """)
        for index in 0..<written { #expect(try await Self.notify(a, "u2", "again\(index)") == 201) }
        for stream in [onA, onB] { try await stream.next("stream:closing") }
        var epochs: Set<Substring> = []
        for service in [a, b] {
            let again = try await service.listen(as: .user("u1"), lastEventID: cursor)
            #expect(try await again.next("stream:resync").json["reason"].string == "epoch")
            epochs.insert(again.ready.id.prefix { $0 != "-" })
        }
        #expect(epochs.count == 1)
        #expect(epochs.first.map { cursor.hasPrefix($0) } == false)
        let resumed = try await b.listen(as: .user("u1"))
        #expect(try await Self.notify(a, "u1", "afterwards") == 201)
        #expect(try await resumed.next("notification:created").json["eventId"].string == "afterwards")
    }

    /// Another replica, or a promoted server, changes the epoch of the log while events are written continuously.
    ///
    /// - Parameter change: the epoch that another replica has set, or the timeline of a promoted server.
    @Test(arguments: ["epoch = 'another'", "origin = '1/2/00000003'"])
    func newEpoch_reachesEveryStream_underTraffic(change: String) async throws {
        let (onA, onB) = (try await a.listen(as: .user("u1")), try await b.listen(as: .user("u1")))
        let writing = Task { [a] in
            for index in 0... {
                if Task.isCancelled { return }
                _ = try await Self.notify(a, "u2", "w\(index)")
            }
        }
        defer { writing.cancel() }
        try await a.alterTable(sqlite: "SELECT 1", postgres: "UPDATE event_epochs SET \(change)")
        for (service, stream) in [(a, onA), (b, onB)] {
            #expect(try await stream.next("stream:closing").json["reason"].string == "unavailable")
            let again = try await service.listen(as: .user("u1"), lastEventID: stream.lastEventID)
            #expect(try await again.next("stream:resync").json["reason"].string == "epoch")
        }
    }

    /// A replica that finds events missing from the log closes its streams. They resume with a resync.
    @Test func replicaThatFellBehind_endsItsStreams() async throws {
        let stream = try await b.listen(as: .user("u1"))
        // Simulates a log that was pruned while the replica was disconnected: the counter has advanced, and the rows
        // are gone.
        try await a.alterTable(sqlite: "SELECT 1", postgres: "UPDATE event_counter SET newest = newest + 5")
        #expect(try await Self.notify(a, "u2", "e1") == 201)
        #expect(try await stream.next("stream:closing").json["reason"].string == "unavailable")
        let again = try await b.listen(as: .user("u1"), lastEventID: stream.ready.id)
        #expect(try await again.next("stream:resync").json["reason"].string == "gap")
    }

    /// A follow on one replica applies to posts on the other from the next post on. Likes on both add up.
    @Test func followsAndLikes_areValidOnBoth() async throws {
        let stream = try await b.listen(as: .user("ann"))
        try await a.follow("bob", as: "ann")
        let id = try #require(try await a.post("bob", "first", "followers")["id"].string)
        #expect(try await stream.next("feed:new_post").json["text"] == "first")
        try await b.unfollow("bob", as: "ann")
        _ = try await a.post("bob", "second", "followers")
        try await a.follow("bob", as: "ann")
        _ = try await b.post("bob", "third")
        #expect(try await stream.next("feed:new_post").json["text"] == "third")
        for user in 0..<40 { try await a.follow("bob", as: "u\(user)") }
        let seed = randomSeed()
        try await PostsTests.toggle(id, times: effort(quick: 75, full: 300, long: 1000), seed: seed, through: [a, b])
        // Concurrent posts on both replicas: a request for newer posts returns all of them.
        let before = try #require(try await a.feed("ann")["newest"].int)
        try await concurrently(0..<20) { index in _ = try await (index % 2 == 0 ? a : b).post("bob", "n\(index)") }
        #expect(try await b.feed("ann", "?since=\(before)")["newCount"] == 20)
        try a.expectExactCounts()
    }
}
