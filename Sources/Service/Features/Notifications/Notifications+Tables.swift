import Database
import Domain
import Rows
import Values
import Visibility

extension NotificationsFeature {
    /// Backends write, but do not read: only the user sees the user's notifications (VIS NFR-3.1).
    static let notifications = Table(
        "notifications", read: ["user:{user_id}"], write: ["user:{user_id}", "tenant:service"])

    /// One row for each user who was ever notified: the number of stored notifications, and what creating the next one
    /// needs of the user. So a notification costs neither a `COUNT(*)` nor a look at the preferences.
    static let inboxes = Table("inboxes", read: [], write: [])

    static let migrations = [
        Migration(
            id: "0001_notifications",
            sql: [
                """
                CREATE TABLE notifications (
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    id TEXT NOT NULL,
                    event_id TEXT,
                    type TEXT NOT NULL,
                    category TEXT NOT NULL,
                    priority INTEGER NOT NULL,
                    title TEXT NOT NULL,
                    message TEXT NOT NULL,
                    lock_screen TEXT NOT NULL,
                    data TEXT NOT NULL,
                    sounds INTEGER NOT NULL,
                    vibrates INTEGER NOT NULL,
                    created_at INTEGER NOT NULL,
                    seen_at INTEGER,
                    read_at INTEGER,
                    archived_at INTEGER,
                    removed_at INTEGER,
                    CHECK (seen_at IS NOT NULL OR (read_at IS NULL AND archived_at IS NULL))
                ) STRICT
                """,
                // With all that eviction compares: it looks at fifty entries in a row and at one row.
                """
                CREATE INDEX notifications_kept
                ON notifications (tenant, user_id, id, priority, seen_at, read_at, archived_at, removed_at)
                WHERE removed_at IS NULL
                """,
                """
                CREATE UNIQUE INDEX notifications_events ON notifications (tenant, user_id, event_id)
                WHERE event_id IS NOT NULL
                """,
                """
                CREATE INDEX notifications_removed ON notifications (tenant, removed_at)
                WHERE removed_at IS NOT NULL
                """,
                """
                CREATE INDEX notifications_to_erase ON notifications (tenant, removed_at)
                WHERE removed_at IS NOT NULL AND title <> ''
                """,
                """
                CREATE TABLE inboxes (
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    kept INTEGER NOT NULL,
                    was_full INTEGER NOT NULL,
                    sound INTEGER NOT NULL,
                    haptics INTEGER NOT NULL,
                    quiet_start INTEGER,
                    quiet_end INTEGER,
                    time_zone TEXT NOT NULL,
                    PRIMARY KEY (tenant, user_id),
                    CHECK (kept BETWEEN 0 AND 50)
                ) STRICT, WITHOUT ROWID
                """,
            ]),
        Migration(
            id: "0002_notifications",
            sql: [
                .sqlite("ALTER TABLE inboxes ADD COLUMN newest_at INTEGER NOT NULL DEFAULT 0"),
                .postgreSQL("ALTER TABLE inboxes ADD COLUMN newest_at BIGINT NOT NULL DEFAULT 0"),
            ]),
    ]

    /// The columns ``notification(_:)`` reads, in its order.
    static let columns: SQL = """
        id, event_id, user_id, type, category, priority, title, message, lock_screen, data, sounds, vibrates,
        created_at, seen_at, read_at, archived_at
        """

    static func notification(_ row: Row) throws -> Notification {
        guard let type = NotificationType(rawValue: try row.text(3)),
            let category = NotificationCategory(rawValue: try row.text(4)),
            let priority = Priority(rank: try row.integer(5))
        else { throw DatabaseError(.corrupt, "a notification has a type, category or priority that cannot be") }
        return Notification(
            id: ID(try row.text(0)), eventId: try row.optionalText(1), userId: ID(try row.text(2)), type: type,
            category: category, priority: priority, title: try row.text(6), message: try row.text(7),
            lockScreen: try row.text(8), data: try row.bytes(9),
            delivery: Delivery(sounds: try row.bool(10), vibrates: try row.bool(11)),
            createdAt: Timestamp(microseconds: Int64(try row.integer(12))),
            state: NotificationState(
                seenAt: try row.optionalMoment(13), readAt: try row.optionalMoment(14),
                archivedAt: try row.optionalMoment(15)))
    }

