import Database
import Domain
import Values
import struct Foundation.Date
import struct Foundation.TimeZone

extension NotificationsFeature {
    /// Creates a notification from a draft: row, count and events in the caller's transaction.
    ///
    /// Two statements, a third for a user who has 50 already; the transaction itself handles the badge and the event
    /// log. The user's row comes first because it has the preferences; a repeated event reverts its count.
    ///
    /// - Returns: the notification; for an event that the user had before as it was first created.
    @discardableResult
    static func create(
        _ draft: NotificationDraft, _ tx: Transaction
    ) throws -> (notification: Notification, isNew: Bool) {
        try tx.lock(.user(draft.userId))
        let inbox = try addToInbox(of: draft.userId, tx)
        let delivery = inbox.preferences.delivery(
            of: draft.priority, atMinuteOfDay: minuteOfDay(tx.now, inbox.preferences))
        let notification = Notification(
            draft, id: IDSequence.unordered(at: inbox.newestAt), delivery: delivery, createdAt: tx.now)
        guard try insert(notification, tx) else {
            if !inbox.wasFull { try removeFromInbox(of: draft.userId, tx) }
            return (try first(of: draft, tx), isNew: false)
        }
        publish("notification:created", of: draft.userId, data: JSONWriter.bytes(notification), tx)
        try adjust(notification.badgeShare, of: draft.userId, tx)
        if inbox.wasFull { try evictOne(of: draft.userId, tx) }
        return (notification, isNew: true)
    }

    /// False if the user had this event before, even if its notification has been removed since.
    private static func insert(_ notification: Notification, _ tx: Transaction) throws -> Bool {
        try tx.db.run(
            """
            INSERT INTO \(notifications, unscoped: .reaction("whoever caused it, the service notifies the user"))
                (tenant, user_id, id, event_id, type, category, priority, title, message, lock_screen, data, sounds,
                vibrates, created_at, seen_at)
            VALUES (\(tx.tenant), \(notification.userId), \(notification.id), \(notification.eventId),
                \(notification.type.rawValue), \(notification.category.rawValue), \(notification.priority.rank),
                \(notification.title), \(notification.message), \(notification.lockScreen),
                \(String(decoding: notification.data, as: UTF8.self)), \(notification.delivery.sounds),
                \(notification.delivery.vibrates), \(notification.createdAt), \(notification.state.seenAt))
            ON CONFLICT (tenant, user_id, event_id) WHERE event_id IS NOT NULL DO NOTHING
            """) == 1
    }

    /// The notification of a repeated event, as it was first answered to the sender: what its user did with it since is
    /// not visible to the sender.
    private static func first(of draft: NotificationDraft, _ tx: Transaction) throws -> Notification {
        let found = try tx.db.row(
            """
            SELECT \(columns) FROM \(notifications, unscoped: .reaction("a repeated event is answered like the first"))
            WHERE tenant = \(tx.tenant) AND user_id = \(draft.userId) AND event_id = \(draft.eventId)
            """, notification)
        guard var first = found else { throw DatabaseError(.corrupt, "an event id is taken by no notification") }
        let wasBornSeen = first.state.seenAt == first.createdAt
        first.state = NotificationState(seenAt: wasBornSeen ? first.createdAt : nil)
        return first
    }

    // MARK: The inbox of 50

    /// Counts one more notification, up to the bound, and returns whether the inbox was full before.
    ///
    /// `newestAt` is the moment of this notification's id: at least a millisecond behind the one before, whichever
    /// replica's clock that was made by. "Up to this one" and cursors compare ids.
    private static func addToInbox(
        of userId: ID<User>, _ tx: Transaction
    ) throws -> (wasFull: Bool, newestAt: Timestamp, preferences: Preferences) {
        let inbox = try tx.db.row(
            """
            INSERT INTO \(inboxes, unscoped: .bookkeeping("the service's own count of what it stores"))
                (tenant, user_id, kept, was_full, sound, haptics, time_zone, newest_at)
            VALUES (\(tx.tenant), \(userId), 1, 0, 1, 1, \(Preferences.timeZoneDefault), \(tx.now))
            ON CONFLICT (tenant, user_id) DO UPDATE SET
                newest_at = CASE WHEN inboxes.newest_at + 1000 > excluded.newest_at THEN inboxes.newest_at + 1000
                    ELSE excluded.newest_at END,
                was_full = CASE WHEN inboxes.kept >= \(EvictionRule.notificationsMax) THEN 1 ELSE 0 END,
                kept = CASE WHEN inboxes.kept >= \(EvictionRule.notificationsMax) THEN inboxes.kept ELSE inboxes.kept + 1 END
            RETURNING was_full, sound, haptics, quiet_start, quiet_end, time_zone, newest_at
            """
        ) { row in
            let preferences = Preferences(
                sound: try row.bool(1), haptics: try row.bool(2),
                quietHours: try QuietHours(optionalStart: row.optionalInteger(3), optionalEnd: row.optionalInteger(4)),
                timeZone: try row.text(5))
            return (try row.bool(0), try row.moment(6), preferences)
        }
        guard let inbox else { throw DatabaseError(.corrupt, "an inbox was written and did not come back") }
        return inbox
    }

