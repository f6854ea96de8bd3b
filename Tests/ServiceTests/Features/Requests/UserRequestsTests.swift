import BellhopClient
import Domain
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Requests between users over real HTTP (R-CNT-COUNTS-1, R-16): the recipient's badge, and the events of both
/// sides.
@Suite(.timed) struct UserRequestsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    private static func body(_ kind: String = "friend", to user: String = "ben", about: String? = nil) -> String {
        let about = about.map { #","aboutId":"\#($0)""# } ?? ""
        return #"{"kind":"\#(kind)","toUserId":"\#(user)","fromName":"Ana"\#(about)}"#
    }

    @Test func request_lightsTheBadge_untilItIsAnswered_andTheAnswerLightsTheOthers() async throws {
        let (ana, ben) = (try await service.listen(as: .user("ana")), try await service.listen(as: .user("ben")))
        let made = try await service.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        #expect(made.status == 201)
        let request = made.json["request"]
        let path = "/v1/requests/\(try #require(request["id"].string))"
        #expect(request["status"] == "open")
        #expect(try await ben.next("request:created").json == request)
        #expect(try await ana.next("request:created").json == request)
        let delivered = try await ben.next("notification:created").json
        expect(delivered, has: ["category": "request", "message": "Ana wants to be your friend"])
        #expect(try await ben.next("badges:update").json["requests"] == 1)
        #expect(try await service.badges(of: "ben") == [0, 1, 0, 1])
        #expect(try await service.badges(of: "ana") == [0, 0, 0, 0])

        let accepted = try await service.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#)
        #expect(accepted.status == 200)
        #expect(accepted.json["request"]["status"] == "accepted")
        #expect(accepted.json["badges"]["requests"] == 0)
        #expect(try await ben.next("notification:updated").json["state"]["read"] == true)
        #expect(try await ana.next("request:updated").json == accepted.json["request"])
        #expect(try await ana.next("notification:created").json["title"] == "Friend Request Accepted")
        #expect(try await service.badges(of: "ana") == [0, 0, 1, 1])
        // Repeating the same answer succeeds and publishes nothing; a different answer is refused.
        #expect(
            try await service.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#).json == accepted.json)
        let changed = try await service.call("PATCH", path, as: .user("ben"), #"{"status":"declined"}"#)
        #expect(changed.refusal == "409 request.answered")
        #expect(try await service.call("DELETE", path, as: .user("ana")).status == 409)
        try service.expectExactCounts()
    }

    @Test func declinedRequest_isPublishedToo_andCanBeAskedAgain() async throws {
        let path = "/v1/requests/\(try await service.ask(Self.body(), as: "ana"))"
        #expect(try await service.call("PATCH", path, as: .user("ben"), #"{"status":"declined"}"#).status == 200)
        #expect(try await service.badges(of: "ana") == [0, 0, 1, 1])
        let again = try await service.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        #expect(again.status == 201)
        #expect(try await service.badges(of: "ben") == [0, 1, 0, 1])
        try service.expectExactCounts()
    }

    @Test func sameRequest_isAskedOnce_whileItIsOpen() async throws {
        let first = try await service.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        let again = try await service.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        #expect(again.status == 200)
        #expect(again.json["request"] == first.json["request"])
        #expect(try await service.badges(of: "ben") == [0, 1, 0, 1])
        for body in [Self.body("follow"), Self.body("group", about: "g1"), Self.body("group", about: "g2")] {
            #expect(try await service.call("POST", "/v1/requests", as: .user("ana"), body).status == 201)
        }
        #expect(try await service.badges(of: "ben") == [0, 4, 0, 4])
    }

    @Test func withdrawnRequest_takesItsNotificationAlong() async throws {
        let id = try await service.ask(Self.body(), as: "ana")
        let ben = try await service.listen(as: .user("ben"))
        #expect(try await service.call("DELETE", "/v1/requests/\(id)", as: .user("ben")).status == 403)
        #expect(try await service.call("DELETE", "/v1/requests/\(id)", as: .user("ana")).status == 200)
        #expect(try await ben.next("request:removed").json["id"] == .string(id))
        _ = try await ben.next("notification:removed")
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.call("GET", "/v1/notifications", as: .user("ben")).items.isEmpty)
        #expect(try await service.call("DELETE", "/v1/requests/\(id)", as: .user("ana")).status == 404)
        try service.expectExactCounts()
    }

