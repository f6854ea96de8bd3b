import BellhopClient
import TestSupport
import Testing

@testable import Service

/// The events of each operation: exactly these, and no others. An operation that changes nothing publishes nothing.
@Suite(.timed) struct PublishedEventsTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// Sends a request, whose events must be exactly the expected ones.
    @discardableResult
    private func expect(
        _ expected: [String: Int], _ method: String, _ path: String, as identity: TestService.Identity,
        _ body: String? = nil, status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ServiceAnswer {
        try await service.expectEvents(expected, sourceLocation: sourceLocation) {
            let answer = try await service.call(method, path, as: identity, body)
            #expect(answer.status == status, "\(answer.refusal)", sourceLocation: sourceLocation)
            return answer
        }
    }

    private static let (ada, ben, backend) = (
        TestService.Identity.user("ada"), TestService.Identity.user("ben"), TestService.Identity.service()
    )

    @Test func notifications() async throws {
        let draft = NotificationsTests.draft("visit", "HIGH", to: "ada")
        let made = try await expect(
            ["notification:created": 1, "badges:update": 1], "POST", "/v1/notifications", as: Self.backend, draft,
            status: 201)
        let path = "/v1/notifications/\(try made.notificationID)"
        try await expect(
            ["notification:updated": 1, "badges:update": 1], "PATCH", path, as: Self.ada, #"{"seen":true}"#)
        try await expect([:], "PATCH", path, as: Self.ada, #"{"seen":true}"#)
        try await expect(["notification:updated": 1], "PATCH", path, as: Self.ada, #"{"read":true}"#)
        try await expect(["notification:removed": 1], "DELETE", path, as: Self.ada)
        try await expect([:], "DELETE", path, as: Self.ada, status: 404)
    }

    @Test func repeatedEvent_publishesNothing() async throws {
        let event = NotificationsTests.event("evt-1")
        let first = ["notification:created": 1, "badges:update": 1]
        try await expect(first, "POST", "/v1/events", as: Self.backend, event, status: 201)
        try await expect([:], "POST", "/v1/events", as: Self.backend, event)
    }

    @Test func conversations() async throws {
        let pair = #"{"kind":"direct","memberIds":["ada","ben"]}"#
        let made = try await expect(
            ["conversation:updated": 1], "POST", "/v1/conversations", as: Self.ada, pair, status: 201)
        let id = try #require(made.json["conversation"]["id"].string ?? made.json["id"].string)
        try await expect([:], "POST", "/v1/conversations", as: Self.ada, pair)
        let path = "/v1/conversations/\(id)"
        // An event with the own counts for each member, and the counts of the receiver.
        let sent = ["message:created": 2, "badges:update": 1]
        let message = try await expect(
            sent, "POST", "\(path)/messages", as: Self.ada, #"{"text":"hi"}"#, status: 201)
        let read = ["conversation:read": 1, "badges:update": 1]
        try await expect(read, "PUT", "\(path)/read-position", as: Self.ben, #"{"sequence":1}"#)
        try await expect([:], "PUT", "\(path)/read-position", as: Self.ben, #"{"sequence":1}"#)
        let messageId = try #require(message.json["message"]["id"].string)
        try await expect(["message:deleted": 1], "DELETE", "\(path)/messages/\(messageId)", as: Self.ada)
        try await expect([:], "DELETE", "\(path)/messages/\(messageId)", as: Self.ada)
    }

    @Test func requests() async throws {
        let follow = #"{"kind":"follow","toUserId":"ben"}"#
        let made = try await expect(
            ["request:created": 1, "notification:created": 1, "badges:update": 1], "POST", "/v1/requests",
            as: Self.ada, follow, status: 201)
        let id = try #require(made.json["request"]["id"].string ?? made.json["id"].string)
        // Ada hears the answer by a notification of her own, and Ben's no longer asks.
        try await expect(
            ["request:updated": 1, "notification:updated": 1, "notification:created": 1, "badges:update": 2],
            "PATCH", "/v1/requests/\(id)", as: Self.ben, #"{"status":"accepted"}"#)
        try await expect([:], "PATCH", "/v1/requests/\(id)", as: Self.ben, #"{"status":"accepted"}"#)
    }

    @Test func preferences() async throws {
        try await expect(["preferences:update": 1], "PUT", "/v1/preferences", as: Self.ada, #"{"sound":false}"#)
    }

    @Test func appEvents() async throws {
        let event = #"{"event":"order:placed","to":["user:ada","user:ben"],"data":{"n":1}}"#
        try await expect(["order:placed": 1], "POST", "/v1/publish", as: Self.backend, event, status: 202)
        try await expect(
            [:], "POST", "/v1/publish", as: Self.backend, #"{"event":"order:placed","to":["ada"],"data":{}}"#,
            status: 422)
    }

    @Test func posts() async throws {
        let post = #"{"text":"hello","visibility":"public"}"#
        let made = try await expect(["feed:new_post": 1], "POST", "/v1/posts", as: Self.ada, post, status: 201)
        let id = try #require(made.json["id"].string ?? made.json["post"]["id"].string)
        // A change of the post's row, from which streams collect `engagement_update`.
        let liked = [EventLog.change.description: 1]
        try await expect(liked, "PUT", "/v1/posts/\(id)/likes/me", as: Self.ben)
        try await expect([:], "PUT", "/v1/posts/\(id)/likes/me", as: Self.ben)
        // Changes within a second are published together later.
        try await expect([:], "DELETE", "/v1/posts/\(id)/likes/me", as: Self.ben)
    }
}
