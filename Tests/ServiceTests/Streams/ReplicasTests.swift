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

    /// The shared content of a message's events is stored once. Streams of the other replica receive it whole, live
    /// and after a resume.
    @Test func messageToSeveral_isCompleteOnTheOtherReplica() async throws {
        let id = try await a.converse("ana", "ben", "cem")
        let onB = try await b.listen(as: .user("ben"))
        let path = "/v1/conversations/\(id)/messages"
        let sent = try await a.call("POST", path, as: .user("ana"), ["text": "a text for all"])
        let live = try await onB.next("message:created")
        #expect(live.json["message"] == sent.json["message"])
        #expect(live.json["unread"] == 1)
        let resumed = try await b.listen(as: .user("ben"), lastEventID: onB.ready.id)
        #expect(try await resumed.next("message:created").json == live.json)
    }

    /// A challenge that runs now: the replicas share a clock with the real time.
    private static let draft: Bellhop.ReplaceChallengeBody = {
        var draft = ChallengesTests.draft
        (draft.startsAt, draft.endsAt) = (moment("2020-01-01T00:00:00Z"), moment("2099-01-01T00:00:00Z"))
        return draft
    }()

    /// Updates of a board's top arrive in sequence, whichever replica publishes them.
    @Test func watchedTop_isExact_onAnyReplica() async throws {
        #expect(try await a.client(as: .service()).replaceChallenge(id: "c1", Self.draft).status == 201)
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
        #expect(top.lines.map(\.userId) == board.items.map(\.userId))
        #expect(top.lines.map { Int64($0.score) } == board.items.map(\.score))
    }

    /// Both replicas write concurrently. The streams of both receive the same events in the same order, without gaps.
    @Test func streamsOfBothReplicas_receiveTheSameEvents() async throws {
        let (onA, onB) = (try await a.listen(as: .user("u1")), try await b.listen(as: .user("u1")))
        let count = 40
        try await concurrently(0..<count) { index in
            let (service, user) = (index % 2 == 0 ? a : b, index % 5 == 0 ? "u2" : "u1")
            try await service.publish("e\(index)", to: user)
        }
        try await a.publish("last", to: "u1")
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
        let known = try await b.call("GET", "/v1/badges", as: .user("u1"))
        try await a.publish("afterwards", to: "u1")
        let tag = try #require(known.headers["etag"])
        let asked = try #require(try await b.client("u1").getBadges(ifNoneMatch: tag))
        #expect(asked.value.bell == (known.json["bell"].int ?? 0) + 1)
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
        func topics() async throws -> [String] { try await a.client("u1").getSubscriptions(id: id).value.topics }
        try await relay("queue:in-time", until: a.clock.now.adding(seconds: 2))
        #expect(try await topics().contains("queue:in-time"))
        let acknowledged = try await b.client("u1").replaceSubscriptions(id: id, .init(topics: ["queue:newer"]))
        #expect(acknowledged.status == 200)
        try await relay("queue:late", until: a.clock.now)
        // This request is after the late one in the log, so its answer comes after the late one was handled.
        #expect(try await topics().contains("queue:newer"))
        #expect(try await !topics().contains("queue:late"))
        #expect(
            try await b.call("GET", "/metrics", as: .admin).text
                .contains("bellhop_stream_failures_total{reason=\"late\"} 1"))
    }

    @Test func ticketOfOne_opensOneStream_onTheOther() async throws {
        let made = try await a.client("u1").createStreamTicket()
        let ticket = made.value.ticket
        let raw = try RawConnection(b.port)
        try raw.send("GET /v1/stream?ticket=\(ticket) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "\"serverTime\"").hasPrefix("HTTP/1.1 200"))
        for service in [a, b] {
            let again = try await service.call("GET", "/v1/stream?ticket=\(ticket)")
            #expect(again.status == 401)
        }
    }

    @Test func revocationOnOne_closesStreams_andRefusesTokens_onTheOther() async throws {
        let identity = TestService.Identity(subject: "u1", claims: ["jti": "token-1"])
        let token = b.token(for: identity)
        let stream = StreamListener(b.anyone.with(token: token).events())
        try await stream.next("stream:ready")
        let answer = try await a.call("POST", "/v1/revocations", as: .service(), ["tokenId": "token-1"])
        #expect(answer.status == 201)
        #expect(try await stream.next("stream:closing").json["reason"].string == "revoked")
        #expect(try await status(of: await b.anyone.with(token: token).getBadges()) == 401)
    }

    /// A network that silently drops everything between one replica and the database. That replica misses revocations
    /// of the others, so after a while it accepts no token.
    @Test func partitionedReplica_distrustsItsRevocations_andLogsIt() async throws {
        let partition = try PartitionProxy(to: PostgresServer.shared().port)
        defer { partition.stop() }
        let (a, b) = try TestService.startReplicas(
            ["databaseTimeoutSeconds": "5", "revocationsTrustedSeconds": "5"], secondThrough: partition)
        let identity = TestService.Identity(subject: "u1", claims: ["jti": "token-1"])
        let revoked = TestService.Identity.bearer(b.token(for: identity))
        let stream = try await b.listen(as: revoked)
        partition.cut()
        #expect(try await a.call("POST", "/v1/revocations", as: .service(), ["tokenId": "token-1"]).status == 201)
        #expect(try await stream.next("stream:closing").json["reason"].string == "unavailable")
        for path in ["/v1/me", "/v1/stream"] {
            let refused = try await b.call("GET", path, as: .user("u2"))
            #expect(refused.refusal == "503 revocations.unknown", "\(path)")
            #expect(refused[header: "Retry-After"] == "5", "\(path)")
        }
        let ready = try await b.call("GET", "/readyz")
        #expect(ready.refusal == "503 not_ready")
        #expect(ready.json["detail"].string?.contains("revocations of other replicas are unknown") == true)
        #expect(try await b.call("GET", "/metrics").text.contains("bellhop_revocations_trusted 0"))
        // The other replica is not affected.
        #expect(try await a.client("u2").getMe().status == 200)
        partition.heal()
        // The replica knows the revocation before it accepts tokens again.
        var answer = try await b.call("GET", "/v1/me", as: revoked)
        while answer.status == 503 { answer = try await b.call("GET", "/v1/me", as: revoked) }
        #expect(answer.refusal == "401 invalid_token.revoked")
        #expect(try await b.client("u2").getMe().status == 200)
        #expect(try await b.call("GET", "/metrics").text.contains("bellhop_revocations_trusted 1"))
    }

    /// Reads succeed, and no write does, because the server became read-only.
    @Test func replicaWithoutWrites_isNotReady_untilTheySucceed() async throws {
        let (a, _) = try TestService.startReplicas(["databaseTimeoutSeconds": "1"])
        let (server, name) = (try PostgresServer.shared(), try #require(a.database.name))
        func change(_ setting: String) throws {
            try server.run([
                "ALTER DATABASE \(name) \(setting)",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'",
            ])
        }
        func write(_ id: String) async throws -> Int {
            try await status(of: await a.publish(NotificationsTests.event(id, to: "u1")))
        }
        try change("SET default_transaction_read_only = on")
        try await eventually("a write fails") { try await write("w1") == 503 }
        try await eventuallyReady(a, false)
        #expect(try await a.call("GET", "/metrics").text.contains("bellhop_database_trouble{reason=\"failing\"} 1"))
        try change("RESET ALL")
        try await eventuallyReady(a, true)
        try await eventually("a write succeeds") { try await write("w2") == 201 }
    }

    /// An operator's transaction holds a row that each write needs. The connections work, and each write fails alone.
    @Test func replicaWhoseWritesWaitForALock_isNotReady_untilItIsReleased() async throws {
        let (a, _) = try TestService.startReplicas(["databaseTimeoutSeconds": "1"])
        let (server, name) = (try PostgresServer.shared(), try #require(a.database.name))
        let sessions = "FROM pg_stat_activity WHERE datname = '\(name)' AND query = 'SELECT pg_sleep(3600)'"
        Thread.detachNewThread {
            // It fails when it is ended below.
            _ = try? server.run(
                ["BEGIN", "SELECT 1 FROM event_counter FOR UPDATE", "SELECT pg_sleep(3600)"], in: name)
        }
        try await eventually("the row is held") { try server.run(["SELECT count(*) \(sessions)"]) == "1" }
        let refused = try await status(of: await a.publish(NotificationsTests.event("w1", to: "u1")))
        #expect(refused == 503)
        try await eventuallyReady(a, false)
        try server.run(["SELECT pg_terminate_backend(pid) \(sessions)"])
        try await eventuallyReady(a, true)
        #expect(try await status(of: await a.publish(NotificationsTests.event("w2", to: "u1"))) == 201)
    }

    /// Waits until a replica finds out by its own trials, one a second, whether writes succeed.
    private func eventuallyReady(_ replica: TestService, _ isReady: Bool) async throws {
        try await eventually(isReady ? "ready again" : "not ready") {
            replica.clock.advance(seconds: 1)
            let answer = try await replica.call("GET", "/readyz")
            if isReady { return answer.status == 200 }
            return answer.json["detail"].string?.contains("Writes are failing") == true
        }
    }

    /// No sticky sessions: any replica answers a request about a stream.
    @Test func requestsAboutAStream_areAnsweredByAnyReplica() async throws {
        let shop: JSON = ["name": "The Cut Club", "timeZone": "Europe/Berlin"]
        #expect(try await a.call("PUT", "/v1/shops/s1", as: .service(), shop).status == 201)
        let identity = TestService.Identity.user("u1")
        let stream = try await a.listen(as: identity)
        let id = try #require(stream.ready.json["streamId"].string)
        let path = "/v1/streams/\(id)/subscriptions"
        let topics: JSON = ["topics": ["queue:s1"]]
        let replaced = try await b.call("PUT", path, as: identity, topics)
        #expect(replaced.status == 200, "\(replaced.json)")
        #expect(try await stream.next("queue:update").json["shopId"].string == "s1")
        let shown = try await b.client(as: identity).getSubscriptions(id: id)
        #expect(shown.value.topics == ["personal", "queue:s1"])
        let renewed: JSON = ["token": .string(a.token(for: identity, lifetimeSeconds: 7200))]
        #expect(try await b.call("PUT", "/v1/streams/\(id)/token", as: identity, renewed).status == 200)
        // The stream of another user is not found on any replica, and neither is a closed one.
        #expect(try await status(of: await b.client("u2").getSubscriptions(id: id)) == 404)
        #expect(try await status(of: await b.client(as: identity).getSubscriptions(id: "abc-0-0-0")) == 404)
    }

    @Test func idempotencyKey_sentToBothAtOnce_isDoneOnce() async throws {
        for round in 0..<5 {
            let answers = try await concurrently(0..<8) { index in
                try await (index % 2 == 0 ? a : b).client(as: .service()).postNotification(
                    NotificationsTests.draft(), idempotencyKey: "key-\(round)")
            }
            #expect(Set(answers.map(\.status)) == [201])
            #expect(Set(try answers.map { try $0.notificationID }).count == 1)
        }
        #expect(try await b.client("u1").getBadges().value.bell == 5)
    }

    /// One board, written and read on both replicas concurrently: each answer includes all earlier commits of both.
    /// At the end, both boards in memory equal a recount.
    @Test func leaderboards_areTheSame_onBoth() async throws {
        for id in ["c1", "c2"] {
            #expect(try await a.client(as: .service()).replaceChallenge(id: id, Self.draft).status == 201)
        }
        for service in [a, b] { try await service.board() }
        let seed = randomSeed()
        try await ChallengesTests.play(on: [a, b], seed: seed, steps: effort(quick: 160, full: 800, long: 4000))
        // A score written on one replica is read on the other.
        for index in 0..<20 {
            let (writer, reader) = index % 2 == 0 ? (a, b) : (b, a)
            let answer = try await writer.score("u\(index)", 1000 + index).value
            let own = try await reader.board(as: "u\(index)").me
            #expect(own?.rank == answer.rank)
            #expect(own?.score == answer.score)
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
        #expect(try await a.client(as: .service()).replaceChallenge(id: "c1", Self.draft).status == 201)
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
        #expect(try await a.call("POST", "/v1/publish", as: .service(), event).status == 202)
        #expect(try await onB.next("order:changed").json == ["orderId": "o1"])
    }

    /// No barber is double-booked, whichever replica receives the request.
    @Test func bookings_neverOverlap_onAnyReplica() async throws {
        let backend = a.client(as: .service())
        #expect(
            try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "Europe/Berlin")).status
                == 201)
        #expect(try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true)).status == 201)
        let statuses = try await concurrently(0..<60) { index -> Int in
            let start = "2030-01-10T\(10 + index % 4):\(index % 3)0:00Z"
            let client = (index % 2 == 0 ? a : b).client("u\(index)")
            return try await status(of: await client.createBooking(BookingsTests.draft(start, minutes: 60)))
        }
        #expect(statuses.count { $0 == 201 || $0 == 409 } == 60, "\(statuses)")
        #expect((2...4).contains(statuses.count { $0 == 201 }), "\(statuses)")
        try a.expectExactCounts()
    }

    /// R-CNT-G4 for a client that spreads its requests over replicas: the replicas add up their counts once a second.
    @Test func rateLimit_isSharedByReplicas() async throws {
        let (a, b) = try TestService.startReplicas(["rateLimitUser": "20"])
        a.clock.set(Timestamp(rfc3339: "2030-01-10T12:00:00Z")!)
        let (onA, onB) = (a.client("u1"), b.client("u1"))
        for _ in 0..<12 { #expect(try await onA.getBadges().status == 200) }
        for _ in 0..<4 { #expect(try await onB.getBadges().status == 200) }
        // The replicas' clocks stand still; each step lets them share their counts once.
        var remaining = Int.max
        while remaining > 5 {
            a.clock.advance(seconds: 1)
            // A refusal has the header too.
            let header = try await b.call("GET", "/v1/badges", as: .user("u1")).headers["ratelimit"] ?? ""
            remaining =
                header.split(separator: ";").first { $0.hasPrefix("r=") }.flatMap { Int($0.dropFirst(2)) } ?? .max
        }
        var statuses: [Int] = []
        for _ in 0..<6 { statuses.append(try await status(of: await onB.getBadges())) }
        #expect(statuses.contains(429))
    }

    /// A failover to a server that lacks the last commits. Their sequence numbers will be reused, so streams start
    /// again in a new epoch.
    ///
    /// - Parameter written: the number of events written immediately, which reuse numbers before any replica has
    ///   polled.
    @Test(arguments: [0, 6]) func logThatLostDeliveredEvents_getsANewEpoch_onAllReplicas(written: Int) async throws {
        let (onA, onB) = (try await a.listen(as: .user("u1")), try await b.listen(as: .user("u1")))
        for index in 0..<3 { try await a.publish("e\(index)", to: "u1") }
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
        for index in 0..<written { try await a.publish("again\(index)", to: "u2") }
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
        try await a.publish("afterwards", to: "u1")
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
                let event = NotificationsTests.event("w\(index)", to: "u2")
                _ = try await status(of: await a.publish(event))
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
        try await a.publish("e1", to: "u2")
        #expect(try await stream.next("stream:closing").json["reason"].string == "unavailable")
        let again = try await b.listen(as: .user("u1"), lastEventID: stream.ready.id)
        #expect(try await again.next("stream:resync").json["reason"].string == "gap")
    }

    /// A follow on one replica applies to posts on the other from the next post on. Likes on both add up.
    @Test func followsAndLikes_areValidOnBoth() async throws {
        let stream = try await b.listen(as: .user("ann"))
        try await a.follow("bob", as: "ann")
        let id = try await a.post("bob", "first", .followers).id
        #expect(try await stream.next("feed:new_post").json["text"] == "first")
        try await b.unfollow("bob", as: "ann")
        try await a.post("bob", "second", .followers)
        try await a.follow("bob", as: "ann")
        try await b.post("bob", "third")
        #expect(try await stream.next("feed:new_post").json["text"] == "third")
        for user in 0..<40 { try await a.follow("bob", as: "u\(user)") }
        let seed = randomSeed()
        try await PostsTests.toggle(id, times: effort(quick: 75, full: 300, long: 1000), seed: seed, through: [a, b])
        // Concurrent posts on both replicas: a request for newer posts returns all of them.
        let before = try await a.client("ann").getFeed().value.newest
        try await concurrently(0..<20) { index in try await (index % 2 == 0 ? a : b).post("bob", "n\(index)") }
        #expect(try await b.client("ann").getFeed(since: before).value.newCount == 20)
        try a.expectExactCounts()
    }
}