    @Test func request_isInvisibleToOthers_andNotAnsweredByItsSender() async throws {
        let path = "/v1/requests/\(try await service.ask(Self.body(), as: "ana"))"
        for outsider in [TestService.Identity.user("eve"), .user("ben", tenant: "other"), .service(tenant: "other")] {
            #expect(try await service.call("GET", path, as: outsider).status == 404)
            #expect(try await service.call("PATCH", path, as: outsider, #"{"status":"accepted"}"#).status == 404)
            #expect(try await service.call("DELETE", path, as: outsider).status == 404)
            #expect(try await service.call("GET", "/v1/requests", as: outsider).items.isEmpty)
        }
        let own = try await service.call("PATCH", path, as: .user("ana"), #"{"status":"accepted"}"#)
        #expect(own.refusal == "403 request.not_yours")
    }

    @Test func requestLists_areIncomingOrOutgoing() async throws {
        let first = try await service.ask(Self.body(), as: "ana")
        let second = try await service.ask(Self.body("follow"), as: "cem")
        _ = try await service.call("PATCH", "/v1/requests/\(first)", as: .user("ben"), #"{"status":"declined"}"#)
        func ids(_ query: String, as user: String) async throws -> [String?] {
            try await service.call("GET", "/v1/requests?\(query)", as: .user(user)).items.map { $0["id"].string }
        }
        #expect(try await ids("", as: "ben") == [second, first])
        #expect(try await ids("status=open", as: "ben") == [second])
        #expect(try await ids("kind=friend", as: "ben") == [first])
        #expect(try await ids("direction=outgoing", as: "ben") == [])
        #expect(try await ids("direction=outgoing", as: "ana") == [first])
        let page = try await service.call("GET", "/v1/requests?limit=1", as: .user("ben"))
        let next = try #require(page.json["next"].string)
        #expect(try await ids("limit=1&cursor=\(next)", as: "ben") == [first])
        #expect(try await service.call("GET", "/v1/requests?status=maybe", as: .user("ben")).status == 422)
    }

    @Test func backend_asksAndAnswersForOthers() async throws {
        let body = #"{"kind":"booking","fromUserId":"ana","toUserId":"ben"}"#
        let made = try await service.call("POST", "/v1/requests", as: .service(), body)
        #expect(made.status == 201)
        let path = "/v1/requests/\(made.json["request"]["id"].string ?? "")"
        #expect(try await service.call("PATCH", path, as: .service(), #"{"status":"accepted"}"#).status == 200)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.badges(of: "ana") == [0, 0, 1, 1])
        try service.expectExactCounts()
    }

    @Test func answeredRequest_isPrunedAfterItsRetention() async throws {
        let path = "/v1/requests/\(try await service.ask(Self.body(), as: "ana"))"
        _ = try await service.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#)
        let open = "/v1/requests/\(try await service.ask(Self.body("follow"), as: "ana"))"
        service.clock.advance(seconds: RequestLimits.answeredRetentionSeconds + 1)
        try await service.run(RequestsFeature.pruning)
        #expect(try await service.call("GET", path, as: .user("ana")).status == 404)
        #expect(try await service.call("GET", open, as: .user("ana")).status == 200)
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
    func ask(_ body: String, as user: String) async throws -> String {
        let made = try await call("POST", "/v1/requests", as: .user(user), body)
        return try #require(made.json["request"]["id"].string)
    }
}
