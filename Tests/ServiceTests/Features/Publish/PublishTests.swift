import BellhopClient
import Foundation
import TestSupport
import Testing

/// `POST /v1/publish`: an app's own events, to keys and to declared topics.
@Suite(.timed) struct PublishTests {
    /// Orders, whose customers and shop may subscribe. Rows determine which user has placed which order.
    private static let file = """
        version: 1
        topics:
          - pattern: order:{id}
            audience: ["order:{id}", "tenant:admin"]
          - {pattern: "board:{shop_id}", audience: ["shop:{shop_id}:staff"]}
        tables:
          - table: orders
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["user:{user_id}"]}
            memberships:
              - {name: customer, subject: "user:{user_id}", grants: "order:{id}"}
        """

    private let service: TestService
    private let backend: BellhopClient

    init() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("orders-\(UUID().uuidString).yaml")
        try Data(Self.file.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        service = try TestService.start(["tables": file.path])
        backend = service.client(as: .service())
        let orders = ["o1": "ada", "o2": "ben"].map { id, user -> JSON in
            [
                "type": "INSERT", "table": "orders", "schema": "public",
                "record": ["id": .string(id), "user_id": .string(user)],
            ]
        }
        #expect(try await backend.takeChanges(.array(orders)).status == 202)
    }

    private func publish(_ event: JSON, headers: [String: String] = [:]) async throws -> ServiceAnswer {
        try await service.call("POST", "/v1/publish", as: .service(), event, headers: headers)
    }

    // MARK: Publishing to keys

