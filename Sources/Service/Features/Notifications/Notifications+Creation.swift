import Database
import Domain
import Values

extension NotificationsFeature {
    /// Creates notifications from drafts: rows, counts and events in the caller's transaction.
    ///
    /// It takes two statements for all of them, and one or two more for each user with a full inbox. The transaction itself
    /// handles the badges and the event log. The users' rows come first, because they contain the preferences; a
    /// repeated event reverts its count.
    ///
    /// - Returns: The notifications as JSON. For a repeated event, the notification as it was first created.
    @discardableResult
    static func create(
        _ drafts: [NotificationDraft], _ tx: Transaction
    ) throws -> [(json: [UInt8], isNew: Bool)] {
        try tx.lock(drafts.map { .user($0.userId) })
        guard drafts.count > 1 else { return try createOneEach(drafts[...], tx) }
        var created: [(json: [UInt8], isNew: Bool)] = []
        var rest = drafts[...]
        while !rest.isEmpty {
            // A statement can change a row only once, so a user's second notification waits for the next statement.
            var users: Set<ID<User>> = []
            let distinctUsers = rest.prefix { users.insert($0.userId).inserted }
            created += try createOneEach(distinctUsers, tx)
            rest = rest[distinctUsers.endIndex...]
        }
        return created
    }

    private static func createOneEach(
        _ drafts: ArraySlice<NotificationDraft>, _ tx: Transaction
    ) throws -> [(json: [UInt8], isNew: Bool)] {
        let inboxes = try addToInboxes(of: drafts, tx)
        let candidates = zip(drafts, inboxes).map { draft, inbox in
            let delivery = inbox.preferences.delivery(
                of: draft.priority, atMinuteOfDay: TimeZones.minuteOfDay(tx.now, inbox.preferences))
            return Notification(
                draft, id: IDSequence.unordered(at: inbox.newestAt), delivery: delivery, createdAt: tx.now)
        }
        for (draft, inbox) in zip(drafts, inboxes) where inbox.ranking == .begins {
            try rankNotifications(of: draft.userId, tx)
        }
        let areAllNew = try insert(candidates, into: inboxes, tx) == candidates.count
        var created: [(notification: Notification, preferences: Preferences)] = []
        let results = try zip(candidates, inboxes).map { notification, inbox in
            guard try areAllNew || isStored(notification, tx) else {
                try changeInbox(of: notification.userId, by: inbox.evicting - 1, tx)
                return (JSONWriter.bytes(try first(of: notification, tx)), isNew: false)
            }
            let json = JSONWriter.bytes(notification)
            publish("notification:created", of: notification.userId, data: json, tx)
            try adjust(notification.badgeShare, of: notification.userId, tx)
            if inbox.evicting > 0 { try evict(inbox.evicting, before: notification, tx) }
            created.append((notification, inbox.preferences))
            tx.noteReached(notification.userId)
            return (json, isNew: true)
        }
        if !created.isEmpty { tx.record(.notificationsCreated(created)) }
        return results
    }

    /// Inserts notifications, except repetitions of events. An event is remembered even after its notification was
    /// removed.
    ///
    /// - Returns: The number of stored notifications.
    private static func insert(_ notifications: [Notification], into inboxes: [Inbox], _ tx: Transaction) throws -> Int
    {
        var rows = RowValues()
        rows.reserveCapacity(notifications.count * insertion.columns)
        for (notification, inbox) in zip(notifications, inboxes) {
            rows.append(tx.tenant)
            rows.append(inbox.ranking != .absent)
            rows.append(notification)
        }
        return try tx.db.run(insertion.statements(of: rows.values, within: tx.tenant))
    }

    private static let insertion = Insertion(
        """
        INSERT INTO \(notifications, within: .boundLater, .reaction("notifications tell of the actions of other users"))
            (tenant, is_ranked, \(columns))
        """, columns: 2 + Notification.columnNames.count,
        "ON CONFLICT (tenant, user_id, event_id) WHERE event_id IS NOT NULL DO NOTHING")

    private static func isStored(_ notification: Notification, _ tx: Transaction) throws -> Bool {
        try tx.db.exists(
            """
            SELECT 1 FROM \(notifications, of: notification.userId, in: tx.tenant)
            WHERE id = \(notification.id)
                AND removed_at IS NULL
            """)
    }

