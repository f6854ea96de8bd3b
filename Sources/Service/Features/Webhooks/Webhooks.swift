import Database
import Domain
import Values
import Visibility

/// Webhooks to the app's own server: notifications and messages that reached no device, their withdrawal, and changes of
/// bookings. Each is a message of the ``Outbox`` on the route of ``WebhookChannel``.
enum WebhooksFeature {
    static let feature = Feature(
        name: "webhooks", endpoints: endpoints, reaction: reaction)

    static let reaction: Reaction = { tx, fact in
        guard let webhook = tx.settings.webhook else { return }
        switch fact {
        case .notificationsCreated(let created): try add(created.map(\.notification), webhook, tx)
        case .notificationsCleared(let notifications, let isRemoved):
            for (userId, cleared) in Dictionary(grouping: notifications, by: \.userId) {
                try withdraw(cleared, of: userId, isRemoved: isRemoved, tx)
            }
        case .messageDelivered(let message, let users):
            if webhook.sendsMessages { try add(message, to: users, webhook, tx) }
        case .conversationRead(let id, let userId): try withdraw(id, of: userId, tx)
        case .bookingChanged(let booking, let previous): try add(booking, previous, tx)
        default: break
        }
    }

    private static func add(_ created: [Notification], _ webhook: WebhookSettings, _ tx: Transaction) throws {
        let shown = created.filter { webhook.priorities.contains($0.priority) && !$0.state.isSeen }
        try Outbox.add(
            shown.map { draft(.unreached, $0.id.text, of: $0.userId, data: JSONWriter.bytes($0), webhook, tx) }, tx)
    }

    /// Withdraws the webhooks about notifications.
    private static func withdraw(
        _ notifications: [Notification], of userId: ID<User>, isRemoved: Bool, _ tx: Transaction
    ) throws {
        let bySlot = Dictionary(notifications.map { (slot(.unreached, $0.id.text), $0) }) { $1 }
        try Outbox.withdraw(notifications.map { slot(.unreached, $0.id.text) }, of: userId, tx) { sent in
            bySlot[sent.slot].map { notification in
                let data = JSONWriter.object { writer in
                    notification.write(membersTo: &writer)
                    writer.member("reason", isRemoved ? "removed" : "seen")
                }
                return withdrawal(.withdrawn, notification.id.text, data: data, tx)
            }
        }
    }

    /// Adds a webhook for each member. Its content is read when it is sent.
    private static func add(
        _ message: Message, to users: [ID<User>], _ webhook: WebhookSettings, _ tx: Transaction
    ) throws {
        let data = EncodedJSON.emptyObject.bytes
        try Outbox.add(
            users.map { draft(.messageUnreached, message.conversationId.text, of: $0, data: data, webhook, tx) }, tx)
    }

    private static func withdraw(_ id: ID<Conversation>, of userId: ID<User>, _ tx: Transaction) throws {
        try Outbox.withdraw([slot(.messageUnreached, id.text)], of: userId, tx) { _ in
            let data = JSONWriter.object { writer in
                writer.member("conversationId", id)
                writer.member("userId", userId)
                writer.member("reason", "read")
            }
            return withdrawal(.messageWithdrawn, id.text, data: data, tx)
        }
    }

    private static func add(_ booking: Booking, _ previous: Booking?, _ tx: Transaction) throws {
        let data = JSONWriter.object { writer in
            booking.write(membersTo: &writer, medianMinutes: nil, epoch: tx.epoch)
            writer.member("previousStatus", previous?.status.rawValue)
        }
        // The rows of a user's lane change under the user's lock.
        if let userId = booking.userId { try tx.lock(.user(userId)) }
        let name =
            booking.userId.map { AudienceKey.make("user", $0.text) } ?? AudienceKey.make("booking", booking.id.text)
        try Outbox.add(
            [
                OutboxDraft(
                    lane: lane(name), userId: booking.userId, type: WebhookType.bookingChanged.rawValue,
                    subject: booking.id.text, id: tx.makeID(OutboxDraft.self).text, dueAt: tx.now, data: data)
            ], tx)
    }

    // MARK: Drafts

    /// The webhooks that are sent one after the other: all of a user, or all of one booking.
    private static func lane(_ name: String) -> OutboxLane {
        OutboxLane(name: Outbox.laneName(.webhooks, name), route: WebhookType.channel)
    }

    static func slot(_ type: WebhookType, _ subject: String) -> String { "\(type.rawValue) \(subject)" }

    /// Returns a webhook that waits for its user to see the subject. Without waiting, a user with a stream still has the
    /// time to see it; with several replicas, each has a moment to say so.
    private static func draft(
        _ type: WebhookType, _ subject: String, of userId: ID<User>, data: [UInt8], _ webhook: WebhookSettings,
        _ tx: Transaction
    ) -> OutboxDraft {
        let patientUntil = tx.now.adding(seconds: Int64(webhook.afterSeconds))
        let grace = tx.db.engine == .sqlite ? 0 : min(OutboxLimits.presenceSeconds, Int64(webhook.afterSeconds))
        return OutboxDraft(
            lane: lane(AudienceKey.make("user", userId.text)), userId: userId, type: type.rawValue, subject: subject,
            slot: slot(type, subject), id: tx.makeID(OutboxDraft.self).text,
            dueAt: webhook.isImmediate ? tx.now.adding(seconds: grace) : patientUntil,
            patientUntil: webhook.isImmediate ? patientUntil : nil, data: data)
    }

    private static func withdrawal(
        _ type: WebhookType, _ subject: String, data: [UInt8], _ tx: Transaction
    ) -> OutboxWithdrawal {
        OutboxWithdrawal(
            type: type.rawValue, subject: subject, slot: slot(type, subject), id: tx.makeID(OutboxDraft.self).text,
            dueAt: tx.now, data: data)
    }
}

extension WebhookType {
    /// Whether the receiver learns if the user's quiet hours last.
    var namesQuietHours: Bool { self != .bookingChanged && self != .messageWithdrawn }
}
