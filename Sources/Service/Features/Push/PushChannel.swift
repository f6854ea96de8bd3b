import Database
import Domain
import Logging
import Push
import Values

/// Push messages by one provider.
final class PushChannel: Channel {
    let name: String
    let family = OutboxFamily.push
    let limits: ChannelLimits

    private let provider: any PushProvider
    private let push: PushSettings
    private let sources: PushSources
    private let client: PushClient

    init(
        _ provider: any PushProvider, _ push: PushSettings, _ sources: PushSources, _ shares: TenantShares, clock: Clock
    ) {
        (self.provider, self.push, self.sources, name) = (provider, push, sources, provider.name)
        limits = ChannelLimits(
            slots: PushOutboxLimits.slots, tenantSlots: PushOutboxLimits.tenantSlots,
            timeoutSeconds: push.timeoutSeconds, keepsDead: false, minuteMax: { shares.push(of: $0) })
        client = PushClient(push, clock: clock)
    }

    func start() { client.start() }

    func stop() { client.stop() }

    func isAlert(_ type: String) -> Bool { PushType(rawValue: type)?.isAlert == true }

    /// Leaves messages out for devices with an address that no key opens. Another replica may have the key: while keys are
    /// replaced, the first restarted replica encrypts with a key that the others do not have yet.
    var condition: SQL? {
        """
        NOT EXISTS (
            SELECT 1 FROM \(PushFeature.devices, unscoped: Outbox.sending) AS d
            JOIN \(Outbox.allMessages) AS m
                ON m.tenant = l.tenant AND m.lane = l.lane AND m.state = 0
            WHERE d.tenant = l.tenant AND d.user_id = m.user_id AND d.id = m.device_id
                AND \(PushFeature.isUnreadable("d.address", push.keys)))
        """
    }

    // MARK: Lines of the log

    func line(for outcome: OutboxOutcome) -> OutboxLine? {
        let message: Logger.Message
        let reason: String
        switch outcome {
        case .misconfigured(let why, _):
            (message, reason) = ("A push service does not accept the key or another setting. See Docs/push.md.", why)
        case .failed(let why, _): (message, reason) = ("A push message was not accepted.", why)
        default: return nil
        }
        return OutboxLine(message: message, metadata: ["platform": "\(name)", "reason": "\(reason)"])
    }

    var recoveryLine: OutboxLine? {
        OutboxLine(message: "Push messages are accepted again.", metadata: ["platform": "\(name)"])
    }

    // MARK: Content

    func delivery(
        of attempt: OutboxAttempt, at now: Timestamp, in db: DatabaseConnection
    ) throws -> (any OutboxDelivery)? {
        guard let owner = attempt.owner else { return nil }
        guard let type = PushType(rawValue: attempt.type) else {
            throw DatabaseError(.corrupt, "a stored message has an unknown type")
        }
        let id = ID<Device>(attempt.device)
        guard let device = try PushFeature.storedDevice(id, owner, in: db),
            let address = push.keys.open(device.address, context: PushFeature.place(of: id, owner)),
            let target = provider.target(stored: address)
        else { return nil }
        let badge = try BadgeLedger.counts(of: owner, at: now, in: db).total
        // The device shows this number already.
        if type == .badge, device.badge == badge { return nil }
        guard let shown = try shown(by: attempt, of: type, to: owner, at: now, in: db) else { return nil }
        // Phones get withdrawals together, because their systems allow few messages in the background.
        let isCarrying = Swift.type(of: provider).showsEachMessage || type == .withdrawal
        let own = type == .withdrawal ? [attempt.subject] : []
        let others =
            isCarrying
            ? try withdrawals(beside: attempt, atMost: PushOutboxLimits.withdrawalsMax - own.count, in: db) : []
        if type != .withdrawal { try PushFeature.forgetBadge(of: id, owner, in: db) }
        let message = PushMessage(
            shown.content, badge: badge, tag: PushFeature.tag(type, attempt.subject), data: shown.data,
            isUrgent: shown.isUrgent, withdrawn: own + others.map(\.tag),
            secondsToLive: max(0, attempt.givesUpAt.seconds - now.seconds)
        ).fitting(target.address)
        // What does not fit goes with the next message.
        let carried = others.prefix(message.withdrawn.count - own.count)
        return PushDelivery(
            attempt: attempt, owner: owner, device: id, type: type, target: target,
            message: message, withdrawals: carried.map(\.number), registeredAt: device.registeredAt, client: client)
    }

    /// Returns the other withdrawals that wait in the lane.
    private func withdrawals(
        beside attempt: OutboxAttempt, atMost limit: Int, in db: DatabaseConnection
    ) throws -> [(number: Int, tag: String)] {
        try db.rows(
            """
            SELECT number, subject FROM \(Outbox.messages, within: attempt.tenant, Outbox.sending)
            WHERE lane = \(attempt.lane.name) AND state = 0
                AND type = \(PushType.withdrawal.rawValue) AND number <> \(attempt.number)
            ORDER BY number LIMIT \(limit)
            """
        ) { (number: try $0.integer(0), tag: try $0.text(1)) }
    }

