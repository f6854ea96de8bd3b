import Database
import Domain
import Values

extension NotificationsFeature {
    static let reactions = [
        Reaction.on(NotificationRequested.self) { tx, request in _ = try create(request.draft, tx) },
        Reaction.on(NotificationSettled.self) { tx, settled in try settle(settled, tx) },
        Reaction.on(PreferencesChanged.self) { tx, change in
            try tx.lock(.user(change.userId))
            try storePreferences(change, tx)
        },
    ]

    /// Publishes nothing about a notification that is removed, or seen and read already.
    private static func settle(_ settled: NotificationSettled, _ tx: Transaction) throws {
        try tx.lock(.user(settled.userId))
        guard let before = try find(event: settled.eventId, of: settled.userId, tx) else { return }
        switch settled.outcome {
        case .withdrawn:
            try markRemoved(before, within: .reaction("what is void is taken away, whoever makes it so"), tx)
            try removeFromInbox(of: before.userId, tx)
            try announceRemoval(of: before, tx)
        case .handled:
            guard let change = NotificationStateChange(read: true) else { return }
            var after = before
            after.state = before.state.applying(change, at: tx.now)
            guard after.state != before.state else { return }
            try storeState(of: after, within: .reaction("what is dealt with is read, wherever that was done"), tx)
            publishState([after.id], change, of: after.userId, tx)
            try adjust(after.badgeShare + -before.badgeShare, of: after.userId, tx)
        }
    }

    private static func find(event: String, of userId: ID<User>, _ tx: Transaction) throws -> Notification? {
        try tx.db.row(
            """
            SELECT \(columns)
            FROM \(notifications, unscoped: .reaction("what a notification is about is settled by whoever may"))
            WHERE tenant = \(tx.tenant) AND user_id = \(userId.text) AND event_id = \(event) AND removed_at IS NULL
            """, notification)
    }

    /// Erases a removed notification's texts when the event log no longer has them either; the id of its event stays
    /// long enough for any sender's retries (VIS NFR-3.2, NFR-4.3).
    static let pruning = Tick(name: "notifications.forgetting", everySeconds: 5) { tx in
        try eraseTexts(tx)
        try pruneEvents(tx)
    }

    private static let textsKeptSeconds: Int64 = 24 * 3600
    private static let eventRetentionSeconds: Int64 = 30 * 24 * 3600
    /// Rows of one step, for which all writes wait; 2,000 take some milliseconds.
    private static let forgottenAtOnceMax = 2000

    private static func eraseTexts(_ tx: Transaction) throws {
        try tx.db.run(erasure(tenant: tx.tenant, before: tx.now.adding(seconds: -textsKeptSeconds)))
    }

    private static func pruneEvents(_ tx: Transaction) throws {
        try tx.db.run(pruning(tenant: tx.tenant, before: tx.now.adding(seconds: -eventRetentionSeconds)))
    }

    static func erasure(tenant: String, before: Timestamp) -> SQL {
        """
        UPDATE \(notifications, unscoped: .bookkeeping("removed rows are nobody's"))
        SET title = '', message = '', lock_screen = '', data = '{}'
        WHERE tenant = \(tenant) AND event_id IS NOT NULL AND (user_id, event_id) IN (
            SELECT user_id, event_id FROM notifications
            WHERE tenant = \(tenant) AND removed_at IS NOT NULL AND title <> ''
                AND removed_at < \(before.microseconds)
            ORDER BY removed_at LIMIT \(forgottenAtOnceMax))
        """
    }

    static func pruning(tenant: String, before: Timestamp) -> SQL {
        """
        DELETE FROM \(notifications, unscoped: .bookkeeping("removed rows are nobody's"))
        WHERE tenant = \(tenant) AND event_id IS NOT NULL AND (user_id, event_id) IN (
            SELECT user_id, event_id FROM notifications
            WHERE tenant = \(tenant) AND removed_at IS NOT NULL AND removed_at < \(before.microseconds)
            ORDER BY removed_at LIMIT \(forgottenAtOnceMax))
        """
    }
}
