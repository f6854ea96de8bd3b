import BellhopClient
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

    @Test func membersOfAConversation() async throws {
        let id = try await service.converse("ada", "ben")
        try await service.expectEvents(["conversation:updated": 1]) {
            try await ada.addMember(id: id, userId: "cem")
        }
        try await service.expectEvents([:]) { try await ada.addMember(id: id, userId: "cem") }
        // One event for the member who leaves, one for the others.
        try await service.expectEvents(["conversation:removed": 1, "conversation:updated": 1]) {
            try await service.client("cem").removeMember(id: id, userId: "cem")
        }
        #expect(
            try await service.expectEvents([:]) {
                try await status(of: await ada.removeMember(id: id, userId: "ben"))
            } == 403)
    }

    @Test func bookings() async throws {
        try await backend.replaceShop(id: "s1", .init(name: "The Cut Club", timeZone: "UTC"))
        try await service.expectEvents(["queue:update": 1]) {
            try await backend.replaceBarber(id: "s1", barberId: "b1", .init(onDuty: true))
        }
        let staff = service.client(as: .staff(of: "s1"))
        // The customer's devices show the own booking as well. It counts nothing.
        let made = try await service.expectEvents(["booking:status_change": 1, "notification:created": 1]) {
            try await ada.createBooking(BookingsTests.draft("2026-01-10T12:00:00Z")).value
        }
        #expect(
            try await service.expectEvents([:]) {
                try await status(of: await ben.createBooking(BookingsTests.draft("2026-01-10T12:10:00Z")))
            } == 409)
        let answered = [
            "booking:status_change": 1, "queue:update": 1, "notification:created": 1, "badges:update": 1,
        ]
        let confirmed = try await service.expectEvents(answered) {
            try await staff.change(made, .init(status: .confirmed)).value
        }
        #expect(
            try await service.expectEvents([:]) {
                try await status(of: await staff.change(made, .init(status: .cancelled)))
            } == 412)
        try await service.expectEvents(answered) {
            try await staff.change(confirmed, .init(arrived: true))
        }
    }

    @Test func memberships() async throws {
        let probe = try FeedProbe()
        func member(_ id: String, of team: String) -> JSON {
            School.insert(
                "members", ["id": .string(id), "tenant": "default", "user_id": "ada", "team_id": .string(team)])
        }
        // The keys of open streams change by an internal event.
        let first = try await probe.service.expectEvents([EventLog.change.description: 1]) {
            try await probe.send(member("m1", of: "t1"))
        }
        #expect(first.counts == [202, 1, 0, 0])
        // Of a batch, the accepted row alone.
        let unknown = School.insert("salaries", ["id": "1"])
        let batch = try await probe.service.expectEvents([EventLog.change.description: 1]) {
            try await probe.send(.array([unknown, member("m2", of: "t2")]))
        }
        #expect(batch.counts == [202, 1, 0, 1])
        let refused = try await probe.service.expectEvents([:]) {
            try await probe.send(member("m3", of: "t3"), with: ["X-Webhook-Secret": "wrong"])
        }
        #expect(refused.status == 401)
    }

    @Test func requests() async throws {
        let id = try await service.expectEvents(
            ["request:created": 1, "notification:created": 1, "badges:update": 1]
        ) { try await service.ask(.init(kind: .follow, toUserId: "ben"), as: "ada") }
        // Ada gets the answer as a notification, and Ben's notification no longer asks.
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

    @Test func followers() async throws {
        try await service.expectEvents(["follow:changed": 1]) { try await ben.follow(id: "ada", followerId: "me") }
        try await service.expectEvents([:]) { try await ben.follow(id: "ada", followerId: "me") }
        try await service.expectEvents(["follow:changed": 1]) { try await ben.unfollow(id: "ada", followerId: "me") }
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