    /// The selection of a user's notifications in a list.
    enum ListState: String, CaseIterable, Sendable {
        case unseen, unread, archived, all
    }

    struct Filter: Sendable {
        var category: NotificationCategory?
        var priority: Priority?
        /// Without one, all but the archived.
        var state: ListState?
    }

    /// A user's notifications, newest first, from behind a cursor.
    static func listing(
        of userId: ID<User>, _ filter: Filter, after: String?, limit: Int, visibleTo scope: Scope
    ) -> SQL {
        var conditions: [SQL] = ["user_id = \(userId.text)", "removed_at IS NULL"]
        switch filter.state {
        case .unseen: conditions.append("seen_at IS NULL")
        case .unread: conditions += ["read_at IS NULL", "archived_at IS NULL"]
        case .archived: conditions.append("archived_at IS NOT NULL")
        case .all: break
        case nil: conditions.append("archived_at IS NULL")
        }
        if let category = filter.category { conditions.append("category = \(category.rawValue)") }
        if let priority = filter.priority { conditions.append("priority = \(priority.rank)") }
        if let after { conditions.append("id < \(after)") }
        return """
            SELECT \(columns) FROM \(notifications, visibleTo: scope)
            WHERE \(SQL.joined(conditions, separator: " AND ")) ORDER BY id DESC LIMIT \(limit)
            """
    }

    /// - Throws: 404 for one that is gone, and equally for another's.
    static func require(_ id: ID<Notification>, _ tx: Transaction) throws -> Notification {
        let found = try tx.db.row(
            """
            SELECT \(columns) FROM \(notifications, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId.text) AND id = \(id.text) AND removed_at IS NULL
            """, notification)
        guard let found else { throw Failure.notFound("notification") }
        return found
    }

    /// All notifications of the caller up to and including an id, oldest first.
    static func all(
        upTo last: ID<Notification>, in category: NotificationCategory?, _ tx: Transaction
    ) throws -> [Notification] {
        var condition: SQL = "user_id = \(tx.caller.userId.text) AND removed_at IS NULL AND id <= \(last.text)"
        if let category { condition.append(" AND category = \(category.rawValue)") }
        return try tx.db.rows(
            "SELECT \(columns) FROM \(notifications, visibleTo: tx.scope) WHERE \(condition) ORDER BY id", notification)
    }

    static func storeState(of notification: Notification, _ tx: Transaction) throws {
        let state = notification.state
        try tx.db.run(
            """
            UPDATE \(notifications, writableBy: tx.scope) SET seen_at = \(state.seenAt?.microseconds),
                read_at = \(state.readAt?.microseconds), archived_at = \(state.archivedAt?.microseconds)
            WHERE user_id = \(notification.userId.text) AND id = \(notification.id.text) AND removed_at IS NULL
            """)
    }

    static func storeState(of notification: Notification, within why: Unscoped, _ tx: Transaction) throws {
        let state = notification.state
        try tx.db.run(
            """
            UPDATE \(notifications, unscoped: why) SET seen_at = \(state.seenAt?.microseconds),
                read_at = \(state.readAt?.microseconds), archived_at = \(state.archivedAt?.microseconds)
            WHERE tenant = \(tx.tenant) AND user_id = \(notification.userId.text) AND id = \(notification.id.text)
                AND removed_at IS NULL
            """)
    }

    static func markRemoved(_ notification: Notification, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(notifications, writableBy: tx.scope) SET removed_at = \(tx.now.microseconds)
            WHERE user_id = \(notification.userId.text) AND id = \(notification.id.text) AND removed_at IS NULL
            """)
    }

    static func markRemoved(_ notification: Notification, within why: Unscoped, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(notifications, unscoped: why) SET removed_at = \(tx.now.microseconds)
            WHERE tenant = \(tx.tenant) AND user_id = \(notification.userId.text) AND id = \(notification.id.text)
                AND removed_at IS NULL
            """)
    }
}