    private static func removeFromInbox(of userId: ID<User>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(inboxes, unscoped: .bookkeeping("the service's own count of what it stores"))
            SET kept = kept - 1 WHERE tenant = \(tx.tenant) AND user_id = \(userId)
            """)
    }

    /// Stores the part of the preferences that creating notifications needs, beside the count.
    static func storePreferences(_ wanted: Preferences, of userId: ID<User>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(inboxes, unscoped: .bookkeeping("a copy of what the user has just set"))
                (tenant, user_id, kept, was_full, sound, haptics, quiet_start, quiet_end, time_zone)
            VALUES (\(tx.tenant), \(userId), 0, 0, \(wanted.sound), \(wanted.haptics),
                \(wanted.quietHours?.startMinute), \(wanted.quietHours?.endMinute), \(wanted.timeZone))
            ON CONFLICT (tenant, user_id) DO UPDATE SET
                sound = excluded.sound, haptics = excluded.haptics, quiet_start = excluded.quiet_start,
                quiet_end = excluded.quiet_end, time_zone = excluded.time_zone
            """)
    }

    /// The order of ``EvictionRule``, against which a test compares it.
    static let evictionOrder = SQL(
        unchecked: """
            CASE WHEN read_at IS NOT NULL OR archived_at IS NOT NULL THEN 0
                WHEN priority = \(Priority.urgent.rank) THEN 3
                WHEN seen_at IS NOT NULL THEN 1 ELSE 2 END,
            CASE WHEN priority = \(Priority.low.rank) THEN 0 ELSE 1 END, id
            """)

    static func eviction(of userId: ID<User>, tenant: String, at now: Timestamp) -> SQL {
        """
        UPDATE \(notifications, unscoped: .reaction("the cap applies whoever notifies"))
        SET removed_at = \(now) WHERE tenant = \(tenant) AND user_id = \(userId) AND removed_at IS NULL AND id = (
            SELECT id FROM notifications
            WHERE tenant = \(tenant) AND user_id = \(userId) AND removed_at IS NULL
            ORDER BY \(evictionOrder) LIMIT 1)
        RETURNING \(columns)
        """
    }

    /// Removes the least important notification of a full inbox in favour of the new one, so that the count stays.
    private static func evictOne(of userId: ID<User>, _ tx: Transaction) throws {
        let evicted = try tx.db.row(eviction(of: userId, tenant: tx.tenant, at: tx.now), notification)
        guard let evicted else { throw DatabaseError(.corrupt, "a full inbox holds nothing") }
        try finishRemoval(of: evicted, tx)
    }

    /// Removes a notification from its user's inbox.
    ///
    /// - Parameter why: nil for its user, within whose scope it must be.
    static func remove(_ notification: Notification, within why: Unscoped? = nil, _ tx: Transaction) throws {
        try update(notification, set: "removed_at = \(tx.now)", within: why, tx)
        try removeFromInbox(of: notification.userId, tx)
        try finishRemoval(of: notification, tx)
    }

    /// A removed row stays only to recognize its event when it is sent again; without an event id there is nothing to
    /// recognize.
    private static func finishRemoval(of removed: Notification, _ tx: Transaction) throws {
        if removed.eventId == nil {
            try tx.db.run(
                """
                DELETE FROM \(notifications, unscoped: .reaction("the cap applies whoever notifies"))
                WHERE tenant = \(tx.tenant) AND user_id = \(removed.userId) AND id = \(removed.id)
                    AND removed_at = \(tx.now)
                """)
        }
        let ids = JSONWriter.object { $0.member("ids", [removed.id]) }
        publish("notification:removed", of: removed.userId, data: ids, tx)
        try adjust(-removed.badgeShare, of: removed.userId, tx)
    }

    // MARK: Events

    /// Log events: a client builds its list from them, so none may be dropped in favour of a newer one.
    private static func publish(_ name: StaticString, of userId: ID<User>, data: [UInt8], _ tx: Transaction) {
        let audience = notifications.read.audience { $0 == "user_id" ? userId.text : nil }
        tx.publish(name, audience: audience, data: data)
    }

    static func publishState(
        _ ids: [ID<Notification>], _ change: NotificationStateChange, of userId: ID<User>, _ tx: Transaction
    ) {
        let data = JSONWriter.object { writer in
            writer.member("ids", ids)
            writer.member("state", change)
        }
        publish("notification:updated", of: userId, data: data, tx)
    }

    static func adjust(_ change: BadgeChange, of userId: ID<User>, _ tx: Transaction) throws {
        guard !change.isNone else { return }
        try tx.adjustBadges(of: userId, messages: change.messages, requests: change.requests, bell: change.bell)
    }

    /// The minute of the user's day; not computed for a user without quiet hours.
    private static func minuteOfDay(_ now: Timestamp, _ preferences: Preferences) -> Int {
        guard preferences.quietHours != nil else { return 0 }
        // A zone that the system no longer knows is taken as UTC: silence at the wrong hour is better than no
        // notification.
        let zone = TimeZone(identifier: preferences.timeZone)
        let offset = zone?.secondsFromGMT(for: Date(timeIntervalSince1970: Double(now.seconds))) ?? 0
        let secondOfDay = (Int(now.seconds) + offset) % 86400
        return (secondOfDay < 0 ? secondOfDay + 86400 : secondOfDay) / 60
    }
}
