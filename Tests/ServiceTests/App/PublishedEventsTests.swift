import BellhopClient
import Realtime
import TestSupport
import Testing

@testable import Service

/// The events of each operation: exactly these, and no others. An operation that changes nothing publishes nothing.
@Suite(.timed) struct PublishedEventsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    private var ada: BellhopClient { service.client("ada") }
    private var ben: BellhopClient { service.client("ben") }
    private var backend: BellhopClient { service.client(as: .service()) }

    @Test func notifications() async throws {
        let made = try await service.expectEvents(["notification:created": 1, "badges:update": 1]) {
            try await service.notify(NotificationsTests.draft("visit", .high, to: "ada"))
        }
        let id = try made.notificationID
        try await service.expectEvents(["notification:updated": 1, "badges:update": 1]) {
            try await ada.changeNotification(id: id, .init(seen: true))
        }
        try await service.expectEvents([:]) { try await ada.changeNotification(id: id, .init(seen: true)) }
        try await service.expectEvents(["notification:updated": 1]) {
            try await ada.changeNotification(id: id, .init(read: true))
        }
        try await service.expectEvents(["notification:removed": 1]) { try await ada.deleteNotification(id: id) }
        #expect(
            try await service.expectEvents([:]) { try await status(of: await ada.deleteNotification(id: id)) } == 404)
    }

    @Test func repeatedEvent_publishesNothing() async throws {
        let event = NotificationsTests.event("evt-1")
        #expect(
            try await service.expectEvents(["notification:created": 1, "badges:update": 1]) {
                try await service.publish(event).status
            } == 201)
        #expect(try await service.expectEvents([:]) { try await service.publish(event).status } == 200)
    }

    @Test func conversations() async throws {
        let pair = Bellhop.CreateConversationBody(kind: .direct, memberIds: ["ada", "ben"])
        let id = try await service.expectEvents(["conversation:updated": 1]) {
            try await ada.createConversation(pair).value.id
        }
        #expect(try await service.expectEvents([:]) { try await ada.createConversation(pair).status } == 200)
        // An event with the own counts for each member, and the counts of the receiver.
        let message = try await service.expectEvents(["message:created": 2, "badges:update": 1]) {
            try await service.send("hi", to: id, as: "ada").value.message.id
        }
        try await service.expectEvents(["conversation:read": 1, "badges:update": 1]) {
            try await service.read(1, of: id, as: "ben")
        }
        try await service.expectEvents([:]) { try await service.read(1, of: id, as: "ben") }
        try await service.expectEvents(["message:deleted": 1]) {
            try await ada.deleteMessage(id: id, messageId: message)
        }
        try await service.expectEvents([:]) { try await ada.deleteMessage(id: id, messageId: message) }
    }

    @Test func requests() async throws {
        let id = try await service.expectEvents(
            ["request:created": 1, "notification:created": 1, "badges:update": 1]
        ) { try await service.ask(.init(kind: .follow, toUserId: "ben"), as: "ada") }
        // Ada hears the answer by a notification of her own, and Ben's no longer asks.
        try await service.expectEvents(
            ["request:updated": 1, "notification:updated": 1, "notification:created": 1, "badges:update": 2]
        ) { try await ben.answerRequest(id: id, .init(status: .accepted)) }
        try await service.expectEvents([:]) { try await ben.answerRequest(id: id, .init(status: .accepted)) }
    }

    @Test func preferences() async throws {
        try await service.expectEvents(["preferences:update": 1]) {
            try await ada.replacePreferences(.init(sound: false))
        }
    }

    @Test func appEvents() async throws {
        func order(to keys: String...) -> [Bellhop.OwnEvent] {
            [.init(event: "order:placed", to: keys, data: ["n": 1])]
        }
        try await service.expectEvents(["order:placed": 1]) {
            try await backend.publish(order(to: "user:ada", "user:ben"))
        }
        #expect(
            try await service.expectEvents([:]) { try await status(of: await backend.publish(order(to: "ada"))) } == 422
        )
    }

    @Test func posts() async throws {
        let id = try await service.expectEvents(["feed:new_post": 1]) { try await service.post("ada").id }
        // A change of the post's row, from which streams collect `engagement_update`.
        try await service.expectEvents([EventLog.change.description: 1]) { try await ben.putLike(id: id, userId: "me") }
        try await service.expectEvents([:]) { try await ben.putLike(id: id, userId: "me") }
        // Changes within a second are published together later.
        try await service.expectEvents([:]) { try await ben.deleteLike(id: id, userId: "me") }
    }
}
