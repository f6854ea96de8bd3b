import Database
import Domain
import Values

extension NotificationsFeature {
    /// Backends write notifications, but do not read them: only the user sees them (R-VIS-NFR-3.1).
    static let notifications = Table(
        "notifications", read: ["user:{user_id}"], write: ["user:{user_id}", "tenant:service"],
        kept: "BELLHOP_NOTIFICATIONS_KEPT_DAYS, if set",
        // Removed notifications without the id of an event are deleted at once. Each condition has its index.
        person: .rows(
            by: ["user_id", "id"],
            [
                .deleted("user_id", where: "removed_at IS NULL"), .deleted("user_id", where: "event_id IS NOT NULL"),
            ], .json(["data"])))

    /// One row for each user that was ever notified: the number of stored notifications, and the user's data for
    /// creating the next one. So a notification needs neither a `COUNT(*)` nor a read of the preferences.
    static let inboxes = Table(
        "inboxes", read: [], write: [], person: .rows(by: ["user_id"], [.deleted("user_id")]))

    static let migrations = [
        Migration(
            "0001_notifications",
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
                    request_id TEXT,
                    is_ranked INTEGER NOT NULL,
                    CHECK (seen_at IS NOT NULL OR (read_at IS NULL AND archived_at IS NULL))
                ) STRICT
                """,
                // The order of lists.
                "CREATE INDEX notifications_listed ON notifications (tenant, user_id, id) WHERE removed_at IS NULL",
                // The order of eviction, from which a full inbox takes the first. Only inboxes that were full are in it.
                """
                CREATE INDEX notifications_eviction ON notifications (tenant, user_id, (
                    CASE WHEN read_at IS NOT NULL OR archived_at IS NOT NULL THEN 0 WHEN priority = 3 THEN 8
                        WHEN priority = 2 THEN 6 WHEN seen_at IS NOT NULL THEN 2 ELSE 4 END
                        + CASE WHEN priority = 0 THEN 0 ELSE 1 END), id)
                WHERE removed_at IS NULL AND is_ranked = 1
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
                    kept INTEGER NOT NULL CHECK (kept >= 0),
                    evicting INTEGER NOT NULL,
                    sound INTEGER NOT NULL,
                    haptics INTEGER NOT NULL,
                    quiet_start INTEGER,
                    quiet_end INTEGER,
                    time_zone TEXT NOT NULL,
                    newest_at INTEGER NOT NULL DEFAULT 0,
                    ranking INTEGER NOT NULL DEFAULT 0,
                    PRIMARY KEY (tenant, user_id)
                ) STRICT, WITHOUT ROWID
                """,
            ])
    ]

    static let columns = Notification.columns()

    enum ListState: String, CaseIterable, Sendable {
        case unseen, unread, archived, all
    }

    /// The selection of a user's notifications in a list.
    struct Filter {
        var category: NotificationCategory?
        var priority: Priority?
        /// Nil for all except archived ones.
        var state: ListState?
    }

    /// Returns a query of a user's notifications, newest first, after a cursor.
    static func listing(
        of userId: ID<User>, _ filter: Filter, after: String?, limit: Int, visibleTo scope: Scope
    ) -> SQL {
        let stateCondition: SQL? =
            switch filter.state {
            case .unseen: "seen_at IS NULL"
            case .unread: "read_at IS NULL AND archived_at IS NULL"
            case .archived: "archived_at IS NOT NULL"
            case .all: nil
            case nil: "archived_at IS NULL"
            }
        let conditions: [SQL?] = [
            "user_id = \(userId) AND removed_at IS NULL", stateCondition,
            filter.category.map { "category = \($0.rawValue)" }, filter.priority.map { "priority = \($0.rank)" },
            after.map { "id < \($0)" },
        ]
        return """
            SELECT \(columns) FROM \(notifications, visibleTo: scope)
            WHERE \(SQL.all(conditions)) ORDER BY id DESC LIMIT \(limit)
            """
    }

    /// Returns a notification.
    ///
    /// - Throws: 404 for one that does not exist, and equally for another user's.
    static func require(_ id: ID<Notification>, _ tx: Transaction) throws -> Notification {
        try tx.db.row(
            """
            SELECT \(columns) FROM \(notifications, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND id = \(id) AND removed_at IS NULL
            """, Notification.init(row:)
        ).required("notification")
    }

    /// Returns all notifications of the caller up to and including an id, oldest first.
    static func all(
        upTo last: ID<Notification>, in category: NotificationCategory?, _ tx: Transaction
    ) throws -> [Notification] {
        var condition: SQL = "user_id = \(tx.caller.userId) AND removed_at IS NULL AND id <= \(last)"
        if let category { condition.append(" AND category = \(category.rawValue)") }
        return try tx.db.rows(
            "SELECT \(columns) FROM \(notifications, visibleTo: tx.scope) WHERE \(condition) ORDER BY id",
            Notification.init(row:))
    }

    /// Returns the caller's unseen notifications that ask for open requests.
    static func unseenOfRequests(_ tx: Transaction) throws -> [Notification] {
        try tx.db.rows(
            """
            SELECT \(columns) FROM \(notifications, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND removed_at IS NULL AND seen_at IS NULL AND request_id IS NOT NULL
            ORDER BY id
            """, Notification.init(row:))
    }

    /// Stores the same change of many notifications of the caller by few statements, because there may be hundreds.
    static func store(_ change: NotificationStateChange, of changed: [Notification], _ tx: Transaction) throws {
        let states = [("seen_at", change.seen), ("read_at", change.read), ("archived_at", change.archived)]
        let assignments = states.compactMap { name, wanted -> SQL? in
            guard let wanted else { return nil }
            let column = SQL(unchecked: name)
            return wanted ? "\(column) = coalesce(\(column), \(tx.now))" : "\(column) = NULL"
        }
        let ids = changed.map(\.id.text)
        for part in RowParts.ranges(of: ids.count, most: storedAtOnceMax) {
            try tx.db.run(
                """
                UPDATE \(notifications, writableBy: tx.scope) SET \(SQL.joined(assignments, separator: ", "))
                WHERE user_id = \(tx.caller.userId) AND id IN \(values: ids[part]) AND removed_at IS NULL
                """)
        }
    }

    /// Rows of one statement.
    private static let storedAtOnceMax = 128

    /// Stores that a request is answered: the notification that asked for it is read, and becomes an ordinary one.
    static func storeHandled(_ notification: Notification, within why: Unscoped, _ tx: Transaction) throws {
        let state = notification.state
        let columns: SQL = "seen_at = \(state.seenAt), read_at = \(state.readAt), request_id = NULL"
        try update(notification, set: columns, within: why, tx)
    }

    /// Changes a notification that is not removed.
    ///
    /// - Parameter why: Nil for the caller's own change, which the table's policy must allow.
    static func update(
        _ notification: Notification, set columns: SQL, within why: Unscoped?, _ tx: Transaction
    ) throws {
        let update: SQL =
            why.map { "UPDATE \(notifications, within: tx.tenant, $0)" }
            ?? "UPDATE \(notifications, writableBy: tx.scope)"
        try tx.db.run(
            """
            \(update) SET \(columns)
            WHERE user_id = \(notification.userId) AND id = \(notification.id) AND removed_at IS NULL
            """)
    }
}
