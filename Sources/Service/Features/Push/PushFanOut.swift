import Database
import Domain
import Logging
import Push
import Threads
import Values
import Visibility

/// The distribution of a message about a subject to the devices of one user. A request adds one message for each user if
/// there are many devices, and the sender adds those for the devices. It also looks after the devices of all providers.
final class PushFanOut: Channel {
    static let route = "devices"

    let name = PushFanOut.route
    let family = OutboxFamily.push
    let hasRequests = false
    let limits: ChannelLimits

    private let keys: PushKeyRing
    private let logger: Logger
    private let devices = Locked(0)

    init(_ push: PushSettings, _ shares: TenantShares, metrics: MetricsRegistry, logger: Logger) {
        (keys, self.logger) = (push.keys, logger)
        limits = ChannelLimits(
            slots: PushOutboxLimits.distributedAtOnceMax, tenantSlots: PushOutboxLimits.distributedAtOnceMax,
            timeoutSeconds: 0, keepsDead: false, minuteMax: { shares.push(of: $0) })
        metrics.register { [devices] text in
            text.single("bellhop_push_devices", .gauge, "Registered devices.", value: devices.withLock { $0 })
        }
    }

    func count(in db: DatabaseConnection) throws {
        let count = try db.integer("SELECT count(*) FROM \(PushFeature.devices, unscoped: Outbox.sending)") ?? 0
        devices.withLock { $0 = count }
    }

    /// Warns the operator if the keys were replaced by others.
    func prepare(_ store: DatabaseStore) {
        let count = try? store.read { [keys] in try PushFeature.unreadableCount(keys, in: $0) }
        guard let count, count > 0 else { return }
        logger.warning(
            """
            Devices are encrypted with a key that BELLHOP_PUSH_KEYS does not contain. They receive nothing. Add the \
            former key behind the new one, or let the apps register again. See Docs/push.md.
            """, metadata: ["devices": "\(count)"])
    }

    func start() {}

    func stop() {}

    static func draft(
        _ type: PushType, _ subject: String, to userId: ID<User>, dueAt: Timestamp, _ patientUntil: Timestamp
    ) -> OutboxDraft {
        OutboxDraft(
            lane: OutboxLane(
                name: Outbox.laneName(.push, AudienceKey.make("devices", userId.text)), route: route),
            userId: userId, type: type.rawValue, subject: subject, slot: PushFeature.slot(type, subject), dueAt: dueAt,
            patientUntil: patientUntil)
    }

    func isAlert(_: String) -> Bool { false }

    func delivery(
        of attempt: OutboxAttempt, at now: Timestamp, in db: DatabaseConnection
    ) throws -> (any OutboxDelivery)? {
        guard let userId = attempt.userId, let type = PushType(rawValue: attempt.type) else { return nil }
        let devices = try PushFeature.devices("user_id = \(userId)", of: attempt.tenant, in: db)
        if !devices.isEmpty {
            try Outbox.add(
                devices.map { PushFeature.draft(type, attempt.subject, to: $0, dueAt: now) }, of: attempt.tenant,
                at: now,
                in: db)
        }
        return nil
    }
}
