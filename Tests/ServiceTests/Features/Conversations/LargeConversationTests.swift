import BellhopClient
import Database
import Domain
import Foundation
import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// Conversations of the maximum size: writes for many members at once are exact for each member.
@Suite(.timed) struct LargeConversationTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// The maximum size. It exceeds the rows of one statement, and the number of recipients is not a multiple of that
    /// number.
    private static let size = ConversationLimits.membersMax

    private static func name(_ number: Int) -> String { "u\(number)" }

    private static func converse(_ service: TestService) async throws -> String {
        try await service.client(name(0)).createConversation(.init(memberIds: (1..<size).map(name))).value.id
    }

    /// Returns the counts of each user and how often they have changed.
    private static func counts(_ service: TestService) throws -> [String: [Int]] {
        let rows = try service.app.store.read { db in
            try db.rows(
                """
                SELECT user_id, messages, requests, bell, version
                FROM \(BadgeLedger.badges, unscoped: .audit("a test reads the rows of all users"))
                """
            ) { (try $0.text(0), try [$0.integer(1), $0.integer(2), $0.integer(3), $0.integer(4)]) }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    @Test func messages_countForEachMember_onceEach() async throws {
        let id = try await Self.converse(service)
        for number in 1...3 {
            let sent = try await service.send("m\(number)", to: id, as: Self.name(0))
            #expect(sent.status == 201)
            #expect(sent.value.unread == 0)
        }
        let counts = try Self.counts(service)
        #expect(counts.count == Self.size - 1)
        #expect(counts.allSatisfy { $0.value == [3, 0, 0, 3] })
        try service.expectExactCounts()
    }

    /// If a member had not read that far, a deletion decrements their count and increments their version. All other
    /// members keep their count and version.
    @Test func deletions_reduceTheCountsOfMembersWithEarlierPositions() async throws {
        let id = try await Self.converse(service)
        var messages: [String] = []
        for number in 1...3 {
            let sent = try await service.send("m\(number)", to: id, as: Self.name(0))
            messages.append(sent.value.message.id)
        }
        try await readByThirds(id)
        let before = try Self.counts(service)
        var listeners: [StreamListener] = []
        for number in 3...5 { listeners.append(try await service.listen(as: .user(Self.name(number)))) }

        #expect(
            try await service.client(as: .user(Self.name(0))).deleteMessage(id: id, messageId: messages[1]).status
                == 200)
        let after = try Self.counts(service)
        #expect(after.count == before.count)
        for number in 1..<Self.size {
            let (old, new) = (before[Self.name(number)] ?? [], after[Self.name(number)] ?? [])
            let lost = number % 3 == 2 ? 0 : 1
            #expect(new == [old[0] - lost, old[1], old[2], old[3] + lost], "\(Self.name(number))")
        }
        try service.expectExactCounts()
        for (number, listener) in zip(3..., listeners) {
            try await Self.expectDeletion(on: listener, counts: number % 3 < 2 ? after[Self.name(number)] : nil)
        }

        // A second deletion changes nothing.
        #expect(try await service.client(as: .service()).deleteMessage(id: id, messageId: messages[1]).status == 200)
        #expect(try Self.counts(service) == after)
    }

    /// One third of the members has read nothing, one third a single message, and one third everything. One member
    /// also has a notification.
    private func readByThirds(_ id: String) async throws {
        for number in 1..<Self.size where number % 3 > 0 {
            #expect(try await service.read(number % 3 == 1 ? 1 : 3, of: id, as: Self.name(number)).status == 200)
        }
        let draft = NotificationsTests.draft("news", to: Self.name(3))
        try await service.notify(draft)
    }

    /// Expects the deletion on a stream, with the stored counts; without counts for a user whose count did not
    /// change.
    private static func expectDeletion(on listener: StreamListener, counts: [Int]?) async throws {
        let deleted = try await listener.next("message:deleted").json
        #expect(deleted["sequence"] == 2)
        guard let counts else {
            #expect(deleted["badges"] == .null)
            return
        }
        #expect(deleted["unread"].int == counts[0])
        #expect(
            ["messages", "bell", "version"].map { deleted["badges"][$0].int } == [counts[0], counts[2], counts[3]])
        #expect(try await listener.next("badges:update").json == deleted["badges"])
    }

    /// A resumed stream reads the events of several large messages in order, and only its own.
    @Test func streamsResume_overMessagesToMany() async throws {
        let id = try await Self.converse(service)
        let first = try await service.listen(as: .user(Self.name(200)))
        try await service.send("m1", to: id, as: Self.name(0))
        _ = try await first.next("message:created")
        _ = try await first.next("badges:update")
        let cursor = first.lastEventID
        first.close()
        for number in 2...4 { try await service.send("m\(number)", to: id, as: Self.name(number)) }
        let back = try await service.listen(as: .user(Self.name(200)), lastEventID: cursor)
        for number in 2...4 {
            let event = try await back.next("message:created").json
            #expect(event["message"]["sequence"] == .integer(Int64(number)))
            #expect(event["unread"] == .integer(Int64(number)))
            #expect(event["badges"]["messages"] == .integer(Int64(number)))
        }
    }

    // MARK: The cost of a message to many members

    /// The log stores the text of a message once, however many members receive it. Live, resumed and explained events
    /// contain the whole text.
    @Test func textOfAMessage_isStoredOnce() async throws {
        let id = try await Self.converse(service)
        let live = try await service.listen(as: .user(Self.name(7)))
        let text = String(repeating: "ab cd ", count: 600)
        let path = "/v1/conversations/\(id)/messages"
        let sent = try await service.call("POST", path, as: .user(Self.name(0)), ["text": .string(text)])
        #expect(sent.status == 201)
        let event = try await live.next("message:created")
        #expect(event.json["message"]["text"].string == text)
        #expect(event.json["message"] == sent.json["message"])
        let members = ["conversationId", "message", "preview", "order", "unread", "badges"]
        #expect(event.json.object?.keys.sorted() == members.sorted())

        let looking = Unscoped.audit("a test reads rows")
        let stored = try service.app.store.read { db in
            try db.integer(
                """
                SELECT coalesce(sum(length(data) + coalesce(length(earlier), 0)), 0)
                FROM \(EventLog.events, unscoped: looking)
                """) ?? 0
        }
        let shared = try service.app.store.read { db in
            try db.rows("SELECT length(members) FROM \(EventLog.shared)") { try $0.integer(0) }
        }
        #expect(shared.count == 1)
        #expect((shared.first ?? 0) > text.utf8.count)
        // One message event and one count per member.
        #expect(stored < Self.size * 2 * 200)

        let resumed = try await service.listen(as: .user(Self.name(7)), lastEventID: live.ready.id)
        #expect(try await resumed.next("message:created").json == event.json)
    }

    /// Text shared by events is pruned with the last of those events, and not earlier.
    @Test func sharedText_isPrunedWithItsEvents() async throws {
        let id = try await Self.converse(service)
        try await service.send("first", to: id, as: Self.name(0))
        try await service.send("second", to: id, as: Self.name(0))
        let looking = Unscoped.audit("a test reads rows")
        func count(_ table: Table) throws -> Int {
            try service.app.store.read { try $0.integer("SELECT count(*) FROM \(table, unscoped: looking)") ?? 0 }
        }
        #expect(try count(EventLog.shared.table) == 2)
        // Prunes half of the second message's events; the remaining ones are complete.
        let newest = try service.app.store.read { try EventLog.newestSequence(in: $0) }
        func prune(keeping countMax: Int) throws {
            let retention = EventLog.Retention(seconds: 1_000_000, countMax: countMax)
            let now = service.clock.now
            var removed = 0
            repeat {
                removed = try service.app.store.writeAndWait { try EventLog.prune(AgeTime(now), retention, in: $0) }
            } while removed > 0
        }
        try prune(keeping: Self.size * 2 - 100)
        #expect(try count(EventLog.shared.table) == 1)
        let whole = try service.app.store.read { db in
            try EventLog.following(newest - 400, limit: 400, in: db).events.filter { $0.name == "message:created" }
        }
        #expect(!whole.isEmpty)
        #expect(whole.allSatisfy { String(decoding: $0.data, as: UTF8.self).contains("\"second\"") })
        try prune(keeping: 0)
        #expect(try count(EventLog.shared.table) == 0)
    }

    /// A single user cannot fill the log within the rate limit: messages to many members are limited by their events
    /// and their bytes.
    @Test(arguments: [(60, "events"), (4000, "bytes")]) func messagesToMany_areBounded(
        _ length: Int, _ unit: String
    ) async throws {
        let service = try TestService.start(["rateLimitUser": "300"], at: TestService.morning)
        let id = try await Self.converse(service)
        service.clock.advance(seconds: 60)
        let text = String(repeating: "x", count: length)
        var sent = 0
        let refused = try await problem(
            of: await {
                while sent < 61 {
                    try await service.send(text, to: id, as: Self.name(0))
                    sent += 1
                }
            }())
        #expect((10...30).contains(sent))
        #expect(refused.refusal == "429 event_budget")
        #expect(refused.detail.contains(unit))
        #expect((.seconds(1)...(.seconds(60))).contains(try #require(refused.retryAfter)))
        // A refused message leaves no trace. Other users, and conversations with few members, are not affected.
        #expect(try Self.counts(service)[Self.name(1)]?.first == sent)
        #expect(try await service.send("mine", to: id, as: Self.name(1)).status == 201)
        let few = try await service.converse(Self.name(0), Self.name(1))
        #expect(try await service.send("to one", to: few, as: Self.name(0)).status == 201)
        // The same request succeeds later, although its Idempotency-Key was sent before.
        let sender = service.client(Self.name(0))
        #expect(
            try await status(of: await sender.sendMessage(id: id, .init(text: text), idempotencyKey: "again")) == 429)
        service.clock.advance(seconds: 60)
        #expect(try await sender.sendMessage(id: id, .init(text: text), idempotencyKey: "again").status == 201)
        try service.expectExactCounts()
    }
}
