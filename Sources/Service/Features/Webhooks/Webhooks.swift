import Database
import Domain
import Values
import Visibility

/// What the app's own server is told: notifications that reached nobody, their withdrawal, and changes of bookings.
///
/// A row of the outbox is written in the transaction of what it is about, and taken back in the transaction that makes it
/// void: so the row that is there is the proof that its notification is still unseen. ``WebhookSender`` sends what is due.
enum WebhooksFeature {
    static let feature = Feature(
        name: "webhooks", tables: [outbox], migrations: [migration], endpoints: endpoints, reaction: reaction)

    static let reaction: Reaction = { tx, fact in
        guard let webhook = tx.settings.webhook else { return }
        switch fact {
        case .notificationsCreated(let created): try add(created, webhook, tx)
        case .notificationsNoticed(let notifications, let isRemoved):
            for notifications in Dictionary(grouping: notifications, by: \.userId).values {
                try withdraw(notifications, isRemoved: isRemoved, tx)
            }
        case .preferencesChanged(let preferences, let userId): try store(preferences, of: userId, tx)
        case .bookingChanged(let booking, let previous): try add(booking, previous, tx)
        default: break
        }
    }

    private static func add(
        _ created: [(notification: Notification, preferences: Preferences)], _ webhook: WebhookSettings,
        _ tx: Transaction
    ) throws {
        let dueAt = tx.now.adding(seconds: Int64(webhook.afterSeconds))
        try insert(
            created.compactMap { notification, preferences in
                guard webhook.priorities.contains(notification.priority), !notification.state.isSeen else { return nil }
                return WebhookDraft(
                    .unreached, of: notification.userId, about: notification.id.text, preferences: preferences,
                    dueAt: dueAt, data: JSONWriter.bytes(notification))
            }, tx)
    }

    /// Takes back what was not sent yet, and follows what was, or may have been, by its withdrawal.
    private static func withdraw(_ notifications: [Notification], isRemoved: Bool, _ tx: Transaction) throws {
        guard let userId = notifications.first?.userId else { return }
        let taken = try takeBack(notifications.map(\.id), of: userId, tx).filter(\.isMaybeSent)
        guard !taken.isEmpty else { return }
        let byID = Dictionary(uniqueKeysWithValues: notifications.map { ($0.id, $0) })
        try insert(
            taken.sorted { $0.number < $1.number }.compactMap { taken in
                guard let notification = byID[taken.notificationId] else { return nil }
                let data = JSONWriter.object { writer in
                    notification.write(membersTo: &writer)
                    writer.member("reason", isRemoved ? "removed" : "seen")
                }
                return WebhookDraft(
                    .withdrawn, of: userId, about: notification.id.text, preferences: taken.preferences, dueAt: tx.now,
                    // Not while the first one is on its way, which it would overtake.
                    notBefore: taken.leasedUntil, data: data)
            }, tx)
    }

    private static func add(_ booking: Booking, _ previous: Booking?, _ tx: Transaction) throws {
        let data = JSONWriter.object { writer in
            booking.write(membersTo: &writer, medianMinutes: nil, epoch: tx.epoch)
            writer.member("previousStatus", previous?.status.rawValue)
        }
        try insert(
            [WebhookDraft(.bookingChanged, of: booking.userId, about: booking.id.text, dueAt: tx.now, data: data)], tx)
    }
}

/// A webhook as it goes into the outbox.
struct WebhookDraft: Sendable {
    let type: WebhookType
    /// Nil for the booking of somebody without an account.
    let userId: ID<User>?
    /// The notification's or the booking's id.
    let subject: String
    /// The user's, where it is about a notification: quiet hours are said when it is sent.
    let preferences: Preferences?
    let dueAt: Timestamp
    let notBefore: Timestamp
    /// A JSON object.
    let data: [UInt8]

    init(
        _ type: WebhookType, of userId: ID<User>?, about subject: String, preferences: Preferences? = nil,
        dueAt: Timestamp, notBefore: Timestamp? = nil, data: [UInt8]
    ) {
        (self.type, self.userId, self.subject, self.preferences) = (type, userId, subject, preferences)
        (self.dueAt, self.notBefore, self.data) = (dueAt, max(dueAt, notBefore ?? dueAt), data)
    }

    /// What is sent one after the other: all of a user, or all of one booking.
    var lane: String { userId.map(WebhookLane.of) ?? AudienceKey.make("booking", subject) }
}

enum WebhookLane {
    static func of(_ userId: ID<User>) -> String { AudienceKey.make("user", userId.text) }
}
