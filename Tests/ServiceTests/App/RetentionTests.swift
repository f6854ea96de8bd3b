import BellhopClient
import Database
import TestSupport
import Testing
import Values

@testable import Service

/// What the settings expire, and what stays exact.
@Suite(.timed) struct RetentionTests {
    private static let day: Int64 = 86_400

    /// Waits for a walk over all rows. A walk that began before ends within one interval.
    private func eventuallyExpired(
        _ service: TestService, _ comment: Comment, _ condition: () async throws -> Bool
    ) async throws {
        try await eventually(comment, step: { service.clock.advance(seconds: 5) }, condition)
    }

    // MARK: Notifications

    @Test func notifications_areRemovedAfterTheirDays_withTheirCounts() async throws {
        let service = try TestService.start(["notificationsKeptDays": "30"], at: TestService.morning)
        for user in ["ada", "ben"] { try await service.publish("old-\(user)", to: user) }
        service.clock.advance(seconds: 20 * Self.day)
        try await service.publish("new", to: "ada")
        service.clock.advance(seconds: 10 * Self.day)
        try await eventuallyExpired(service, "the old ones are removed") {
            let left = [try await service.all(of: "ada").count, try await service.all(of: "ben").count]
            return left == [1, 0]
        }
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        #expect(try await service.badges(of: "ada").last == 1)
        // The event is still recognized, so it does not come back.
        let again = try await service.publish(.init(id: "old-ada", type: .visitCreated, userId: "ada"))
        #expect(again.status == 200)
        try service.expectExactCounts()
    }

    /// More rows than one step looks at, and more expired ones than one step removes.
    @Test func manyNotifications_areRemoved_inSteps() async throws {
        let service = try TestService.start(["notificationsKeptDays": "1"], at: TestService.morning)
        let users = (0..<30).map { "user\($0)" }
        for user in users {
            for number in 0..<5 { try await service.publish("e\(number)-\(user)", to: user) }
        }
        service.clock.advance(seconds: Self.day + 1)
        try await service.publish("new", to: "user17")
        try await eventuallyExpired(service, "all but one are removed") {
            let left = [try await service.all(of: "user29"), try await service.all(of: "user0")]
            return left.allSatisfy(\.isEmpty)
        }
        #expect(try await service.all(of: "user17").count == 1)
        try service.expectExactCounts()
    }

    @Test func withoutTheSetting_nothingExpires() async throws {
        let service = try TestService.start(at: TestService.morning)
        try await service.publish("old", to: "ada")
        let id = try await service.converse("ada", "ben")
        try await service.send("old", to: id, as: "ada")
        for _ in 0..<3 {
            service.clock.advance(seconds: 400 * Self.day)
            try await service.run(ConversationsFeature.pruning)
        }
        #expect(try await service.all(of: "ada").count == 1)
        #expect(try await service.client("ben").listMessages(id: id).value.items.count == 1)
        let settings = service.app.runner.settings
        #expect(Catalog.features().flatMap(\.sweeps).allSatisfy { !$0.isOn(settings) })
    }

    // MARK: Bookings

    @Test func bookings_areDeletedAfterTheirDays_withTheirHistory() async throws {
        let service = try TestService.start(["bookingsKeptDays": "30"], at: TestService.morning)
        let backend = TestService.Identity.service()
        func call(_ method: String, _ path: String, _ body: JSON? = nil) async throws -> JSON {
            let answer = try await service.call(method, path, as: backend, body)
            #expect(answer.isSuccess, "\(method) \(path): \(answer.text)")
            return answer.json
        }
        func book(_ shop: String, in days: Int64) async throws {
            let start = service.clock.now.adding(seconds: days * Self.day + 3600).rfc3339
            _ = try await call(
                "POST", "/v1/bookings",
                [
                    "shopId": .string(shop), "service": "cut", "scheduledStart": .string(start),
                    "durationMinutes": 30, "tier": "standard", "userId": "ada",
                ])
        }
        for shop in ["s1", "s2"] {
            _ = try await call("PUT", "/v1/shops/\(shop)", ["name": "Shop", "timeZone": "UTC"])
            try await book(shop, in: 0)
            try await book(shop, in: 20)
        }
        service.clock.advance(seconds: 31 * Self.day)
        func count(_ table: Table) throws -> Int? {
            try service.app.store.read { db in
                try db.integer("SELECT count(*) FROM \(table, unscoped: .audit("a test counts rows"))")
            }
        }
        try await eventuallyExpired(service, "the old ones are deleted") {
            try count(ShopsFeature.bookings) == 2 && count(ShopsFeature.history) == 2
        }
        for shop in ["s1", "s2"] {
            #expect(try await call("GET", "/v1/bookings?shopId=\(shop)")["items"].array?.count == 1)
        }
        try service.expectExactCounts()
    }

    // MARK: Messages

    @Test func messages_areDeletedAfterTheirDays_andUnreadCountsStayExact() async throws {
        let service = try TestService.start(["messagesKeptDays": "30"], at: TestService.morning)
        let id = try await service.converse("ana", "ben", "cid")
        for number in 1...4 { try await service.send("old \(number)", to: id, as: number == 2 ? "ben" : "ana") }
        #expect(try await service.read(3, of: id, as: "cid").status == 200)
        service.clock.advance(seconds: 20 * Self.day)
        try await service.send("new", to: id, as: "ana")
        #expect(try await service.badges(of: "ben").first == 4)
        let position = try await service.position(as: .user("ben"))
        service.clock.advance(seconds: 10 * Self.day)
        try await eventuallyExpired(service, "the old messages are deleted") {
            try await service.client("cid").listMessages(id: id).value.items.map(\.text) == ["new"]
        }
        #expect(try await service.badges(of: "ana").first == 0)
        #expect(try await service.badges(of: "ben").first == 1)
        #expect(try await service.badges(of: "cid").first == 1)
        let stream = try await service.listen(as: .user("ben"), lastEventID: position)
        let read = try await stream.next("conversation:read")
        #expect(read.json["unread"] == 1 && read.json["readPosition"] == 4)
        // The numbers go on.
        let next = try await service.send("next", to: id, as: "cid")
        #expect(next.value.message.sequence == 6)
        try service.expectExactCounts()
    }

    @Test func conversationWhoseLastMessageExpired_staysUsable() async throws {
        let service = try TestService.start(["messagesKeptDays": "1"], at: TestService.morning)
        let first = try await service.converse("ana", "ben")
        let second = try await service.converse("ana", "cid")
        for id in [first, second] {
            for number in 1...3 { try await service.send("m\(number)", to: id, as: "ana") }
        }
        service.clock.advance(seconds: Self.day + 1)
        for id in [first, second] {
            try await eventuallyExpired(service, "all messages are deleted") {
                try await service.client("ana").listMessages(id: id).value.items.isEmpty
            }
        }
        let empty = try await service.client("ben").getConversation(id: first).value
        #expect(empty.lastMessage == nil && empty.unread == 0 && empty.lastSequence == 3)
        #expect(try await service.badges(of: "ben") == [0, 0, 0, 0])
        try service.expectExactCounts()
        #expect(try await service.send("again", to: first, as: "ben").value.message.sequence == 4)
        #expect(try await service.badges(of: "ana").first == 1)
        try service.expectExactCounts()
    }
}