    /// Returns the notification of a repeated event as it was first returned to the sender. The user's later changes
    /// are not visible to the sender.
    private static func first(of repeated: Notification, _ tx: Transaction) throws -> Notification {
        let found = try tx.db.row(
            """
            SELECT \(columns) FROM \(notifications, of: repeated.userId, in: tx.tenant)
            WHERE event_id = \(repeated.eventId)
            """, Notification.init(row:))
        guard var first = found else { throw DatabaseError(.corrupt, "no notification has the used event id") }
        let wasCreatedSeen = first.state.seenAt == first.createdAt
        first.state = NotificationState(seenAt: wasCreatedSeen ? first.createdAt : nil)
        return first
    }

    // MARK: The inbox

    /// Whether the notifications of an inbox are in the index of the order of eviction.
    private enum Ranking: Int {
        /// The inbox was never full, so its notifications are not in the index.
        case absent
        /// The inbox is full for the first time, so all its notifications are added now.
        case begins
        case isComplete
    }

    /// The state of a user's inbox for a new notification.
    private struct Inbox {
        /// The number of notifications to evict for it.
        let evicting: Int
        let ranking: Ranking
        /// The timestamp of the notification's id. It is at least a millisecond after the previous one, even if another
        /// replica's clock made that. "Up to this one" and cursors compare ids.
        let newestAt: Timestamp
        let preferences: Preferences
    }

    /// Counts one more notification of each user, up to the limit.
    ///
    /// - Returns: The inboxes, in the order of the drafts.
    private static func addToInboxes(
        of drafts: ArraySlice<NotificationDraft>, _ tx: Transaction
    ) throws -> [Inbox] {
        let full = tx.settings.notificationsKept
        let overfull = full + EvictionRule.evictedAtOnceMax
        let bounds = [full, full, overfull, full - 1, full, overfull, full - 1].map { SQLValue.integer(Int64($0)) }
        var rows: [SQLValue] = []
        rows.reserveCapacity(drafts.count * addition.columns + bounds.count)
        for draft in drafts {
            rows += [
                .text(tx.tenant.text), .text(draft.userId.text), .text(Preferences.timeZoneDefault), tx.now.sqlValue,
                .integer(1), .integer(0), .integer(1), .integer(1),
            ]
        }
        let inboxes = Dictionary(
            uniqueKeysWithValues: try tx.db.rows(
                of: addition.statements(of: rows, within: tx.tenant, followedBy: bounds)
            ) { row in
                let preferences = Preferences(
                    sound: try row.bool(1), haptics: try row.bool(2),
                    quietHours: try QuietHours(
                        optionalStart: row.optionalInteger(3), optionalEnd: row.optionalInteger(4)),
                    timeZone: try row.text(5))
                guard let ranking = Ranking(rawValue: try row.integer(8)) else {
                    throw DatabaseError(.corrupt, "an inbox has an unknown ranking")
                }
                let inbox = Inbox(
                    evicting: try row.integer(0), ranking: ranking, newestAt: try row.moment(6),
                    preferences: preferences)
                return (try row.id(7) as ID<User>, inbox)
            })
        return try drafts.map { draft in
            guard let inbox = inboxes[draft.userId] else {
                throw DatabaseError(.corrupt, "an inbox was written but not returned")
            }
            return inbox
        }
    }

    private static let addition = Insertion(
        """
        INSERT INTO \(inboxes, within: .boundLater, .bookkeeping("the counts of stored rows belong to the service"))
            (tenant, user_id, time_zone, newest_at, kept, evicting, sound, haptics)
        """, columns: 8,
        """
        ON CONFLICT (tenant, user_id) DO UPDATE SET
            newest_at = CASE WHEN inboxes.newest_at + 1000 > excluded.newest_at THEN inboxes.newest_at + 1000
                ELSE excluded.newest_at END,
            ranking = CASE WHEN inboxes.ranking > 0 THEN 2 WHEN inboxes.kept < ? THEN 0 ELSE 1 END,
            evicting = \(excess), kept = inboxes.kept + 1 - \(excess)
        RETURNING evicting, sound, haptics, quiet_start, quiet_end, time_zone, newest_at, user_id, ranking
        """)

    /// The number of notifications to evict for a new one. It is more than one if the limit was lowered since the last
    /// notification.
    private static let excess: SQL = """
        CASE WHEN inboxes.kept < ? THEN 0
            WHEN inboxes.kept >= ? THEN \(SQL(unchecked: "\(EvictionRule.evictedAtOnceMax)"))
            ELSE inboxes.kept - ? END
        """

    private static func changeInbox(of userId: ID<User>, by change: Int, _ tx: Transaction) throws {
        guard change != 0 else { return }
        try tx.db.run(
            """
            UPDATE \(inboxes, of: userId, in: tx.tenant)
            SET kept = kept + \(change)
            """)
    }

