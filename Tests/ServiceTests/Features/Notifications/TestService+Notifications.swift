import BellhopClient
import Domain
import TestSupport
import Testing

extension TestService {
    /// Publishes an event as the tenant's backend, which creates a notification.
    @discardableResult
    func publish(_ event: Bellhop.Event) async throws -> Bellhop.Answer<Bellhop.Notified> {
        try await client(as: .service()).postEvent(event)
    }

    /// Publishes a new event, which has no details.
    func publish(_ id: String, to user: String, tenant: String? = nil) async throws {
        let event = Bellhop.Event(id: id, type: .visitCreated, userId: user)
        #expect(try await client(as: .service(tenant: tenant)).postEvent(event).status == 201)
    }

    @discardableResult
    func notify(_ draft: Bellhop.NotificationDraft) async throws -> Bellhop.Answer<Bellhop.Notified> {
        try await client(as: .service()).postNotification(draft)
    }

    /// Performs one operation of the recount test: usually creates a notification, otherwise changes an old one.
    func randomStep(_ step: Int, user: String, random: inout SeededGenerator) async throws {
        let client = client(user)
        let id = try await all(of: user).map(\.id).randomElement(using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
            let kind = NotificationEvent.Kind.allCases.randomElement(using: &random)!
            // Some ids occur repeatedly.
            let event = "e\(Int.random(in: 0...step, using: &random))"
            try await publish(NotificationsTests.event(event, .init(rawValue: kind.rawValue), to: user))
        case 3..<6:
            let category = ["request", "message", "news"].randomElement(using: &random)!
            let priority = Priority.allCases.randomElement(using: &random)!.rawValue
            let made = try await notify(NotificationsTests.draft(category, .init(rawValue: priority), to: user))
            #expect(made.status == 201)
        case 6, 7:
            guard let id else { return }
            let change = ["seen", "read", "archived"].randomElement(using: &random)!
            let isSet = Bool.random(using: &random)
            try await client.changeNotification(
                id: id,
                .init(
                    seen: change == "seen" ? isSet : nil, read: change == "read" ? isSet : nil,
                    archived: change == "archived" ? isSet : nil))
        case 8:
            guard let id else { return }
            try await client.deleteNotification(id: id)
        default:
            guard let id else { return }
            let category = Bool.random(using: &random) ? "request" : nil
            let change = Bellhop.NotificationStateChange(seen: .random(using: &random))
            try await client.changeNotifications(.init(upTo: id, category: category, set: change))
        }
    }

    /// Returns all stored notifications of a user, oldest first.
    func all(of user: String) async throws -> [Bellhop.Notification] {
        try await client(user).listNotifications(state: .all, limit: 100).value.items.reversed()
    }

    /// Returns the counts of messages, requests, bell, and their total.
    func badges(of user: String) async throws -> [Int] {
        let badges = try await client(user).getBadges().value
        return [badges.messages, badges.requests, badges.bell, badges.total]
    }
}
