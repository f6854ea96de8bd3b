import BellhopClient
import Foundation
import TestSupport
import Testing

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
        try await backend.replaceShop(id: "s1", .init(name: side.mark, timeZone: "UTC"))
        try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true, name: side.mark))
        try await backend.replaceDJSession(id: "s1", .init(isActive: true))
        try await backend.replaceChallenge(id: "c1", ChallengesTests.draft)
        for person in Side.people {
            let stream = try await service.listen(
                as: side.user(person), topics: ["queue:s1", "dj:s1", "leaderboard:c1"])
            try await stream.subscribe([["table": "members"]])
            (side.streams[person], side.starts[person]) = (stream, stream.ready.id)
        }
        let ann = service.client(as: side.user("ann"))
        side.conversation = try await ann.createConversation(.init(memberIds: ["ben"], title: side.mark)).value.id
        side.paths.append("/v1/conversations/\(side.conversation)")
        return side
    }

    private func act(_ kind: Int, _ step: Int, in side: inout Side) async throws {
        let (ann, mark, key) = (service.client(as: side.user("ann")), "\(side.mark) \(step)", "k\(step)")
        let backend = service.client(as: side.backend)
        switch kind {
        case 0, 1:
            let made = try await backend.postNotification(Self.notification(mark))
            side.paths.append("/v1/notifications/\(try made.notificationID)")
        case 2:
            var draft = BookingsTests.draft("2026-01-\(11 + step % 18)T\(10 + step / 18):00:00Z")
            draft.service = mark
            side.paths.append("/v1/bookings/\(try await ann.createBooking(draft).value.id)")
        case 3, 4: try await ann.sendMessage(id: side.conversation, .init(text: mark), idempotencyKey: key)
        case 5:
            let made = try await ann.createPost(.init(visibility: .public, text: mark), idempotencyKey: key)
            side.paths.append("/v1/posts/\(made.value.id)")
        case 6:
            try await ann.showPresence(id: "s1")
            let track = Bellhop.AddTrackBody(trackId: "t\(step)", trackName: mark, artistName: mark)
            // A guest may queue at most five tracks.
            #expect([200, 201, 409].contains(try await status(of: await ann.addTrack(id: "s1", track))))
        case 7:
            try await backend.addScore(
                id: "c1", .init(userId: "u\(step)", score: 5, displayName: mark), idempotencyKey: key)
        case 8:
            let made = try await service.client(as: side.user("ben")).createRequest(
                .init(kind: .friend, toUserId: "ann\(step)", fromName: mark))
            side.paths.append("/v1/requests/\(made.value.request.id)")
        default:
            let made = try await probe.send(
                School.insert(
                    "members",
                    [
                        "id": .string("m\(step)"), "tenant": .string(side.name), "user_id": "ann",
                        "team_id": .string(mark),
                    ]),
                as: side.backend)
            #expect(made.isSuccess, "\(made.problem)")
        }
    }

    private static func notification(_ text: String, to user: String = "ann") -> Bellhop.NotificationDraft {
        .init(userId: user, category: "visit", priority: .normal, title: text, message: text)
    }

    /// Checks the open streams, and streams that resume from their start.
    private func expectNothing(of other: Side, inStreamsOf side: Side, _ comment: Comment) async throws {
        for person in Side.people {
            let resumed = try await service.listen(as: side.user(person), lastEventID: side.starts[person])
            let end = "the end for \(person) of \(side.mark) \(UUID().uuidString)"
            try await service.client(as: side.backend).postNotification(Self.notification(end, to: person))
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
            for path in lists {
                let answer = try await service.call("GET", path, as: identity)
                #expect(
                    !answer.text.contains(other.mark), "\(comment): \(path) shows \(identity.subject) \(answer.text)")
                #expect(!answer.text.utf8.contains(sequence: other.name.utf8), "\(comment): \(path)")
            }
            for path in other.paths {
                #expect(try await service.call("GET", path, as: identity).status == 404, "\(comment): \(path)")
            }
            #expect(try await service.call("GET", "/v1/me", as: identity).text.utf8.contains(sequence: side.name.utf8))
        }
        let ann = service.client(as: side.user("ann"))
        let unseen = try await ann.listNotifications(state: .unseen, limit: 100).value.items
        #expect(try await ann.getBadges().value.bell == unseen.count, comment)
    }

    private func expectNothing(of other: Side, isExplainedTo side: Side, _ comment: Comment) async throws {
        let event = try #require(other.streams["ann"]?.received.last { $0.name == "notification:created" })
        let claims: JSON = ["sub": "ann", "app_metadata": ["tenant": .string(side.name)]]
        let asked: JSON = ["eventId": .string(event.id), "claims": claims]
        let answer = try await service.call("POST", "/v1/explain", as: side.backend, asked)
        #expect(answer.status == 404, "\(comment): \(answer.text)")
        // A backend of all tenants may ask, and learns that the event was not delivered.
        let all = try await service.call("POST", "/v1/explain", as: .service(), asked)
        #expect(all.json["delivered"].bool == false, "\(comment): \(all.text)")
        let others: JSON = ["sub": "ann", "app_metadata": ["tenant": .string(other.name)]]
        let foreign: JSON = ["eventId": .string(event.id), "claims": others]
        #expect(try await service.call("POST", "/v1/explain", as: side.backend, foreign).status == 422, comment)
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
        let scope = try await service.client(as: .user("ann", tenant: pair.right)).getMe().value.scope
        #expect(!scope.contains("team:t1:member"))
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
        for _ in 0..<5 {
            _ = try await status(of: await service.client(as: .user("ann", tenant: pair.left)).getBadges())
        }
        #expect(try await status(of: await service.client(as: .user("ann", tenant: pair.left)).getBadges()) == 429)
        let ann = service.client(as: .user("ann", tenant: pair.right))
        #expect(try await ann.getBadges().status == 200)
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: .service(tenant: pair.left),
            ["userId": "ann", "issuedBefore": "2026-01-10T12:00:01Z"])
        #expect(revoked.status == 201)
        _ = try await left.next("stream:closing")
        #expect(try await ann.getBadges().status == 200)
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
        let scope = try await service.client(as: .user(pair.right)).getMe().value.scope
        #expect(!scope.contains("team:t1:member"))
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: .service(),
            ["userId": .string(pair.left), "issuedBefore": "2026-01-10T08:30:00Z"])
        #expect(revoked.status == 201)
        _ = try await left.next("stream:closing")
        #expect(try await status(of: await service.client(as: .user(pair.left)).getBadges()) == 401)
        #expect(try await service.client(as: .user(pair.right)).getBadges().status == 200)
        try await service.notify(Self.notification("the end", to: pair.right))
        try await right.next("notification:created")
        #expect(
            right.received.map(\.name).filter { ["table:change", "stream:scope", "stream:closing"].contains($0) } == [])
    }

    @Test(arguments: pairs) func audienceAndIssuer_areBytes(_ pair: Pair) async throws {
        let service = try TestService.start(["jwtAudience": pair.left, "jwtIssuer": pair.left])
        func answer(_ audience: JSON, _ issuer: String) async throws -> Int {
            let identity = TestService.Identity(subject: "ann", claims: ["aud": audience, "iss": .string(issuer)])
            return try await status(of: await service.client(as: identity).getBadges())
        }
        #expect(try await answer(.string(pair.left), pair.left) == 200)
        #expect(try await answer([.string("x"), .string(pair.left)], pair.left) == 200)
        #expect(try await answer(.string(pair.right), pair.left) == 401)
        #expect(try await answer([.string(pair.right)], pair.left) == 401)
        #expect(try await answer(.string(pair.left), pair.right) == 401)
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
