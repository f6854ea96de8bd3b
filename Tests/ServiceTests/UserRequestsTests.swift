import Domain
import Testing

@testable import Service

/// Requests between users over real HTTP (CNT R-COUNTS-1, decision 16): the badge of whoever is asked, and both sides'
/// events.
@Suite struct UserRequestsTests {
    private static func body(_ kind: String = "friend", to user: String = "ben", about: String? = nil) -> String {
        let about = about.map { #","aboutId":"\#($0)""# } ?? ""
        return #"{"kind":"\#(kind)","toUserId":"\#(user)","fromName":"Ana"\#(about)}"#
    }

    @Test func request_lightsTheBadge_untilItIsAnswered_andTheAnswerLightsTheOthers() async throws {
        let probe = try await NotificationsProbe.start()
        let (ana, ben) = (try await probe.listen(as: .user("ana")), try await probe.listen(as: .user("ben")))
        let made = try await probe.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        #expect(made.status == 201)
        let request = made.json["request"]
        let path = "/v1/requests/\(try #require(request["id"].text))"
        #expect(request["status"] == .string("open"))
        #expect(try await ben.next("request:created") == request)
        #expect(try await ana.next("request:created") == request)
        let told = try await ben.next("notification:created")
        #expect(told["category"] == .string("request"))
        #expect(told["message"] == .string("Ana wants to be your friend"))
        #expect(try await ben.next("badges:update")["requests"] == .integer(1))
        #expect(try await probe.badges(of: "ben") == [0, 1, 0, 1])
        #expect(try await probe.badges(of: "ana") == [0, 0, 0, 0])

        let accepted = try await probe.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#)
        #expect(accepted.status == 200)
        #expect(accepted.json["request"]["status"] == .string("accepted"))
        #expect(accepted.json["badges"]["requests"] == .integer(0))
        #expect(try await ben.next("notification:updated")["state"]["read"] == .bool(true))
        #expect(try await ana.next("request:updated") == accepted.json["request"])
        #expect(try await ana.next("notification:created")["title"] == .string("Friend Request Accepted"))
        #expect(try await probe.badges(of: "ana") == [0, 1, 0, 1])
        // Again is no mistake, and nobody is told of it; otherwise it is one.
        #expect(try await probe.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#).json == accepted.json)
        let changed = try await probe.call("PATCH", path, as: .user("ben"), #"{"status":"declined"}"#)
        #expect(changed.status == 409)
        #expect(changed.json["code"] == .string("request.answered"))
        #expect(try await probe.call("DELETE", path, as: .user("ana")).status == 409)
        try await probe.expectExactCounts()
    }

    @Test func declinedRequest_isToldToo_andCanBeAskedAgain() async throws {
        let probe = try await NotificationsProbe.start()
        let path = "/v1/requests/\(try await probe.ask(Self.body(), as: "ana"))"
        #expect(try await probe.call("PATCH", path, as: .user("ben"), #"{"status":"declined"}"#).status == 200)
        #expect(try await probe.badges(of: "ana") == [0, 1, 0, 1])
        let again = try await probe.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        #expect(again.status == 201)
        #expect(try await probe.badges(of: "ben") == [0, 1, 0, 1])
        try await probe.expectExactCounts()
    }

    @Test func sameRequest_isAskedOnce_whileItIsOpen() async throws {
        let probe = try await NotificationsProbe.start()
        let first = try await probe.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        let again = try await probe.call("POST", "/v1/requests", as: .user("ana"), Self.body())
        #expect(again.status == 200)
        #expect(again.json["request"] == first.json["request"])
        #expect(try await probe.badges(of: "ben") == [0, 1, 0, 1])
        for body in [Self.body("follow"), Self.body("group", about: "g1"), Self.body("group", about: "g2")] {
            #expect(try await probe.call("POST", "/v1/requests", as: .user("ana"), body).status == 201)
        }
        #expect(try await probe.badges(of: "ben") == [0, 4, 0, 4])
    }

    @Test func withdrawnRequest_takesItsNotificationAlong() async throws {
        let probe = try await NotificationsProbe.start()
        let id = try await probe.ask(Self.body(), as: "ana")
        let ben = try await probe.listen(as: .user("ben"))
        #expect(try await probe.call("DELETE", "/v1/requests/\(id)", as: .user("ben")).status == 403)
        #expect(try await probe.call("DELETE", "/v1/requests/\(id)", as: .user("ana")).status == 200)
        #expect(try await ben.next("request:removed")["id"] == .string(id))
        _ = try await ben.next("notification:removed")
        #expect(try await probe.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await probe.call("GET", "/v1/notifications", as: .user("ben")).items.isEmpty)
        #expect(try await probe.call("DELETE", "/v1/requests/\(id)", as: .user("ana")).status == 404)
        try await probe.expectExactCounts()
    }

    @Test func othersSeeNothingOfIt_andNobodyAnswersTheirOwn() async throws {
        let probe = try await NotificationsProbe.start()
        let path = "/v1/requests/\(try await probe.ask(Self.body(), as: "ana"))"
        for outsider in [NotificationsProbe.Identity.user("eve"), .userOf("ben", tenant: "other"), .serviceOf("other")]
        {
            #expect(try await probe.call("GET", path, as: outsider).status == 404)
            #expect(try await probe.call("PATCH", path, as: outsider, #"{"status":"accepted"}"#).status == 404)
            #expect(try await probe.call("DELETE", path, as: outsider).status == 404)
            #expect(try await probe.call("GET", "/v1/requests", as: outsider).items.isEmpty)
        }
        let own = try await probe.call("PATCH", path, as: .user("ana"), #"{"status":"accepted"}"#)
        #expect(own.status == 403)
        #expect(own.json["code"] == .string("request.not_yours"))
    }

    @Test func lists_areOfWhatWaitsForMe_orOfWhatIWaitFor() async throws {
        let probe = try await NotificationsProbe.start()
        let (first, second) = (
            try await probe.ask(Self.body(), as: "ana"), try await probe.ask(Self.body("follow"), as: "cem")
        )
        _ = try await probe.call("PATCH", "/v1/requests/\(first)", as: .user("ben"), #"{"status":"declined"}"#)
        func ids(_ query: String, as user: String) async throws -> [String?] {
            try await probe.call("GET", "/v1/requests?\(query)", as: .user(user)).items.map { $0["id"].text }
        }
        #expect(try await ids("", as: "ben") == [second, first])
        #expect(try await ids("status=open", as: "ben") == [second])
        #expect(try await ids("kind=friend", as: "ben") == [first])
        #expect(try await ids("direction=outgoing", as: "ben") == [])
        #expect(try await ids("direction=outgoing", as: "ana") == [first])
        let page = try await probe.call("GET", "/v1/requests?limit=1", as: .user("ben"))
        let next = try #require(page.json["next"].text)
        #expect(try await ids("limit=1&cursor=\(next)", as: "ben") == [first])
        #expect(try await probe.call("GET", "/v1/requests?status=maybe", as: .user("ben")).status == 422)
    }

    @Test func backend_asksAndAnswersForOthers() async throws {
        let probe = try await NotificationsProbe.start()
        let body = #"{"kind":"booking","fromUserId":"ana","toUserId":"ben"}"#
        let made = try await probe.call("POST", "/v1/requests", as: .service, body)
        #expect(made.status == 201)
        let path = "/v1/requests/\(made.json["request"]["id"].text ?? "")"
        #expect(try await probe.call("PATCH", path, as: .service, #"{"status":"accepted"}"#).status == 200)
        #expect(try await probe.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await probe.badges(of: "ana") == [0, 1, 0, 1])
        try await probe.expectExactCounts()
    }

    @Test func answeredRequest_isForgottenAfterAWhile() async throws {
        let probe = try await NotificationsProbe.start()
        let path = "/v1/requests/\(try await probe.ask(Self.body(), as: "ana"))"
        _ = try await probe.call("PATCH", path, as: .user("ben"), #"{"status":"accepted"}"#)
        let open = "/v1/requests/\(try await probe.ask(Self.body("follow"), as: "ana"))"
        probe.service.clock.advance(seconds: RequestLimits.answeredKeptSeconds + 1)
        try await probe.run(RequestsFeature.forgetting)
        #expect(try await probe.call("GET", path, as: .user("ana")).status == 404)
        #expect(try await probe.call("GET", open, as: .user("ana")).status == 200)
    }

    @Test(arguments: [
        (#"{}"#, ["/kind", "/toUserId"]), (#"{"kind":"war","toUserId":"b"}"#, ["/kind"]),
        (#"{"kind":"friend","toUserId":"ana"}"#, ["/toUserId"]),
        (#"{"kind":"friend","toUserId":"b","fromUserId":"c"}"#, ["/fromUserId"]),
    ])
    func badRequest_isNamed(_ body: String, _ pointers: [String]) async throws {
        let probe = try await NotificationsProbe.start()
        let answer = try await probe.call("POST", "/v1/requests", as: .user("ana"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == pointers)
    }
}

extension NotificationsProbe {
    func ask(_ body: String, as user: String) async throws -> String {
        let made = try await call("POST", "/v1/requests", as: .user(user), body)
        return try #require(made.json["request"]["id"].text)
    }
}
