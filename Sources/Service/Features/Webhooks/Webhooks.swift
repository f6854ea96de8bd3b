import Database
import Domain
import Values
import Visibility

/// Webhooks to the app's own server: notifications and messages that reached no device, their withdrawal, and changes of
/// bookings.
///
/// A row of the outbox is written in the transaction of its cause, and deleted in the transaction that makes it
/// obsolete. So an existing row proves that its notification or message is still unseen. ``WebhookSender`` sends the due
/// rows.
enum WebhooksFeature {
    static let feature = Feature(
        name: "webhooks", tables: [outbox], migrations: migrations, endpoints: endpoints, reaction: reaction)

    static let reaction: Reaction = { tx, fact in
        guard let webhook = tx.settings.webhook else { return }
        switch fact {
        case .notificationsCreated(let created): try add(created, webhook, tx)
        case .notificationsCleared(let notifications, let isRemoved):
            for notifications in Dictionary(grouping: notifications, by: \.userId).values {
                try withdraw(notifications, isRemoved: isRemoved, tx)
            }
        case .messageDelivered(let message, let users):
            if webhook.sendsMessages { try add(message, to: users, webhook, tx) }
        case .conversationRead(let id, let userId): try withdraw(id, of: userId, tx)
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

    /// Deletes the unsent webhooks. Sends a withdrawal after webhooks that were sent, or may have been.
    private static func withdraw(_ notifications: [Notification], isRemoved: Bool, _ tx: Transaction) throws {
        guard let userId = notifications.first?.userId else { return }
        let taken = try withdrawRows(notifications.map(\.id.text), .unreached, of: userId, tx).filter(\.isMaybeSent)
        guard !taken.isEmpty else { return }
        let byID = Dictionary(uniqueKeysWithValues: notifications.map { ($0.id.text, $0) })
        try insert(
            taken.sorted { $0.number < $1.number }.compactMap { taken in
                guard let notification = byID[taken.subject] else { return nil }
                let data = JSONWriter.object { writer in
                    notification.write(membersTo: &writer)
                    writer.member("reason", isRemoved ? "removed" : "seen")
                }
                return WebhookDraft(
                    .withdrawn, of: userId, about: notification.id.text, preferences: taken.preferences, dueAt: tx.now,
                    // Not before the end of the first attempt, which it would otherwise overtake.
                    notBefore: taken.leasedUntil, data: data)
            }, tx)
    }

    /// Adds a webhook for each member who has none waiting about the conversation. Its content is read when it is sent.
    private static func add(
        _ message: Message, to users: [ID<User>], _ webhook: WebhookSettings, _ tx: Transaction
    ) throws {
        let subject = message.conversationId.text
        let waiting = try usersWithWaiting(subject, among: users, tx)
        let others = users.filter { !waiting.contains($0) }
        // A webhook that was sent may have to be withdrawn, whatever happens to the new one.
        let sentAt = try takeSent(subject, of: others, tx)
        let dueAt = tx.now.adding(seconds: Int64(webhook.afterSeconds))
        try insert(
            others.map {
                WebhookDraft(
                    .messageUnreached, of: $0, about: subject, dueAt: dueAt, data: EncodedJSON.emptyObject.bytes,
                    sentAt: sentAt[$0])
            }, tx)
    }

    /// Deletes the unsent webhooks about a conversation. Sends a withdrawal after webhooks that were sent, or may have
    /// been.
    private static func withdraw(_ id: ID<Conversation>, of userId: ID<User>, _ tx: Transaction) throws {
        let taken = try withdrawRows([id.text], .messageUnreached, of: userId, tx).filter(\.isMaybeSent)
        guard let last = taken.map(\.leasedUntil).max() else { return }
        let data = JSONWriter.object { writer in
            writer.member("conversationId", id)
            writer.member("reason", "read")
        }
        try insert(
            [
                WebhookDraft(
                    .messageWithdrawn, of: userId, about: id.text, dueAt: tx.now, notBefore: last, data: data)
            ], tx)
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

/// A webhook to be added to the outbox.
struct WebhookDraft: Sendable {
    let type: WebhookType
    /// Nil for the booking of a customer without an account.
    let userId: ID<User>?
    /// The id of the notification, the conversation or the booking.
    let subject: String
    /// The user's preferences for a notification. Quiet hours are included when it is sent.
    let preferences: Preferences?
    let dueAt: Timestamp
    let notBefore: Timestamp
    /// A JSON object.
    let data: [UInt8]
    /// When an earlier webhook about the subject was sent, which this one replaces.
    let sentAt: Timestamp?

    init(
        _ type: WebhookType, of userId: ID<User>?, about subject: String, preferences: Preferences? = nil,
        dueAt: Timestamp, notBefore: Timestamp? = nil, data: [UInt8],
        sentAt: Timestamp? = nil
    ) {
        (self.type, self.userId, self.subject, self.preferences) = (type, userId, subject, preferences)
        (self.dueAt, self.notBefore, self.data) = (dueAt, max(dueAt, notBefore ?? dueAt), data)
        self.sentAt = sentAt
    }

    /// The webhooks that are sent one after the other: all of a user, or all of one booking.
    var lane: String { userId.map(WebhookLane.of) ?? AudienceKey.make("booking", subject) }
}

enum WebhookLane {
    static func of(_ userId: ID<User>) -> String { AudienceKey.make("user", userId.text) }
}
