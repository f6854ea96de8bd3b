import Database
import Domain
import Push
import Values

/// Push messages to the devices of users: notifications and messages that they have not seen, the number on the icon,
/// and the withdrawal of messages that were seen elsewhere. Each is a message of the ``Outbox`` in the lane of its
/// device.
enum PushFeature {
    static let feature = Feature(
        name: "push", tables: [devices], migrations: [migration], endpoints: endpoints, reaction: reaction,
        locks: ["address"],
        constants: { writer, settings in
            writer.member("push") { push in
                push.member("enabled", settings.push != nil)
                push.member("platforms", (settings.push?.providers ?? []).map { $0.name })
                for provider in PushProviders.all {
                    guard let member = provider.publicKeyMember else { continue }
                    push.member(member, settings.push?.provider(of: provider.name)?.publicKey)
                }
            }
        })

    private static let reaction: Reaction = { tx, fact in
        guard let push = tx.settings.push else { return }
        switch fact {
        case .notificationsCreated(let created):
            let shown = created.map(\.notification).filter {
                !$0.state.isSeen && (push.priorities.contains($0.priority) || push.types.contains($0.type))
            }
            try add(.notification, about: shown.map { ($0.userId, $0.id.text) }, settings: push, tx)
        case .notificationsCleared(let notifications, _):
            for (userId, cleared) in Dictionary(grouping: notifications, by: \.userId) {
                try clear(.notification, cleared.map(\.id.text), of: userId, tx)
            }
        case .messageDelivered(let message, let users):
            try add(.message, about: users.map { ($0, message.conversationId.text) }, settings: push, tx)
        case .conversationRead(let id, let userId):
            try clear(.message, [id.text], of: userId, tx)
        case .badgesChanged(let users):
            try syncBadges(of: users, tx)
        default: break
        }
    }

    /// Adds messages about subjects to all devices of their users.
    private static func add(
        _ type: PushType, about subjects: [(userId: ID<User>, subject: String)], settings push: PushSettings,
        _ tx: Transaction
    ) throws {
        guard !subjects.isEmpty else { return }
        let users = subjects.map(\.userId)
        tx.cache("push.alerted", alerted(tx).union(users))
        let found = try devices(of: users, atMost: PushOutboxLimits.directMax + 1, tx)
        guard !found.isEmpty else { return }
        let isDirect = found.count <= PushOutboxLimits.directMax
        let counts =
            isDirect
            ? Dictionary(grouping: found, by: \.userId).mapValues(\.count) : try deviceCounts(of: users, tx)
        let count = subjects.reduce(0) { $0 + (counts[$1.userId] ?? 0) }
        let delay = try tx.delaySeconds(ofPushes: count, perMinute: PushOutboxLimits.causedPerMinuteMax) {
            try waitingCount(type, about: subjects, devices: counts, tx)
        }
        let (patience, grace) = (Int64(push.afterSeconds), tx.db.engine == .sqlite ? 0 : OutboxLimits.presenceSeconds)
        let dueAt = tx.now.adding(seconds: min(grace, patience) + delay)
        let patientUntil = tx.now.adding(seconds: patience)
        if isDirect {
            let devices = Dictionary(grouping: found, by: \.userId)
            try Outbox.add(
                subjects.flatMap { userId, subject in
                    (devices[userId] ?? []).map {
                        draft(type, subject, to: $0, dueAt: dueAt, patientUntil: patientUntil)
                    }
                }, tx)
        } else {
            let reached = subjects.filter { counts[$0.userId] != nil }
            try Outbox.add(
                reached.map { PushFanOut.draft(type, $0.subject, to: $0.userId, dueAt: dueAt, patientUntil) }, tx)
        }
    }

    /// Returns how many messages about subjects wait already.
    private static func waitingCount(
        _ type: PushType, about subjects: [(userId: ID<User>, subject: String)], devices counts: [ID<User>: Int],
        _ tx: Transaction
    ) throws -> Int {
        try RowParts.ranges(of: subjects.count, most: OutboxLimits.rowsAtOnceMax).reduce(0) { sum, part in
            let waiting = try tx.db.rows(
                """
                SELECT user_id, route, count(*) FROM \(Outbox.messages, within: tx.tenant, Outbox.adding)
                WHERE user_id IN \(values: subjects[part].map(\.userId.text))
                    AND slot IN \(values: Set(subjects[part].map { slot(type, $0.subject) }).sorted())
                    AND state = 0 AND lease = 0 GROUP BY user_id, route
                """
            ) { row in
                // A message that is not distributed yet waits for all devices.
                try row.text(1) == PushFanOut.route ? counts[try row.id(0)] ?? 0 : try row.integer(2)
            }
            return sum + waiting.reduce(0, +)
        }
    }

    /// Removes the messages about subjects that were seen, and withdraws the ones that were sent, or may have been.
    private static func clear(_ type: PushType, _ subjects: [String], of userId: ID<User>, _ tx: Transaction) throws {
        try Outbox.withdraw(subjects.map { slot(type, $0) }, of: userId, tx) { sent in
            let subject = tag(type, String(sent.slot.dropFirst(slot(type, "").count)))
            // The next alert takes the withdrawals along.
            let isCarried = showsEachMessage(sent.lane.route)
            let dueAt = isCarried ? tx.now.adding(seconds: OutboxLimits.sentSeconds) : min(sent.dueAt, tx.now)
            return OutboxWithdrawal(
                type: PushType.withdrawal.rawValue, subject: subject, slot: slot(.withdrawal, subject), dueAt: dueAt)
        }
    }

    /// The users who get an alert about something in this transaction.
    private static func alerted(_ tx: Transaction) -> Set<ID<User>> { tx.cached("push.alerted") { [] } }

    /// Sends the number alone to the devices of users whose counts changed. An alert carries the number itself.
    private static func syncBadges(of users: [ID<User>], _ tx: Transaction) throws {
        let alerted = alerted(tx)
        let others = users.filter { !alerted.contains($0) }
        guard !others.isEmpty else { return }
        let devices = try devices(of: others, tx).filter { !showsEachMessage($0.route) }
        try Outbox.add(
            devices.map { device in
                // The clock may have been ahead when the device was sent its last number.
                let earliest = min(device.badgeAt, tx.now).adding(seconds: PushOutboxLimits.badgePauseSeconds)
                return draft(.badge, "", to: device, dueAt: max(tx.now, earliest))
            }, tx)
    }

    /// Whether the devices of a route show something for each message.
    private static func showsEachMessage(_ route: String) -> Bool {
        PushProviders.all.contains { $0.showsEachMessage && $0.isOn(route) }
    }

    // MARK: Messages

    static func draft(
        _ type: PushType, _ subject: String, to device: RegisteredDevice, dueAt: Timestamp,
        patientUntil: Timestamp? = nil
    ) -> OutboxDraft {
        OutboxDraft(
            lane: device.lane, userId: device.userId, device: device.id.text, type: type.rawValue, subject: subject,
            slot: slot(type, subject), dueAt: dueAt, patientUntil: patientUntil)
    }

    /// A device has one message about each subject: the next one replaces it.
    static func slot(_ type: PushType, _ subject: String) -> String { "\(type.rawValue) \(subject)" }

    /// Returns the tag of all messages about a subject. A device replaces and removes messages by their tag.
    static func tag(_ type: PushType, _ subject: String) -> String {
        type == .message ? "conversation:\(subject)" : subject
    }
}