    private func shown(
        by attempt: OutboxAttempt, of type: PushType, to owner: Owner, at now: Timestamp, in db: DatabaseConnection
    ) throws -> (content: PushMessage.Content, data: [UInt8], isUrgent: Bool)? {
        let none = EncodedJSON.emptyObject.bytes
        let text: PushText?
        switch type {
        case .badge: return (.badge, none, false)
        case .withdrawal: return (.withdrawal, none, false)
        case .test:
            return (.alert(title: "Test", body: "This device receives notifications.", isSilent: false), none, true)
        case .notification: text = try sources.notification(ID(attempt.subject), owner, db)
        case .message: text = try sources.message(ID(attempt.subject), owner, db).map(PushText.init)
        }
        guard let text else { return nil }
        let preferences = try sources.preferences(owner, db)
        let delivery = preferences.delivery(
            of: text.priority, atMinuteOfDay: TimeZones.minuteOfDay(now, preferences))
        let isFull = push.content == .full
        let shown = isFull ? text.full : text.generic
        return (
            .alert(title: shown.title, body: shown.body, isSilent: !delivery.sounds),
            isFull ? text.fullData : text.data,
            text.priority == .urgent
        )
    }
}

/// A push message with its destination, as read at the moment of sending.
struct PushDelivery: OutboxDelivery {
    let attempt: OutboxAttempt
    let owner: Owner
    let device: ID<Device>
    let type: PushType
    let target: PushTarget
    let message: PushMessage
    /// The numbers of the withdrawals that the message carries.
    let withdrawals: [Int]
    let registeredAt: Timestamp
    let client: PushClient

    func send(_ complete: @escaping @Sendable (OutboxOutcome) -> Void) {
        client.send(message, to: target) { complete(meaning(of: $0)) }
    }

    /// Returns what an answer means for the outbox.
    func meaning(of outcome: PushOutcome) -> OutboxOutcome {
        switch outcome {
        case .accepted: .accepted
        case .interrupted: .interrupted
        case .refused(let reason): .refused(reason: reason)
        case .failed(let reason, let asked): .failed(reason: reason, retryAfterSeconds: asked)
        // The device was registered again after the provider had noticed that it was gone.
        case .gone(let reason, let since?) where since < registeredAt: .rejected(reason: reason, retryAfterSeconds: nil)
        case .gone(let reason, let since): .gone(reason: reason, since: since)
        case .misconfigured(let reason): .misconfigured(reason: reason, isGeneral: true)
        case .mismatched(let reason): .misconfigured(reason: reason, isGeneral: false)
        }
    }

    /// Whether the device has not been registered with a new token meanwhile. That one gets its messages.
    func isDestinationPresent(in db: DatabaseConnection) throws -> Bool {
        try PushFeature.storedDevice(device, owner, in: db)?.registeredAt == registeredAt
    }

    func note(_ result: OutboxResult, isLatest: Bool, at now: Timestamp, in db: DatabaseConnection) throws {
        switch result {
        case .accepted:
            if !withdrawals.isEmpty { try deleteMessages("number IN \(values: withdrawals)", in: db) }
            guard isLatest else { return }
            if type == .message {
                try Outbox.deleteWithdrawal(PushFeature.slot(.withdrawal, message.tag), before: attempt, in: db)
            }
            // The system ignores the number of a withdrawal, which only the app reads. A later attempt has sent a newer
            // number.
            if type != .withdrawal { try noteBadge(at: now, in: db) }
        case .retry(let reason, _, _), .ended(let reason, _):
            try update("error = \(reason), error_at = \(now)", in: db)
        case .removed:
            try db.run(
                "DELETE FROM \(PushFeature.devices, of: owner) WHERE id = \(device) AND \(isSameRegistration)")
        case .interrupted: break
        }
    }

    private func deleteMessages(_ condition: SQL, in db: DatabaseConnection) throws {
        try db.run("DELETE FROM \(Outbox.messages, within: attempt.tenant, Outbox.sending) WHERE \(condition)")
    }

    private func noteBadge(at now: Timestamp, in db: DatabaseConnection) throws {
        try update(
            "badge = \(message.badge), badge_at = \(now), error = NULL, error_at = NULL", if: isSameRegistration, in: db
        )
    }

    private var isSameRegistration: SQL { "registered_at = \(registeredAt)" }

    private func update(_ assignments: SQL, if condition: SQL? = nil, in db: DatabaseConnection) throws {
        try db.run(
            """
            UPDATE \(PushFeature.devices, of: owner) SET \(assignments)
            WHERE \(SQL.all(["id = \(device)", condition]))
            """)
    }
}

extension PushFeature {
    /// A device as the sender needs it.
    struct StoredDevice {
        let address: [UInt8]
        /// The number that it shows; nil if that is unknown.
        let badge: Int?
        let registeredAt: Timestamp
    }

    static func storedDevice(_ id: ID<Device>, _ owner: Owner, in db: DatabaseConnection) throws -> StoredDevice? {
        try db.row(
            """
            SELECT address, badge, registered_at FROM \(devices, of: owner) WHERE id = \(id)
            """
        ) { row in
            StoredDevice(
                address: try row.blob(0), badge: try row.optionalInteger(1), registeredAt: try row.moment(2))
        }
    }

    /// Notes that it is unknown which number a device shows: a message may be accepted without an answer.
    static func forgetBadge(of id: ID<Device>, _ owner: Owner, in db: DatabaseConnection) throws {
        try db.run(
            "UPDATE \(devices, of: owner) SET badge = NULL WHERE id = \(id)")
    }
}

extension PushClient {
    /// Creates the client of the settings.
    convenience init(_ push: PushSettings, clock: Clock) {
        self.init(
            allowsPrivate: push.allowsPrivate, certificates: push.certificates, timeoutSeconds: push.timeoutSeconds,
            clock: { clock.now() }, observer: Exits.pushObserver)
    }
}