    /// Stores the part of the preferences that creating notifications needs, in the row of the count.
    static func storePreferences(_ wanted: Preferences, of userId: ID<User>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(inboxes, of: userId, in: tx.tenant)
                (tenant, user_id, kept, evicting, sound, haptics, quiet_start, quiet_end, time_zone)
            VALUES (\(tx.tenant), \(userId), 0, 0, \(wanted.sound), \(wanted.haptics),
                \(wanted.quietHours?.startMinute), \(wanted.quietHours?.endMinute), \(wanted.timeZone))
            ON CONFLICT (tenant, user_id) DO UPDATE SET
                sound = excluded.sound, haptics = excluded.haptics, quiet_start = excluded.quiet_start,
                quiet_end = excluded.quiet_end, time_zone = excluded.time_zone
            """)
    }

    /// The rank of ``EvictionRule``; a test compares the two. It has the form of the index, which finds the
    /// notifications to evict without reading the others.
    private static let evictionRank = SQL(
        unchecked: """
            CASE WHEN read_at IS NOT NULL OR archived_at IS NOT NULL THEN 0
                WHEN priority = \(Priority.urgent.rank) THEN 8 WHEN priority = \(Priority.high.rank) THEN 6
                WHEN seen_at IS NOT NULL THEN 2 ELSE 4 END
                + CASE WHEN priority = \(Priority.low.rank) THEN 0 ELSE 1 END
            """)

    /// Returns the query for the notifications to evict.
    ///
    /// - Parameter newcomer: The new notification, which stays.
    static func eviction(
        of count: Int, before newcomer: ID<Notification>, of userId: ID<User>, tenant: ID<Tenant>, at now: Timestamp
    ) -> SQL {
        """
        UPDATE \(notifications, of: userId, in: tenant)
        SET removed_at = \(now) WHERE removed_at IS NULL AND id IN (
            SELECT id FROM \(notifications, of: userId, in: tenant)
            WHERE removed_at IS NULL AND is_ranked = 1 AND id <> \(newcomer)
            ORDER BY \(evictionRank), id LIMIT \(count))
        RETURNING \(columns)
        """
    }

    /// Adds a user's notifications to the index of the order of eviction, once the inbox is full. Most users receive
    /// fewer notifications than are kept, and never pay for the index.
    private static func rankNotifications(of userId: ID<User>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(notifications, of: userId, in: tx.tenant)
            SET is_ranked = 1
            WHERE removed_at IS NULL AND is_ranked = 0
            """)
    }

    /// Removes the least important notifications of a full inbox in favour of the new one.
    private static func evict(_ count: Int, before newcomer: Notification, _ tx: Transaction) throws {
        let userId = newcomer.userId
        let evicted = try tx.db.rows(
            eviction(of: count, before: newcomer.id, of: userId, tenant: tx.tenant, at: tx.now), Notification.init(row:)
        )
        guard evicted.count == count else {
            throw DatabaseError(.corrupt, "an inbox has fewer notifications than its count")
        }
        for notification in evicted.sorted(by: { $0.id < $1.id }) { try finishRemoval(of: notification, tx) }
    }

    /// Removes a notification from its user's inbox.
    ///
    /// - Parameter why: Nil for the user's own removal, which is limited to the user's scope.
    static func remove(_ notification: Notification, within why: Unscoped? = nil, _ tx: Transaction) throws {
        try update(notification, set: "removed_at = \(tx.now)", within: why, tx)
        try changeInbox(of: notification.userId, by: -1, tx)
        try finishRemoval(of: notification, tx)
    }

    /// Finishes a removal. A removed row remains only to recognize a repeated event; without an event id it is deleted.
    private static func finishRemoval(of removed: Notification, _ tx: Transaction) throws {
        if removed.eventId == nil {
            try tx.db.run(
                """
                DELETE FROM \(notifications, of: removed.userId, in: tx.tenant)
                WHERE id = \(removed.id)
                    AND removed_at = \(tx.now)
                """)
        } else if isTrimDue(after: removed.id) {
            try tx.db.run(trimming(of: removed.userId, tenant: tx.tenant))
        }
        let ids = JSONWriter.object { $0.member("ids", [removed.id]) }
        publish("notification:removed", of: removed.userId, data: ids, tx)
        if !removed.state.isSeen { tx.record(.notificationsCleared([removed], isRemoved: true)) }
        try adjust(-removed.badgeShare, of: removed.userId, tx)
    }

    // MARK: Events

    /// Publishes a log event. Clients build their lists from these events, so a newer one must not replace an earlier
    /// one.
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
}
