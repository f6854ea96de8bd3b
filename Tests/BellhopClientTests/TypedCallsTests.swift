import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// Typed calls and answers that a newer service, an older app or a proxy in between may cause.
@Suite(.timed, .timeLimit(.minutes(10)))
struct TypedCallsTests {
    private static let notification = """
        {"id": "n1", "eventId": null, "userId": "u1", "type": "VISIT", "category": "visit", "priority": "COSMIC",
        "title": "T", "message": "M", "lockScreen": "L", "data": {"deep": [1, null]}, "haptic": null, "sound": true,
        "createdAt": "2026-01-10T09:30:00.123Z", "seenAt": "2026-01-10T09:30:00Z", "readAt": null, "archivedAt": null,
        "colour": {"is": "new"}}
        """

    private func client(_ server: ScriptedServer) -> BellhopClient { BellhopClient(baseURL: server.baseURL) }

    private func answer(_ body: String, headers: String = "") -> ScriptedServer.Turn {
        .answer("200 OK", headers: "Content-Type: application/json\r\n" + headers, body: body)
    }

    @Test func unknownValuesOfANewerService_areTolerated() async throws {
        let page = #"{"items": [\#(Self.notification)], "next": null, "total": 1}"#
        let server = try ScriptedServer([answer(page, headers: "Event-Position: e-7\r\nX-Request-Id: r1\r\n")])
        let answer = try await client(server).listNotifications(state: .unseen, priority: .high, limit: 5)
        let found = try #require(answer.value.items.first)
        #expect(found.priority.rawValue == "COSMIC")
        #expect(found.priority != .high)
        #expect(found.data["deep"][0].int == 1)
        #expect(Moment.text(found.createdAt) == "2026-01-10T09:30:00.123Z")
        #expect(found.seenAt == Date(timeIntervalSince1970: 1_768_037_400))
        #expect(found.readAt == nil)
        #expect(answer.eventPosition == "e-7")
        #expect(answer.requestID == "r1")
        #expect(server.requests[0].hasPrefix("GET /v1/notifications?state=unseen&priority=HIGH&limit=5 "))
    }

    @Test func models_areWrittenAsTheyWereRead() throws {
        let model = try Bellhop.decoder.decode(Bellhop.Notification.self, from: Data(Self.notification.utf8))
        let text = try Bellhop.encoder.encode(model)
        #expect(try Bellhop.decoder.decode(Bellhop.Notification.self, from: text) == model)
        #expect(try JSON(parsing: text)["createdAt"] == "2026-01-10T09:30:00.123Z")
    }

    @Test func everyMillisecond_isWrittenAsItIs() throws {
        for millisecond in 0..<1000 {
            let text = "2026-11-22T11:40:17." + String(1000 + millisecond).dropFirst() + "Z"
            #expect(Moment.text(try #require(Moment.date(text))) == text)
        }
        #expect(Moment.date("yesterday") == nil)
    }

