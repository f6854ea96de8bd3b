import Database
import Domain
import Push
import Values

/// Push messages to the devices of users: notifications and messages that they have not seen, the number on the icon,
/// and the withdrawal of what was seen elsewhere.
///
/// A row of the outbox is written in the transaction of its cause, for each device, and deleted in the transaction that
/// makes it obsolete. So an existing row proves that its subject is still unseen. ``PushSender`` sends the due rows and
/// reads their content only then.
enum PushFeature {
    static let feature = Feature(
        name: "push", tables: [devices, outbox], migrations: migrations, endpoints: endpoints, reaction: reaction,
        locks: ["address"],
        constants: { writer, settings in
            writer.member("push") { push in
                push.member("enabled", settings.push != nil)
                push.member("platforms", (settings.push?.platforms ?? []).map(\.rawValue))
                push.member("webPushKey", settings.push?.webPush?.publicKey)
            }
        })

    private static let reaction: Reaction = { tx, fact in
        guard let push = tx.settings.push else { return }
        switch fact {
        case .notificationsCreated(let created):
            let shown = created.map(\.notification).filter {
                push.priorities.contains($0.priority) && !$0.state.isSeen
            }
            try add(.notification, shown.map { ($0.userId, $0.id.text) }, push, tx)
        case .notificationsCleared(let notifications, _):
            for (userId, cleared) in Dictionary(grouping: notifications, by: \.userId) {
                try clear(.notification, cleared.map(\.id.text), of: userId, tx)
            }
        case .messageDelivered(let message, let users):
            try add(.message, users.map { ($0, message.conversationId.text) }, push, tx)
        case .conversationRead(let id, let userId):
            try clear(.message, [id.text], of: userId, tx)
        case .badgesFell(let users):
            try syncBadges(of: users, tx)
        default: break
        }
    }

    /// Adds messages about subjects to all devices of their users.
    private static func add(
        _ type: PushType, _ subjects: [(userId: ID<User>, subject: String)], _ push: PushSettings, _ tx: Transaction
    ) throws {
        guard !subjects.isEmpty else { return }
        let devices = Dictionary(grouping: try devices(of: subjects.map(\.userId), tx), by: \.userId)
        guard !devices.isEmpty else { return }
        let count = subjects.reduce(0) { $0 + (devices[$1.userId]?.count ?? 0) }
        let delay = try tx.delaySeconds(ofPushes: count, perMinute: PushOutboxLimits.causedPerMinuteMax) {
            try waitingCount(type, subjects, tx)
        }
        let dueAt = firstDue(push, tx).adding(seconds: delay)
        try insert(
            subjects.flatMap { userId, subject in
                (devices[userId] ?? []).map {
                    Draft(type: type, subject: subject, device: $0.id, userId: userId, dueAt: dueAt)
                }
            }, tx)
        tx.wakeSenders()
    }

    /// Returns when a message is sent if no replica says that its user has a stream. The sender postpones it otherwise.
    private static func firstDue(_ push: PushSettings, _ tx: Transaction) -> Timestamp {
        let grace = tx.db.engine == .sqlite ? 0 : PushOutboxLimits.presenceSeconds
        return tx.now.adding(seconds: min(grace, Int64(push.afterSeconds)))
    }

    /// Removes the messages about subjects that were seen, and withdraws those that were sent, or may have been.
    private static func clear(_ type: PushType, _ subjects: [String], of userId: ID<User>, _ tx: Transaction) throws {
        let devices = try devices(of: [userId], tx)
        guard !devices.isEmpty, try take(type, subjects, of: userId, devices, tx) else { return }
        tx.wakeSenders()
    }

    /// Sends the number alone to the devices of users whose counts fell.
    private static func syncBadges(of users: [ID<User>], _ tx: Transaction) throws {
        let devices = try devices(of: users, tx).filter { $0.platform != .webPush }
        guard !devices.isEmpty else { return }
        try insert(
            devices.map { device in
                // The clock may have been ahead when the device was sent its last number.
                let earliest = min(device.badgeAt, tx.now).adding(seconds: PushOutboxLimits.badgePauseSeconds)
                return Draft(
                    type: .badge, subject: "", device: device.id, userId: device.userId, dueAt: max(tx.now, earliest))
            }, tx)
        tx.wakeSenders()
    }

    /// Returns the tag by which a device shows and removes messages about a subject.
    static func tag(_ type: PushType, _ subject: String) -> String {
        type == .message ? "conversation:\(subject)" : subject
    }
}
