import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// Names that look alike and are equal as Swift's `String`, but differ in bytes. Two tenants with such names share
/// nothing, over real sockets and on either store, and neither do two users.
@Suite(.timed) struct TwinsTests {
    struct Pair: CustomTestStringConvertible {
        let left: String
        let right: String
        var testDescription: String { "\(left) \(Array(right.utf8))" }
    }

    static let pairs = [
        Pair(left: "M\u{FC}ller", right: "Mu\u{308}ller"), Pair(left: "Klinik", right: "\u{212A}linik"),
        Pair(left: "\u{C5}bo", right: "\u{212B}bo"), Pair(left: "\u{3A9}", right: "\u{2126}"),
        Pair(left: "a;b", right: "a\u{37E}b"),
    ]

    /// One of the two tenants, and the data sent to its users.
    private struct Side {
        static let people = ["ann", "ben"]

        let name: String
        let mark: String
        var conversation = ""
        var streams: [String: StreamListener] = [:]
        var starts: [String: String] = [:]
        /// The paths of the created resources.
        var paths: [String] = []

        func user(_ name: String) -> TestService.Identity { .user(name, tenant: self.name) }
        var backend: TestService.Identity { .service(tenant: name) }
    }

    private let probe: FeedProbe
    private var service: TestService { probe.service }

    init() throws {
        probe = FeedProbe(try TestService.start(FeedProbe.settings(), at: "2026-01-10T08:00:00Z"))
    }

    // MARK: Tenants