    @Test func pages_areFollowed_andNotFetchedBeforeTheyAreRead() async throws {
        func page(_ ids: [Int], _ next: String) -> ScriptedServer.Turn {
            let shops = ids.map {
                #"{"id": "s\#($0)", "name": "S", "timeZone": "UTC", "createdAt": "2026-01-10T09:30:00.000Z","#
                    + #" "updatedAt": "2026-01-10T09:30:00.000Z"}"#
            }
            return answer(#"{"items": [\#(shops.joined(separator: ","))], "next": \#(next)}"#)
        }
        let server = try ScriptedServer([page([1, 2], #""a b""#), page([], #""c""#), page([3], "null")])
        var pages = client(server).shopPages(limit: 2).items.makeAsyncIterator()
        #expect(try await pages.next()?.id == "s1")
        #expect(server.requests.count == 1)
        #expect(try await pages.next()?.id == "s2")
        #expect(try await pages.next()?.id == "s3")
        #expect(try await pages.next() == nil)
        let paths = server.requests.map { $0.split(separator: " ")[1] }
        #expect(paths == ["/v1/shops?limit=2", "/v1/shops?limit=2&cursor=a%20b", "/v1/shops?limit=2&cursor=c"])
    }

    @Test func aPageThatNamesItself_isTheLast() async throws {
        let turn = answer(#"{"items": [], "next": "x"}"#)
        let server = try ScriptedServer([turn, turn, turn])
        var count = 0
        for try await _ in client(server).shopPages() { count += 1 }
        #expect(count == 2)
    }

    @Test func refusals_areThrownAsProblems() async throws {
        let body = """
            {"type": "about:blank", "title": "Conflict", "status": 409, "detail": "No.", "code": "of.tomorrow",
            "instance": "/", "requestId": "r9", "allowed": ["cancelled"],
            "errors": [{"pointer": "/status", "detail": "is not known"}]}
            """
        let server = try ScriptedServer([
            .answer("409 Conflict", headers: "Content-Type: application/problem+json\r\n", body: body),
            .answer("503 Service Unavailable", headers: "Retry-After: 7\r\n", body: "<html>a proxy</html>"),
            .answer("304 Not Modified"),
        ])
        server.name(nil)
        let conflict = await #expect(throws: Bellhop.Problem.self) { try await client(server).getMe() }
        #expect(conflict?.code?.rawValue == "of.tomorrow")
        #expect(conflict?.errors == [.init(pointer: "/status", detail: "is not known")])
        #expect(conflict?.allowed == ["cancelled"])
        #expect(conflict?.requestID == "r9")
        #expect(conflict.map { "\($0)" } == "409 of.tomorrow: No.; /status is not known")
        let unavailable = await #expect(throws: Bellhop.Problem.self) { try await client(server).getMe() }
        #expect(unavailable?.code == nil)
        #expect(unavailable?.retryAfter == .seconds(7))
        // The request was not conditional, so a 304 is an error.
        let current = await #expect(throws: Bellhop.Problem.self) { try await client(server).getMe() }
        #expect(current?.status == 304)
    }

    @Test func answersOfAnotherForm_areNamed() async throws {
        let server = try ScriptedServer([answer(#"{"bell": 1}"#, headers: "X-Request-Id: r1\r\n"), answer("no JSON")])
        let missing = await #expect(throws: Bellhop.UnreadableAnswer.self) { try await client(server).getBadges() }
        #expect(missing?.requestID == "r1")
        #expect(missing?.reason.contains("messages") == true)
        await #expect(throws: Bellhop.UnreadableAnswer.self) { try await client(server).getBadges() }
    }

    @Test func parametersThatWouldLeadElsewhere_areRefused_andOthersEscaped() async throws {
        let server = try ScriptedServer([.answer("204 No Content")])
        for id in ["", ".", ".."] {
            await #expect(throws: Bellhop.UnusableParameter(name: "barberId", value: id)) {
                try await client(server).deleteBarber(id: "s1", barberId: id)
            }
        }
        await #expect(throws: Bellhop.UnusableParameter(name: "Idempotency-Key", value: "a\r\nb: c")) {
            try await client(server).deleteBarber(id: "s1", barberId: "b1", idempotencyKey: "a\r\nb: c")
        }
        try await client(server).deleteBarber(id: "s/1?", barberId: "{id}ä", idempotencyKey: "k1")
        #expect(server.requests.count == 1)
        #expect(server.requests[0].hasPrefix("DELETE /v1/shops/s%2F1%3F/barbers/%7Bid%7D%C3%A4 "))
        #expect(server.requests[0].contains("Idempotency-Key: k1\r\n"))
    }

    /// Omitting a title and removing it are different requests.
    @Test func nullThatIsAsked_isSent_andAbsentMembersAreNot() async throws {
        let title = try Bellhop.encoder.encode(Bellhop.ChangeConversationBody(title: nil))
        #expect(String(decoding: title, as: UTF8.self) == #"{"title":null}"#)
        let status = try Bellhop.encoder.encode(Bellhop.ChangeBookingBody(status: .confirmed))
        #expect(String(decoding: status, as: UTF8.self) == #"{"status":"confirmed"}"#)
        let user = Bellhop.RevokeBody.ByUserIdAndIssuedBefore(
            userId: "u1", issuedBefore: Date(timeIntervalSince1970: 0))
        let revocation = try Bellhop.encoder.encode(Bellhop.RevokeBody.userIdAndIssuedBefore(user))
        #expect(
            String(decoding: revocation, as: UTF8.self)
                == #"{"issuedBefore":"1970-01-01T00:00:00.000Z","userId":"u1"}"#)
    }

    // MARK: Events

    @Test func events_areDecoded_andUnknownOnesStayRaw() throws {
        let rank = #"{"challengeId":"c1","rank":2,"position":3,"score":-5,"changed":1,"version":4,"epoch":"e"}"#
        guard case .leaderboardUpdate(.ownRank(let own)) = event("leaderboard:update", rank).typed else {
            Issue.record("expected an own rank")
            return
        }
        #expect(own.score == -5)
        let strange = event("leaderboard:update", #"{"shape":"new"}"#)
        #expect(strange.typed == .leaderboardUpdate(.other(["shape": "new"])))
        for raw in [event("moon:risen", "{}"), event("badges:update", #"{"bell":"many"}"#), event("badges:update", "")]
        {
            #expect(raw.typed == .other(raw))
        }
        #expect(event("stream:resync", #"{"reason":"gap"}"#).typed == .streamResync(.init(reason: .gap)))
    }

    private func event(_ name: String, _ data: String) -> ServerSentEvent {
        ServerSentEvent(id: "1", name: name, data: data)
    }
}
