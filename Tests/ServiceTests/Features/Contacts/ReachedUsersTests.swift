import BellhopClient
import Database
import TestSupport
import Testing
import Values

@testable import Service

/// The bound of other users whom one user reaches in a minute: by notifications, as members of conversations, and as a
/// follower.
@Suite(.timed) struct ReachedUsersTests {
    /// Ten other users a minute.
    private static let settings = ["rateLimitUser": "50"]

    private static func ask(_ service: TestService, _ user: String, as caller: String = "ann") async throws
        -> ServiceAnswer
    {
        try await service.call(
            "POST", "/v1/requests", as: .user(caller), ["kind": "friend", "toUserId": .string(user)])
    }

    /// Returns the requests that ann has left in this minute. Replicas share them together with the reached users.
    private static func remaining(of service: TestService) throws -> Int {
        let ann = Caller(
            tenant: "default", userId: "ann", role: "user", isService: false, scope: Scope(tenant: "default", keys: []))
        let now = service.clock.now
        return try #require(service.app.runner.reader.limiter.bucket(of: ann, at: now)).state(at: now).remaining
    }

    @Test func userWhoReachesTooMany_waitsForTheNextMinute() async throws {
        let service = try TestService.start(Self.settings, at: "2026-01-10T12:00:20Z")
        for number in 0..<8 { #expect(try await Self.ask(service, "u\(number)").status == 201) }
        #expect(try await service.client("ann").follow(id: "star", followerId: "me").status == 201)
        let trio: JSON = ["memberIds": ["x", "y"]]
        for (method, path, body) in [("POST", "/v1/conversations", trio), ("PUT", "/v1/users/z/followers/me", nil)] {
            let isLast = body == nil
            let answer = try await service.call(method, path, as: .user("ann"), body)
            #expect(answer.refusal == (isLast ? "201 without a code" : "429 contact_budget"))
            if !isLast { #expect(answer[header: "Retry-After"] == "40") }
        }
        let beyond = try await service.expectEvents([:]) { try await Self.ask(service, "u9") }
        #expect(beyond.refusal == "429 contact_budget")
        #expect(try await service.badges(of: "u9") == [0, 0, 0, 0])
        // What reaches nobody else goes on, and so do others.
        #expect(try await service.client("ann").getBadges().status == 200)
        #expect(try await Self.ask(service, "u9", as: "ben").status == 201)
        service.clock.advance(seconds: 40)
        #expect(try await Self.ask(service, "u9").status == 201)
        try service.expectExactCounts()
    }

    /// Attack: a user sends a request, withdraws it and sends it again. Harm: the phone of the other rings each time.
    @Test func withdrawnRequests_areCounted() async throws {
        let service = try TestService.start(Self.settings, at: "2026-01-10T12:00:00Z")
        for _ in 0..<10 {
            let request = try await Self.ask(service, "ben")
            let id = try #require(request.json["request"]["id"].string)
            #expect(try await service.client("ann").withdrawRequest(id: id).status == 200)
        }
        #expect(try await Self.ask(service, "ben").refusal == "429 contact_budget")
    }

    /// A conversation of any size can be created, once in a minute.
    @Test func firstContactOfAMinute_mayReachMore() async throws {
        let service = try TestService.start(Self.settings, at: "2026-01-10T12:00:00Z")
        let members = (0..<255).map { JSON.string("u\($0)") }
        let body: JSON = ["memberIds": .array(members)]
        let group = try await service.call("POST", "/v1/conversations", as: .user("ann"), body)
        #expect(group.status == 201)
        let again = try await service.call("POST", "/v1/conversations", as: .user("ann"), body)
        #expect(again.refusal == "429 contact_budget")
        // Messages have a budget of their own, and a conversation with oneself reaches nobody.
        let id = try #require(group.json["id"].string)
        let path = "/v1/conversations/\(id)/messages"
        #expect(try await service.call("POST", path, as: .user("ann"), ["text": "Hi"]).status == 201)
        #expect(try await service.call("POST", "/v1/conversations", as: .user("ann"), ["memberIds": []]).status == 201)
    }

    /// A limit of their requests does not bound whom they reach.
    @Test func backends_reachAnyNumber_alsoForAUser() async throws {
        let service = try TestService.start(
            Self.settings.merging(["rateLimitService": "50"]) { $1 }, at: "2026-01-10T12:00:00Z")
        for number in 0..<20 {
            let answer = try await service.call(
                "POST", "/v1/requests", as: .service(),
                ["kind": "friend", "fromUserId": "ann", "toUserId": .string("u\(number)")])
            #expect(answer.status == 201)
        }
        #expect(try await Self.ask(service, "last").status == 201)
    }

    /// An answer reaches the requester.
    @Test func answers_areCounted() async throws {
        let service = try TestService.start(Self.settings, at: "2026-01-10T12:00:00Z")
        var ids: [String] = []
        for number in 0..<11 {
            let answer = try await Self.ask(service, "ann", as: "u\(number)")
            ids.append(try #require(answer.json["request"]["id"].string))
        }
        var statuses: [Int] = []
        for id in ids {
            let answer = try await service.call(
                "PATCH", "/v1/requests/\(id)", as: .user("ann"), ["status": "accepted"])
            statuses.append(answer.status)
        }
        #expect(statuses == Array(repeating: 200, count: 10) + [429])
    }

    /// The replicas add up their counts once a second.
    @Test func bound_isSharedByReplicas() async throws {
        let (a, b) = try TestService.startReplicas(Self.settings)
        a.clock.set(Timestamp(rfc3339: "2030-01-10T12:00:00Z")!)
        for number in 0..<5 { #expect(try await Self.ask(a, "a\(number)").status == 201) }
        for number in 0..<2 { #expect(try await Self.ask(b, "b\(number)").status == 201) }
        try await eventually("the replica knows all requests", step: { a.clock.advance(seconds: 1) }) {
            try Self.remaining(of: b) == 43
        }
        #expect(try await Self.ask(b, "b8").status == 201)
        #expect(try await Self.ask(b, "b9").status == 201)
        #expect(try await Self.ask(b, "b10").status == 201)
        #expect(try await Self.ask(b, "b11").refusal == "429 contact_budget")
    }

    /// A restart is no second allowance. A caller is again counted in full once it has used a tenth of it.
    @Test func usersReachedBeforeARestart_count() async throws {
        let service = try TestService.start(Self.settings, at: "2030-01-10T12:00:00Z")
        func isStored(_ count: Int) throws -> Bool {
            try service.app.store.read {
                try $0.integer(
                    "SELECT coalesce(max(reached), 0) FROM \(RateSharing.counts, unscoped: .audit("a test"))") == count
            }
        }
        for number in 0..<7 { #expect(try await Self.ask(service, "u\(number)").status == 201) }
        service.clock.advance(seconds: 1)
        try await eventually("the counts are stored") { try isStored(7) }
        try await service.restart()
        for number in 7..<9 { #expect(try await Self.ask(service, "u\(number)").status == 201) }
        service.clock.advance(seconds: 1)
        try await eventually("the earlier requests count") { try Self.remaining(of: service) == 41 }
        #expect(try await Self.ask(service, "u9").status == 201)
        #expect(try await Self.ask(service, "u10").refusal == "429 contact_budget")
    }
}