    @Test(arguments: pairs) func tenantsWithSimilarNames_shareNothing(_ pair: Pair) async throws {
        #expect(pair.left == pair.right, "Swift must consider the two names equal")
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var sides = [
            try await open(Side(name: pair.left, mark: "mark-of-left")),
            try await open(Side(name: pair.right, mark: "mark-of-right")),
        ]
        for step in 0..<effort(quick: 20, full: 40, long: 200) {
            let index = Int.random(in: 0...1, using: &random)
            // Each kind of operation occurs at least twice, for any seed.
            let kind = step < 20 ? step % 10 : Int.random(in: 0..<10, using: &random)
            try await act(kind, step, in: &sides[index])
        }
        for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            try await expectNothing(of: other, inStreamsOf: side, "seed \(seed)")
            try await expectNothing(of: other, inAnswersTo: side, "seed \(seed)")
        }
        // Each tenant asks about events that the streams of the other have received by now.
        try await expectNothing(of: sides[1], isExplainedTo: sides[0], "seed \(seed)")
        try await expectNothing(of: sides[0], isExplainedTo: sides[1], "seed \(seed)")
        try service.expectExactCounts()
    }

    /// Creates a shop, a challenge and a conversation with the same ids as the other tenant's, and opens streams with
    /// all topics for each user.
    private func open(_ side: Side) async throws -> Side {
        var side = side
        let backend = service.client(as: side.backend)
        let setting: [(String, JSON)] = [
            ("/v1/shops/s1", ["name": .string(side.mark), "timeZone": "UTC"]),
            ("/v1/shops/s1/barbers/b1", ["name": .string(side.mark), "onDuty": true]),
            ("/v1/shops/s1/dj", ["isActive": true]), ("/v1/challenges/c1", ChallengesTests.draft),
        ]
        for (path, body) in setting {
            let answer = try await backend.put(path, body)
            #expect(answer.isSuccess, "\(path): \(answer.problem)")
        }
        for person in Side.people {
            let stream = try await service.listen(
                as: side.user(person), topics: ["queue:s1", "dj:s1", "leaderboard:c1"])
            try await stream.subscribe([["table": "members"]])
            (side.streams[person], side.starts[person]) = (stream, stream.ready.id)
        }
        let made = try await service.client(as: side.user("ann")).post(
            "/v1/conversations", ["memberIds": ["ben"], "title": .string(side.mark)])
        #expect(made.status == 201, "\(made.problem)")
        side.conversation = try #require(made.json["id"].string)
        side.paths.append("/v1/conversations/\(side.conversation)")
        return side
    }

    private func act(_ kind: Int, _ step: Int, in side: inout Side) async throws {
        let (ann, mark) = (service.client(as: side.user("ann")), JSON.string("\(side.mark) \(step)"))
        let backend = service.client(as: side.backend)
        let key = ["Idempotency-Key": "k\(step)"]
        let made: ServiceAnswer
        switch kind {
        case 0, 1:
            made = try await backend.post("/v1/notifications", Self.notification(mark))
            side.paths.append("/v1/notifications/\(try made.notificationID)")
        case 2:
            let start = "2026-01-\(11 + step % 18)T\(10 + step / 18):00:00Z"
            var draft = BookingsTests.draft(start).object ?? [:]
            draft["service"] = mark
            made = try await ann.post("/v1/bookings", .object(draft))
            side.paths.append("/v1/bookings/\(made.json["id"].string ?? "")")
        case 3, 4:
            made = try await ann.post("/v1/conversations/\(side.conversation)/messages", ["text": mark], headers: key)
        case 5:
            made = try await ann.post("/v1/posts", ["text": mark, "visibility": "public"], headers: key)
            side.paths.append("/v1/posts/\(made.json["id"].string ?? "")")
        case 6:
            _ = try await ann.put("/v1/shops/s1/presence/me")
            made = try await ann.post(
                "/v1/shops/s1/dj/tracks",
                [
                    "trackId": .string("t\(step)"), "trackName": mark, "artistName": mark,
                    "albumArt": "https://c.example/a",
                ])
        case 7:
            made = try await backend.post(
                "/v1/challenges/c1/scores", ["userId": .string("u\(step)"), "score": 5, "displayName": mark],
                headers: key)
        case 8:
            made = try await service.client(as: side.user("ben")).post(
                "/v1/requests", ["kind": "friend", "toUserId": .string("ann\(step)"), "fromName": mark])
            side.paths.append("/v1/requests/\(made.json["request"]["id"].string ?? "")")
        default:
            made = try await probe.send(
                School.insert(
                    "members",
                    ["id": .string("m\(step)"), "tenant": .string(side.name), "user_id": "ann", "team_id": mark]),
                as: side.backend)
        }
        // A guest may queue at most five tracks.
        #expect(made.isSuccess || made.refusal == "409 dj.too_many_tracks", "\(kind): \(made.problem)")
    }

    private static func notification(_ text: JSON, to user: String = "ann") -> JSON {
        ["userId": .string(user), "category": "visit", "priority": "NORMAL", "title": text, "message": text]
    }

    /// Checks the open streams, and streams that resume from their start.
    private func expectNothing(of other: Side, inStreamsOf side: Side, _ comment: Comment) async throws {
        for person in Side.people {
            let resumed = try await service.listen(as: side.user(person), lastEventID: side.starts[person])
            let end = "the end for \(person) of \(side.mark) \(UUID().uuidString)"
            let sent = try await service.client(as: side.backend).post(
                "/v1/notifications", Self.notification(.string(end), to: person))
            #expect(sent.status == 201)
            for stream in [try #require(side.streams[person]), resumed] {
                while try await stream.next("notification:created").json["title"].string != end {}
                #expect(stream.received.contains { $0.data.contains(side.mark) }, comment)
                for event in stream.received {
                    #expect(!event.data.contains(other.mark), "\(comment): \(person) gets \(event)")
                }
            }
        }
        let scope = try #require(side.streams["ann"]).received.last { $0.name == "stream:scope" }
        #expect(scope == nil || scope?.data.contains(side.mark) == true, comment)
    }

    private func expectNothing(of other: Side, inAnswersTo side: Side, _ comment: Comment) async throws {
        let lists = [
            "/v1/me", "/v1/badges?include=conversations", "/v1/notifications?state=all&limit=100", "/v1/bookings",
            "/v1/conversations", "/v1/conversations/\(side.conversation)/messages", "/v1/requests", "/v1/posts",
            "/v1/feed", "/v1/shops", "/v1/shops/s1", "/v1/shops/s1/barbers", "/v1/shops/s1/queue",
            "/v1/shops/s1/queue/entries",
            "/v1/shops/s1/dj", "/v1/challenges", "/v1/challenges/c1", "/v1/challenges/c1/leaderboard", "/v1/users/ann",
        ]
        for identity in [side.user("ann"), side.user("ben"), side.backend] {
            let client = service.client(as: identity)
            for path in lists {
                let answer = try await client.get(path)
                #expect(
                    !answer.text.contains(other.mark), "\(comment): \(path) shows \(identity.subject) \(answer.text)")
                #expect(!answer.text.utf8.contains(sequence: other.name.utf8), "\(comment): \(path)")
            }
            for path in other.paths {
                #expect(try await client.get(path).status == 404, "\(comment): \(path)")
            }
            #expect(try await client.get("/v1/me").text.utf8.contains(sequence: side.name.utf8))
        }
        let ann = service.client(as: side.user("ann"))
        let unseen = try await ann.get("/v1/notifications?state=unseen&limit=100").items
        let counts = try await ann.get("/v1/badges").json
        #expect(counts["bell"].int == unseen.count, "\(comment): \(counts)")
    }

    private func expectNothing(of other: Side, isExplainedTo side: Side, _ comment: Comment) async throws {
        let event = try #require(other.streams["ann"]?.received.last { $0.name == "notification:created" })
        let claims: JSON = ["sub": "ann", "tenant": .string(side.name)]
        let asked: JSON = ["eventId": .string(event.id), "claims": claims]
        let answer = try await service.client(as: side.backend).post("/v1/explain", asked)
        #expect(answer.status == 404, "\(comment): \(answer.text)")
        // A backend of all tenants may ask, and learns that the event was not delivered.
        let all = try await service.client(as: .service()).post("/v1/explain", asked)
        #expect(all.json["delivered"].bool == false, "\(comment): \(all.text)")
        let foreign: JSON = ["eventId": .string(event.id), "claims": ["sub": "ann", "tenant": .string(other.name)]]
        #expect(try await service.client(as: side.backend).post("/v1/explain", foreign).status == 422, comment)
    }

    @Test(arguments: pairs) func rowsAndMemberships_areOfTheTenantThatTheyName(_ pair: Pair) async throws {
        func member(_ id: String, _ tenant: String) -> JSON {
            School.insert(
                "members", ["id": .string(id), "tenant": .string(tenant), "user_id": "ann", "team_id": "t1"])
        }
        let right = try await service.listen(as: .user("ann", tenant: pair.right))
        // A backend may send only rows of its own tenant.
        let foreign = try await probe.send(member("m1", pair.left), as: .service(tenant: pair.right))
        #expect(foreign.counts == [202, 0, 0, 1])
        let left = try await service.listen(as: .user("ann", tenant: pair.left))
        #expect(
            try await probe.send(member("m1", pair.left), as: .service(tenant: pair.left)).counts == [202, 1, 0, 0])
        try await left.nextScope(with: "team:t1:member")
        let scope = try await service.client(as: .user("ann", tenant: pair.right)).get("/v1/me").json["scope"]
        #expect(scope.array?.contains("team:t1:member") == false)
        #expect(
            try await probe.send(member("m2", pair.right), as: .service(tenant: pair.right)).counts == [202, 1, 0, 0])
        try await right.nextScope(with: "team:t1:member")
        // Searches for the quoted text, because an id may contain the two letters by chance.
        #expect(!right.received.contains { $0.data.contains(#""m1""#) })
    }

    @Test(arguments: pairs) func limitsAndRevocations_areOfOneTenant(_ pair: Pair) async throws {
        let service = try TestService.start(
            ["rateLimitUser": "4", "streamsPerUserMax": "1"], at: "2026-01-10T12:00:00Z")
        let stream = try await service.listen(as: .user("ann", tenant: pair.right))
        let left = try await service.listen(as: .user("ann", tenant: pair.left))
        #expect(left.ready.name == "stream:ready")
        for _ in 0..<5 { _ = try await service.client(as: .user("ann", tenant: pair.left)).get("/v1/badges") }
        #expect(try await service.client(as: .user("ann", tenant: pair.left)).get("/v1/badges").status == 429)
        let ann = service.client(as: .user("ann", tenant: pair.right))
        #expect(try await ann.get("/v1/badges").status == 200)
        let revoked = try await service.client(as: .service(tenant: pair.left)).post(
            "/v1/revocations", ["userId": "ann", "issuedBefore": "2026-01-10T12:00:01Z"])
        #expect(revoked.status == 201)
        _ = try await left.next("stream:closing")
        #expect(try await ann.get("/v1/badges").status == 200)
        #expect(!stream.received.contains { $0.name == "stream:closing" })
    }

    // MARK: Users and tokens

    /// Within one tenant, users are distinguished by the bytes of their ids: memberships and revocations of one do
    /// not apply to the other.
    @Test(arguments: pairs) func usersWithSimilarNames_areDistinct(_ pair: Pair) async throws {
        let right = try await service.listen(as: .user(pair.right))
        try await right.subscribe([["table": "members"]])
        let left = try await service.listen(as: .user(pair.left))
        let row = School.insert(
            "members", ["id": "m1", "tenant": "default", "user_id": .string(pair.left), "team_id": "t1"])
        #expect(try await probe.send(row).counts == [202, 1, 0, 0])
        try await left.nextScope(with: "team:t1:member")
        let scope = try await service.client(as: .user(pair.right)).get("/v1/me").json["scope"]
        #expect(scope.array?.contains("team:t1:member") == false)
        let revoked = try await service.client(as: .service()).post(
            "/v1/revocations", ["userId": .string(pair.left), "issuedBefore": "2026-01-10T08:30:00Z"])
        #expect(revoked.status == 201)
        _ = try await left.next("stream:closing")
        #expect(try await service.client(as: .user(pair.left)).get("/v1/badges").status == 401)
        #expect(try await service.client(as: .user(pair.right)).get("/v1/badges").status == 200)
        _ = try await service.client(as: .service()).post(
            "/v1/notifications", Self.notification("the end", to: pair.right))
        try await right.next("notification:created")
        #expect(
            right.received.map(\.name).filter { ["table:change", "stream:scope", "stream:closing"].contains($0) } == [])
    }

    @Test(arguments: pairs) func audienceAndIssuer_areBytes(_ pair: Pair) async throws {
        let service = try TestService.start(["jwtAudience": pair.left, "jwtIssuer": pair.left])
        func status(_ audience: JSON, _ issuer: String) async throws -> Int {
            let identity = TestService.Identity(subject: "ann", claims: ["aud": audience, "iss": .string(issuer)])
            return try await service.client(as: identity).get("/v1/badges").status
        }
        #expect(try await status(.string(pair.left), pair.left) == 200)
        #expect(try await status([.string("x"), .string(pair.left)], pair.left) == 200)
        #expect(try await status(.string(pair.right), pair.left) == 401)
        #expect(try await status([.string(pair.right)], pair.left) == 401)
        #expect(try await status(.string(pair.left), pair.right) == 401)
    }
}

extension Collection<UInt8> {
    /// Returns whether the collection contains the bytes as a contiguous sequence.
    fileprivate func contains(sequence bytes: some Collection<UInt8>) -> Bool {
        let (all, wanted) = (Array(self), Array(bytes))
        guard all.count >= wanted.count else { return false }
        return (0...(all.count - wanted.count)).contains { all[$0..<$0 + wanted.count].elementsEqual(wanted) }
    }
}
