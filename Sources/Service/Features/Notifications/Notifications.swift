import Database
import Domain
import Realtime
import Values

/// A user's notifications: the newest and most important ones, up to a configured number, with exact counts.
enum NotificationsFeature {
    static let feature = Feature(
        name: "notifications", set: .bell, tables: [notifications, inboxes], migrations: migrations,
        endpoints: endpoints,
        reaction: reaction, ticks: [pruning], sweeps: [retention], personSteps: [keptStep, removedStep],
        share: share, audits: [audit],
        events: ["notification:created", "notification:updated", "notification:removed"])

    static let reaction: Reaction = { tx, fact in
        switch fact {
        case .notificationRequested(let draft): try create([draft], tx)
        case .notificationSettled(let eventId, let userId, let outcome):
            try tx.lock(.user(userId))
            if let before = try find(event: eventId, of: userId, tx) { try settle(before, outcome, tx) }
        case .requestsSeen(let requests):
            guard let change = NotificationStateChange(seen: true) else { return }
            let requests = Set(requests)
            let asking = try unseenOfRequests(tx).filter { $0.requestId.map(requests.contains) ?? false }
            try apply(change, to: asking, tx)
        case .preferencesChanged(let preferences, let userId):
            try tx.lock(.user(userId))
            try storePreferences(preferences, of: userId, tx)
        default: break
        }
    }

    /// Settles a notification. Publishes nothing if it is already seen and read.
    private static func settle(_ before: Notification, _ outcome: NotificationOutcome, _ tx: Transaction) throws {
        switch outcome {
        case .withdrawn:
            try remove(before, within: .reaction("a notification that became void is removed for its user"), tx)
        case .handled:
            guard let change = NotificationStateChange(read: true) else { return }
            var after = before
            after.state = before.state.applying(change, at: tx.now)
            after.draft.requestId = nil
            guard after != before else { return }
            try storeHandled(after, within: .reaction("a notification is read once its subject is settled"), tx)
            if !before.state.isSeen { tx.record(.notificationsCleared([after], isRemoved: false)) }
            if after.state != before.state { publishState([after.id], change, of: after.userId, tx) }
            try adjust(after.badgeShare + -before.badgeShare, of: after.userId, tx)
        }
    }

    private static func find(event: String, of userId: ID<User>, _ tx: Transaction) throws -> Notification? {
        try tx.db.row(
            """
            SELECT \(columns)
            FROM \(notifications, of: userId, in: tx.tenant)
            WHERE event_id = \(event) AND removed_at IS NULL
            """, Notification.init(row:))
    }

    /// Erases a removed notification's texts once the event log no longer contains them. The id of its event is kept
    /// long enough for any sender's retries (R-VIS-NFR-3.2, R-VIS-NFR-4.3).
    static let pruning = Tick.forgetting(
        name: "notifications.forgetting", everySeconds: 5,
        due: { age in
            let past = removedCondition(before: age.end(ofSeconds: eventRetentionSeconds))
            let toErase = removedCondition(
                before: age.end(ofSeconds: textRetentionSeconds), andAlso: " AND n.title <> ''")
            return Tenants.all(where: "\(past) OR \(toErase)")
        }
    ) { age, tx in
        try tx.db.run(erasure(tenant: tx.tenant, before: age.end(ofSeconds: textRetentionSeconds)))
        try tx.db.run(pruning(tenant: tx.tenant, before: age.end(ofSeconds: eventRetentionSeconds)))
    }

    private static func removedCondition(before: Timestamp, andAlso condition: SQL = "") -> SQL {
        """
        EXISTS (SELECT 1 FROM \(notifications, unscoped: forgetting) AS n
            WHERE n.tenant = t.tenant AND n.removed_at IS NOT NULL\(condition) AND n.removed_at < \(before)
            AND n.event_id IS NOT NULL)
        """
    }

    private static let textRetentionSeconds: Int64 = 24 * 3600
    private static let eventRetentionSeconds: Int64 = 30 * 24 * 3600
    /// The number of a user's latest removed notifications whose repeated events are recognized. Without this limit,
    /// each notification of a full inbox leaves a row for 30 days, and the database grows with the traffic.
    static let removedKeptMax = 1000
    /// The average number of removals between two trims of a user's removed rows. A trim reads all of them.
    static let removalsPerTrim: UInt64 = 64

    /// Returns whether a trim follows this removal. The id decides, so that no counter is needed.
    static func isTrimDue(after removed: ID<Notification>) -> Bool {
        FNV1a.hash(removed.text.utf8) % removalsPerTrim == 0
    }

    /// Returns a statement that deletes a user's removed notifications beyond the latest ``removedKeptMax``, a limited
    /// number at once.
    static func trimming(of userId: ID<User>, tenant: ID<Tenant>) -> SQL {
        """
        DELETE FROM \(notifications, of: userId, in: tenant)
        WHERE removed_at IS NOT NULL AND event_id IN (
            SELECT event_id FROM \(notifications, of: userId, in: tenant)
            WHERE event_id IS NOT NULL AND removed_at IS NOT NULL
            ORDER BY removed_at DESC, id DESC LIMIT \(prunedAtOnceMax) OFFSET \(removedKeptMax))
        """
    }

    /// Rows of one step, for which all writes wait; 2,000 take some milliseconds.
    private static let prunedAtOnceMax = 2000

    private static let forgetting = Unscoped.bookkeeping("removed rows belong to no user")

    static func erasure(tenant: ID<Tenant>, before: Timestamp) -> SQL {
        """
        UPDATE \(notifications, within: tenant, forgetting)
        SET title = '', message = '', lock_screen = '', data = '{}'
        WHERE \(removed(in: tenant, before: before, andAlso: " AND title <> ''"))
        """
    }

    static func pruning(tenant: ID<Tenant>, before: Timestamp) -> SQL {
        """
        DELETE FROM \(notifications, within: tenant, forgetting)
        WHERE \(removed(in: tenant, before: before))
        """
    }

    /// Returns a query of the rows that were removed before a moment, the oldest first.
    private static func removed(in tenant: ID<Tenant>, before: Timestamp, andAlso condition: SQL = "") -> SQL {
        """
        event_id IS NOT NULL AND (user_id, event_id) IN (
            SELECT user_id, event_id FROM \(notifications, within: tenant, forgetting)
            WHERE removed_at IS NOT NULL\(condition) AND removed_at < \(before)
            ORDER BY removed_at LIMIT \(prunedAtOnceMax))
        """
    }
}
