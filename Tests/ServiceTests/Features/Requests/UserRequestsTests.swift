import BellhopClient
import Domain
import TestSupport
import Testing

@testable import Service

/// Requests between users over real HTTP (R-CNT-COUNTS-1, R-16): the recipient's badge, and the events of both
/// sides.
@Suite(.timed) struct UserRequestsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    private static func body(
        _ kind: Bellhop.RequestKind = .friend, to user: String = "ben", about: String? = nil
    ) -> Bellhop.CreateRequestBody {
        .init(kind: kind, toUserId: user, fromName: "Ana", aboutId: about)
    }

    @Test func request_lightsTheBadge_untilItIsAnswered_andTheAnswerLightsTheOthers() async throws {
        let (ana, ben) = (try await service.listen(as: .user("ana")), try await service.listen(as: .user("ben")))
        let made = try await service.call("POST", "/v1/requests", as: .user("ana"), model: Self.body())
        #expect(made.status == 201)
        let request = made.json["request"]
        let id = try #require(request["id"].string)
        #expect(request["status"] == "open")
        #expect(try await ben.next("request:created").json == request)
        #expect(try await ana.next("request:created").json == request)
        let delivered = try await ben.next("notification:created").json
        expect(delivered, has: ["category": "request", "message": "Ana wants to be your friend"])
        #expect(try await ben.next("badges:update").json["requests"] == 1)
        #expect(try await service.badges(of: "ben") == [0, 1, 0, 1])
        #expect(try await service.badges(of: "ana") == [0, 0, 0, 0])

        let path = "/v1/requests/\(id)"
        let accepted = try await service.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#)
        #expect(accepted.status == 200)
        #expect(accepted.json["request"]["status"] == "accepted")
        #expect(accepted.json["badges"]["requests"] == 0)
        #expect(try await ben.next("notification:updated").json["state"]["read"] == true)
        #expect(try await ana.next("request:updated").json == accepted.json["request"])
        #expect(try await ana.next("notification:created").json["title"] == "Friend Request Accepted")
        #expect(try await service.badges(of: "ana") == [0, 0, 1, 1])
        // Repeating the same answer succeeds and publishes nothing; a different answer is refused.
        let again = try await service.call("PATCH", path, as: .user("ben"), ["status": "accepted"])
        #expect(again.json == accepted.json)
        let changed = try await problem(of: await service.client("ben").answerRequest(id: id, .init(status: .declined)))
        #expect(changed.refusal == "409 request.answered")
        #expect(try await status(of: await service.client("ana").withdrawRequest(id: id)) == 409)
        try service.expectExactCounts()
    }

    @Test func declinedRequest_isPublishedToo_andCanBeAskedAgain() async throws {
        let id = try await service.ask(Self.body(), as: "ana")
        #expect(try await service.client("ben").answerRequest(id: id, .init(status: .declined)).status == 200)
        #expect(try await service.badges(of: "ana") == [0, 0, 1, 1])
        let again = try await service.client("ana").createRequest(Self.body())
        #expect(again.status == 201)
        #expect(try await service.badges(of: "ben") == [0, 1, 0, 1])
        try service.expectExactCounts()
    }

    @Test func sameRequest_isAskedOnce_whileItIsOpen() async throws {
        let first = try await service.client("ana").createRequest(Self.body())
        let again = try await service.client("ana").createRequest(Self.body())
        #expect(again.status == 200)
        #expect(again.value.request == first.value.request)
        #expect(try await service.badges(of: "ben") == [0, 1, 0, 1])
        for body in [Self.body(.follow), Self.body(.group, about: "g1"), Self.body(.group, about: "g2")] {
            #expect(try await service.client("ana").createRequest(body).status == 201)
        }
        #expect(try await service.badges(of: "ben") == [0, 4, 0, 4])
    }

    @Test func withdrawnRequest_takesItsNotificationAlong() async throws {
        let id = try await service.ask(Self.body(), as: "ana")
        let ben = try await service.listen(as: .user("ben"))
        #expect(try await status(of: await service.client("ben").withdrawRequest(id: id)) == 403)
        #expect(try await service.client("ana").withdrawRequest(id: id).status == 200)
        #expect(try await ben.next("request:removed").json["id"] == .string(id))
        _ = try await ben.next("notification:removed")
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.client("ben").listNotifications().value.items.isEmpty)
        #expect(try await status(of: await service.client("ana").withdrawRequest(id: id)) == 404)
        try service.expectExactCounts()
    }

    @Test func request_isInvisibleToOthers_andNotAnsweredByItsSender() async throws {
        let id = try await service.ask(Self.body(), as: "ana")
        for outsider in [TestService.Identity.user("eve"), .user("ben", tenant: "other"), .service(tenant: "other")] {
            let outsider = service.client(as: outsider)
            #expect(try await status(of: await outsider.getRequest(id: id)) == 404)
            #expect(try await status(of: await outsider.answerRequest(id: id, .init(status: .accepted))) == 404)
            #expect(try await status(of: await outsider.withdrawRequest(id: id)) == 404)
            #expect(try await outsider.listRequests().value.items.isEmpty)
        }
        let own = service.client("ana")
        #expect(
            try await refusal(of: await own.answerRequest(id: id, .init(status: .accepted)))
                == "403 request.not_yours")
    }

    @Test func requestLists_areIncomingOrOutgoing() async throws {
        let first = try await service.ask(Self.body(), as: "ana")
        let second = try await service.ask(Self.body(.follow), as: "cem")
        try await service.client("ben").answerRequest(id: first, .init(status: .declined))
        let (ana, ben) = (service.client("ana"), service.client("ben"))
        #expect(try await ben.listRequests().value.items.map(\.id) == [second, first])
        #expect(try await ben.listRequests(status: .open).value.items.map(\.id) == [second])
        #expect(try await ben.listRequests(kind: .friend).value.items.map(\.id) == [first])
        #expect(try await ben.listRequests(direction: .outgoing).value.items.isEmpty)
        #expect(try await ana.listRequests(direction: .outgoing).value.items.map(\.id) == [first])
        let next = try #require(try await ben.listRequests(limit: 1).value.next)
        #expect(try await ben.listRequests(limit: 1, cursor: next).value.items.map(\.id) == [first])
        #expect(try await status(of: await service.client("ben").listRequests(status: .init(rawValue: "maybe"))) == 422)
    }

    @Test func backend_asksAndAnswersForOthers() async throws {
        let backend = service.client(as: .service())
        let made = try await backend.createRequest(.init(kind: .booking, toUserId: "ben", fromUserId: "ana"))
        #expect(made.status == 201)
        #expect(try await backend.answerRequest(id: made.value.request.id, .init(status: .accepted)).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.badges(of: "ana") == [0, 0, 1, 1])
        try service.expectExactCounts()
    }

    @Test func answeredRequest_isPrunedAfterItsRetention() async throws {
        let id = try await service.ask(Self.body(), as: "ana")
        try await service.client("ben").answerRequest(id: id, .init(status: .accepted))
        let open = try await service.ask(Self.body(.follow), as: "ana")
        service.clock.advance(seconds: RequestLimits.answeredRetentionSeconds + 1)
        try await service.run(RequestsFeature.pruning)
        #expect(try await status(of: await service.client("ana").getRequest(id: id)) == 404)
        #expect(try await service.client("ana").getRequest(id: open).status == 200)
    }

    @Test(arguments: [
        (#"{}"#, ["/kind", "/toUserId"]), (#"{"kind":"war","toUserId":"b"}"#, ["/kind"]),
        (#"{"kind":"friend","toUserId":"ana"}"#, ["/toUserId"]),
        (#"{"kind":"friend","toUserId":"b","fromUserId":"c"}"#, ["/fromUserId"]),
    ])
    func badRequest_isNamed(_ body: String, _ pointers: [String]) async throws {
        let answer = try await service.call("POST", "/v1/requests", as: .user("ana"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == pointers)
    }
}

extension TestService {
    func ask(_ body: Bellhop.CreateRequestBody, as user: String) async throws -> String {
        try await client(user).createRequest(body).value.request.id
    }
}
