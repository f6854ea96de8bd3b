import Domain
import Testing

@testable import Service

extension NotificationsProbe {
    /// One operation of the recount test: mostly new notifications, or any change of an old one.
    func randomStep(_ step: Int, user: String, random: inout SplitMix64) async throws {
        let known = try await all(of: user).compactMap { $0["id"].text }
        let id = known.randomElement(using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
            let kind = NotificationEvent.Kind.allCases.randomElement(using: &random)!
            // Some ids come again.
            let event = "e\(Int.random(in: 0...step, using: &random))"
            let body = NotificationsTests.event(event, kind.rawValue, to: user)
            let status = try await call("POST", "/v1/events", as: .service, body).status
            #expect(status == 201 || status == 200)
        case 3..<6:
            let category = ["request", "message", "news"].randomElement(using: &random)!
            let priority = Priority.allCases.randomElement(using: &random)!.rawValue
            let body = NotificationsTests.draft(category, priority, to: user)
            #expect(try await call("POST", "/v1/notifications", as: .service, body).status == 201)
        case 6, 7:
            guard let id else { return }
            let change = ["seen", "read", "archived"].randomElement(using: &random)!
            let body = #"{"\#(change)":\#(Bool.random(using: &random))}"#
            #expect(try await call("PATCH", "/v1/notifications/\(id)", as: .user(user), body).status == 200)
        case 8:
            guard let id else { return }
            #expect(try await call("DELETE", "/v1/notifications/\(id)", as: .user(user)).status == 200)
        default:
            guard let id else { return }
            let category = Bool.random(using: &random) ? #","category":"request""# : ""
            let body = #"{"upTo":"\#(id)"\#(category),"set":{"seen":\#(Bool.random(using: &random))}}"#
            #expect(try await call("PATCH", "/v1/notifications", as: .user(user), body).status == 200)
        }
    }

    /// All that is kept of a user, oldest first.
    func all(of user: String) async throws -> [JSONValue] {
        try await call("GET", "/v1/notifications?state=all&limit=100", as: .user(user)).items.reversed()
    }

    /// messages, requests, bell, total.
    func badges(of user: String) async throws -> [Int] {
        let json = try await call("GET", "/v1/badges", as: .user(user)).json
        return try ["messages", "requests", "bell", "total"].map { try #require(json[$0].number) }
    }

    /// The rule of the domain, asked of a notification as a client sees it.
    static func rank(_ json: JSONValue) throws -> EvictionRule.Rank {
        func moment(_ name: String) -> Timestamp? { json[name].text.flatMap(Timestamp.init(rfc3339:)) }
        return EvictionRule.rank(
            of: Notification(
                id: ID(try #require(json["id"].text)), eventId: nil, userId: ID("u1"), type: .system, category: .system,
                priority: try #require(json["priority"].text.flatMap(Priority.init(rawValue:))), title: "", message: "",
                lockScreen: "", data: [], delivery: Delivery(sounds: false, vibrates: false),
                createdAt: try #require(moment("createdAt")),
                state: NotificationState(
                    seenAt: moment("seenAt"), readAt: moment("readAt"), archivedAt: moment("archivedAt"))))
    }
}

extension JSONValue {
    /// A member of an object; null if there is none, which tests compare with.
    subscript(_ name: String) -> JSONValue {
        guard case .object(let members) = self else { return .null }
        return members[name] ?? .null
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }
    var number: Int? { if case .integer(let number) = self { Int(number) } else { nil } }
}
