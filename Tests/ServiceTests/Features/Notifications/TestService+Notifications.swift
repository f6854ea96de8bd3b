import BellhopClient
import Domain
import Rows
import TestSupport
import Testing
import Values

@testable import Service

extension TestService {
    /// Publishes an event as the tenant's backend, which creates a notification.
    func publish(_ event: String) async throws -> ServiceAnswer {
        try await call("POST", "/v1/events", as: .service(), event)
    }

    func notify(_ draft: String) async throws -> ServiceAnswer {
        try await call("POST", "/v1/notifications", as: .service(), draft)
    }

    /// Performs one operation of the recount test: usually creates a notification, otherwise changes an old one.
    func randomStep(_ step: Int, user: String, random: inout SeededGenerator) async throws {
        let known = try await all(of: user).compactMap { $0["id"].string }
        let id = known.randomElement(using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
            let kind = NotificationEvent.Kind.allCases.randomElement(using: &random)!
            // Some ids occur repeatedly.
            let event = "e\(Int.random(in: 0...step, using: &random))"
            let body = NotificationsTests.event(event, kind.rawValue, to: user)
            let status = try await publish(body).status
            #expect(status == 201 || status == 200)
        case 3..<6:
            let category = ["request", "message", "news"].randomElement(using: &random)!
            let priority = Priority.allCases.randomElement(using: &random)!.rawValue
            let body = NotificationsTests.draft(category, priority, to: user)
            #expect(try await notify(body).status == 201)
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

    /// Returns all stored notifications of a user, oldest first.
    func all(of user: String) async throws -> [JSON] {
        try await call("GET", "/v1/notifications?state=all&limit=100", as: .user(user)).items.reversed()
    }

    /// Returns the counts of messages, requests, bell, and their total.
    func badges(of user: String) async throws -> [Int] {
        let json = try await call("GET", "/v1/badges", as: .user(user)).json
        return try ["messages", "requests", "bell", "total"].map { try #require(json[$0].int) }
    }
}