    @Test func event_reachesHoldersOfItsKeys_unchanged() async throws {
        let ada = try await service.listen(as: .user("ada"))
        let staff = try await service.listen(as: .staff(of: "s1"))
        let ben = try await service.listen(as: .user("ben"))
        let data: JSON = ["orderId": "o1", "lines": [1, 2.5, nil, ["a": "ü"]]]
        let answer = try await publish(["event": "order:changed", "to": ["user:ada", "shop:s1:staff"], "data": data])
        #expect(answer.status == 202)
        #expect(answer.json == ["accepted": 1])
        for stream in [ada, staff] { #expect(try await stream.next("order:changed").json == data) }
        // The event for everyone arrives first, so the earlier one was not delivered to ben.
        #expect(try await publish(["event": "order:done", "to": ["everyone"], "data": nil]).status == 202)
        #expect(try await ben.next().name == "order:done")
    }

    @Test func severalEvents_areOneTransaction_inTheirOrder() async throws {
        let ada = try await service.listen(as: .user("ada"))
        let events = (0..<20).map { ["event": "step", "to": ["user:ada"], "data": .integer(Int64($0))] as JSON }
        #expect(try await publish(.array(events)).json == ["accepted": 20])
        for index in 0..<20 { #expect(try await ada.next("step").json == .integer(Int64(index))) }
        let refused = try await publish(.array(events + [["event": "badges:update", "to": ["user:ada"], "data": 1]]))
        #expect(refused.status == 422)
        #expect(refused.json["errors"].array?.map { $0["pointer"].string } == ["/20/event"])
        #expect(try await publish(["event": "last", "to": ["user:ada"], "data": nil]).status == 202)
        #expect(try await ada.next().name == "last")
    }

    @Test func stream_resumesAfterIt_withTheLatestStateOnly() async throws {
        let ada = try await service.listen(as: .user("ada"))
        #expect(try await publish(["event": "first", "to": ["user:ada"], "data": 1]).status == 202)
        let cursor = try await ada.next("first").id
        ada.close()
        for number in 1...3 {
            let state: JSON = [
                "event": "cart", "to": ["user:ada"], "data": .integer(Int64(number)), "collapse": "cart",
            ]
            #expect(try await publish(state).status == 202)
            #expect(
                try await publish(["event": "log", "to": ["user:ada"], "data": .integer(Int64(number))]).status == 202)
        }
        let again = try await service.listen(as: .user("ada"), lastEventID: cursor)
        var seen: [String] = []
        while seen.count < 4 {
            let event = try await again.next()
            seen.append("\(event.name) \(event.data)")
        }
        #expect(seen == ["log 1", "log 2", "cart 3", "log 3"])
    }

    /// Names of states are separate for each topic, and for events published to keys.
    @Test func states_areOfTheirTopic() async throws {
        let admin = try await service.listen(as: .admin, topics: ["order:o1", "order:o2"])
        #expect(try await publish(["event": "first", "to": ["user:admin"], "data": 0]).status == 202)
        let cursor = try await admin.next("first").id
        admin.close()
        for number in 1...2 {
            for topic in ["order:o1", "order:o2", nil] {
                var state: [String: JSON] = ["event": "state", "collapse": "s"]
                if let topic { state["topic"] = .string(topic) } else { state["to"] = ["user:admin"] }
                state["data"] = .string("\(topic ?? "own") \(number)")
                #expect(try await publish(.object(state)).status == 202)
            }
        }
        let again = try await service.listen(as: .admin, topics: ["order:o1", "order:o2"], lastEventID: cursor)
        var seen: [String] = []
        while seen.count < 3 { seen.append(try await again.next("state").json.string ?? "") }
        #expect(seen == ["order:o1 2", "order:o2 2", "own 2"])
    }

    @Test func repeatedRequest_isPublishedOnce() async throws {
        let ada = try await service.listen(as: .user("ada"))
        for _ in 0..<2 {
            let answer = try await publish(
                ["event": "once", "to": ["user:ada"], "data": 1], headers: ["Idempotency-Key": "k1"])
            #expect(answer.status == 202)
        }
        #expect(try await publish(["event": "last", "to": ["user:ada"], "data": nil]).status == 202)
        #expect(try await ada.next().name == "once")
        #expect(try await ada.next().name == "last")
    }

    @Test func tenants_areApart() async throws {
        let other = try await service.listen(as: .user("ada", tenant: "other"))
        #expect(try await publish(["event": "mine", "to": ["user:ada", "everyone"], "data": 1]).status == 202)
        let answer = try await service.client(as: .service(tenant: "other")).publish([
            .init(event: "theirs", to: ["user:ada"], data: 1)
        ])
        #expect(answer.status == 202)
        #expect(try await other.next().name == "theirs")
        #expect(other.ready.json["tenant"] == "other")
    }

    @Test func keyNamedTwice_isOne() async throws {
        let ada = try await service.listen(as: .user("ada"))
        let event: JSON = ["event": "e", "to": ["user:ada", "user:ada", "everyone"], "data": 1, "collapse": nil]
        #expect(try await publish(event).status == 202)
        #expect(try await ada.next().name == "e")
        #expect(try await publish(["event": "last", "to": ["user:ada"], "data": 1]).status == 202)
        #expect(try await ada.next().name == "last")
    }

    // MARK: Publishing to topics

    @Test func topic_reachesSubscribersWithItsKey() async throws {
        let ada = try await service.listen(as: .user("ada"), topics: ["order:o1"])
        let unasked = try await service.listen(as: .user("ada"))
        let admin = try await service.listen(as: .admin, topics: ["order:o1", "order:o2"])
        #expect(try await publish(["event": "order:moved", "topic": "order:o1", "data": ["at": 3]]).status == 202)
        for stream in [ada, admin] { #expect(try await stream.next("order:moved").json == ["at": 3]) }
        #expect(try await publish(["event": "order:moved", "topic": "order:o2", "data": ["at": 4]]).status == 202)
        #expect(try await admin.next("order:moved").json == ["at": 4])
        #expect(try await publish(["event": "last", "to": ["user:ada"], "data": nil]).status == 202)
        for stream in [ada, unasked] { #expect(try await stream.next().name == "last") }
    }

    /// R-CNT-13.1: a bell with a refused topic receives everything else, and the topic once its user may subscribe to
    /// it.
    @MainActor @Test func bell_continuesWithoutARefusedTopic_andRetriesWhenItsScopeChanges() async throws {
        var options = Bell.Options()
        options.topics = ["order:o1", "order:o2"]
        let probe = BellProbe(service, as: .user("ben"), options)
        defer { probe.close() }
        let bell = probe.bell
        try await probe.until("it is live without the topic") {
            bell.connection.status == .live && bell.connection.topics == ["personal", "order:o2"]
        }
        #expect(bell.connection.refused["order:o1"]?.code == "topic.forbidden")
        #expect(try await publish(["event": "e", "topic": "order:o2", "data": 2]).status == 202)
        try await probe.until("the others come") { probe.heard("e").count == 1 }
        let change: JSON = [
            "type": "UPDATE", "table": "orders", "schema": "public", "record": ["id": "o1", "user_id": "ben"],
            "old_record": ["id": "o1", "user_id": "ada"],
        ]
        #expect(try await backend.takeChanges(change).status == 202)
        try await probe.until("it is asked for again") { bell.connection.refused.isEmpty }
        #expect(try await publish(["event": "e", "topic": "order:o1", "data": 1]).status == 202)
        try await probe.until("it is heard") { probe.heard("e").count == 2 }
    }

    @Test func topic_isRefused_withoutItsKey() async throws {
        let ben = service.client("ben")
        let refused = try await service.call("GET", "/v1/stream?topics=order:o1", as: .user("ben"))
        #expect(refused.status == 403)
        #expect(refused.json["code"] == "topic.forbidden")
        #expect(refused.json["detail"].string?.contains("order:o1") == true)
        #expect(refused.json["errors"].array?.map { $0["pointer"].string } == ["?topics"])
        #expect(try await status(of: await ben.createStreamTicket(.init(topics: ["order:o1"]))) == 403)
        #expect(try await service.call("GET", "/v1/stream?topics=board:s1", as: .user("ben")).status == 403)
        let own = try await service.listen(as: .user("ben"), topics: ["order:o2"])
        let id = try #require(own.ready.json["streamId"].string)
        let path = "/v1/streams/\(id)/subscriptions"
        let both = try await service.call(
            "PUT", path, as: .user("ben"), ["topics": ["order:o2", "order:o1", "personal", "order:o3"]])
        #expect(both.status == 403)
        // The answer names the place of each refused topic, so that a client can leave them out.
        #expect((both.json["errors"].array ?? []).map { $0["pointer"].string } == ["/topics/1", "/topics/3"])
        // The refused request changed nothing.
        #expect(try await publish(["event": "e", "topic": "order:o2", "data": 2]).status == 202)
        #expect(try await own.next("e").json == 2)
        // Once the order belongs to ben, he may subscribe to it.
        let given: JSON = [
            "type": "UPDATE", "table": "orders", "schema": "public", "record": ["id": "o1", "user_id": "ben"],
            "old_record": ["id": "o1", "user_id": "ada"],
        ]
        #expect(try await backend.takeChanges(given).status == 202)
        #expect(try await ben.replaceSubscriptions(id: id, .init(topics: ["order:o1"])).status == 200)
        #expect(try await publish(["event": "e", "topic": "order:o1", "data": 1]).status == 202)
        #expect(try await own.next("e").json == 1)
    }

    /// A stream that subscribes to a topic receives no more of its events once its key is revoked.
    @Test func topic_stops_whenTheKeyIsRevoked() async throws {
        let ada = try await service.listen(as: .user("ada"), topics: ["order:o1"])
        let gone: JSON = [
            "type": "DELETE", "table": "orders", "schema": "public", "old_record": ["id": "o1", "user_id": "ada"],
        ]
        #expect(try await backend.takeChanges(gone).status == 202)
        #expect(try await publish(["event": "e", "topic": "order:o1", "data": 1]).status == 202)
        #expect(try await publish(["event": "last", "to": ["user:ada"], "data": nil]).status == 202)
        while case let event = try await ada.next(), event.name != "last" { #expect(event.name != "e") }
    }

    @Test func explanation_dependsOnTheNamedTopics() async throws {
        let ada = try await service.listen(as: .user("ada"), topics: ["order:o1"])
        #expect(try await publish(["event": "e", "topic": "order:o1", "data": 1]).status == 202)
        let id = try await ada.next("e").id
        let asked: JSON = ["eventId": .string(id), "claims": ["sub": "ada"]]
        let unnamed = try await service.call("POST", "/v1/explain", as: .service(), asked).json
        #expect(unnamed["delivered"] == false)
        #expect(unnamed["event"]["audience"] == ["order:o1", "tenant:admin"])
        let named: JSON = ["eventId": .string(id), "claims": ["sub": "ada"], "topics": ["order:o1"]]
        #expect(try await service.call("POST", "/v1/explain", as: .service(), named).json["delivered"] == true)
    }

    // MARK: Refusals

    private static let refused: [(event: JSON, pointer: String)] = [
        (["event": "badges:update", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "bellhop:held", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "message", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "error", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "open", "topic": "order:o1", "data": 1], "/event"),
        (["event": "__proto__", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "constructor", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "e", "to": ["user:ada", "ada"], "data": 1], "/to/1"),
        (["event": "a\nid: 7", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "a b", "to": ["user:ada"], "data": 1], "/event"),
        (["event": "", "to": ["user:ada"], "data": 1], "/event"),
        (["event": .string(String(repeating: "x", count: 65)), "to": ["user:ada"], "data": 1], "/event"),
        (["event": "e", "to": [], "data": 1], "/to"),
        (["event": "e", "to": ["user:"], "data": 1], "/to/0"),
        (["event": "e", "to": ["user:a b"], "data": 1], "/to/0"),
        (["event": "e", "to": ["user:ada", "user:a%6"], "data": 1], "/to/1"),
        (["event": "e", "to": .array(Array(repeating: "user:ada", count: 257)), "data": 1], "/to"),
        (["event": "e", "data": 1], ""),
        (["event": "e", "to": ["user:ada"], "topic": "order:o1", "data": 1], ""),
        (["event": "e", "topic": "queue:s1", "data": 1], "/topic"),
        (["event": "e", "topic": "order:", "data": 1], "/topic"),
        (["event": "e", "to": ["user:ada"]], "/data"),
        (["event": "e", "to": ["user:ada"], "data": .string(String(repeating: "x", count: 16_384))], "/data"),
        (["event": "e", "to": ["user:ada"], "data": 1, "collapse": "a\nb"], "/collapse"),
        (["event": "e", "to": ["user:ada"], "data": 1, "more": 1], "/more"),
        (["event": 7, "to": ["user:ada"], "data": 1], "/event"),
    ]

    @Test func mistakes_areRefusedWithTheirPlace() async throws {
        for (event, pointer) in Self.refused {
            let answer = try await publish(event)
            #expect(answer.status == 422, "\(event)")
            #expect(answer.json["errors"].array?.first?["pointer"].string == pointer, "\(event): \(answer.json)")
        }
        #expect(try await publish([]).status == 422)
        #expect(try await publish(.array(Array(repeating: Self.refused[0].event, count: 101))).status == 422)
        #expect(try await publish("text").status == 422)
    }

    @Test func keyWithoutAPrefix_isRefusedWithASuggestion() async throws {
        let answer = try await publish(["event": "e", "to": ["ada"], "data": 1])
        #expect(answer.status == 422)
        #expect(
            answer.json["errors"].array?.first?["detail"].string == "matches no user: did you mean user:ada?",
            "\(answer.json)")
    }

    @Test func events_arePublishedByBackendsOnly() async throws {
        for identity in [TestService.Identity.user("ada"), .staff(of: "s1"), .admin] {
            let answer = try await problem(
                of: await service.client(as: identity).publish([.init(event: "e", to: ["user:ada"], data: 1)]))
            #expect(answer.status == 403)
        }
    }
}
