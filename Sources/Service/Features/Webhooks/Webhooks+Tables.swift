import Database
import Domain
import Values

extension WebhooksFeature {
    /// For the tenant's backends, to which webhooks are sent.
    static let outbox = Table(
        "webhook_outbox", read: ["tenant:service"], write: ["tenant:service"],
        kept: "30 days after sending, 7 days without success",
        person: .rows(by: ["number"], [.deletedByScan("user_id")], content: "data"))

    static let migrations = [
        Migration("0001_webhooks", sql: creation),
        Migration(
            "0002_webhooks",
            sql: [
                // The webhooks of a conversation that is read.
                """
                CREATE INDEX webhook_outbox_conversations ON webhook_outbox (tenant, lane, subject)
                WHERE type = 'message.unreached'
                """
            ]),
        // The tenants with waiting webhooks, and the due webhooks of one.
        Migration(
            "0003_webhooks",
            sql: ["CREATE INDEX webhook_outbox_turns ON webhook_outbox (tenant, next_at) WHERE state = 0"]),
    ]

    private static let creation: [Migration.Step] = [
        .sqlite(definition("INTEGER PRIMARY KEY AUTOINCREMENT", text: "TEXT", integer: "INTEGER") + " STRICT"),
        .postgreSQL(
            definition(
                "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", text: "TEXT COLLATE \"C\"", integer: "BIGINT")),
        // The due webhooks, and whether another one of the same lane comes before them.
        "CREATE INDEX webhook_outbox_due ON webhook_outbox (next_at) WHERE state = 0",
        """
        CREATE INDEX webhook_outbox_lanes ON webhook_outbox (tenant, lane, number, due_at, type) WHERE state = 0
        """,
        "CREATE INDEX webhook_outbox_ends ON webhook_outbox (gives_up_at) WHERE state = 0",
        // The webhooks of a notification that is seen.
        """
        CREATE INDEX webhook_outbox_subjects ON webhook_outbox (tenant, lane, subject)
        WHERE type = 'notification.unreached'
        """,
        "CREATE INDEX webhook_outbox_dead ON webhook_outbox (tenant, id) WHERE state = 2",
        "CREATE INDEX webhook_outbox_settled ON webhook_outbox (state, settled_at) WHERE state > 0",
    ]

    /// Numbers rise in the order of a user's transactions. The state is 0 while a webhook waits, 1 once it was accepted
    /// (only if it may be withdrawn), and 2 when it is dead.
    private static func definition(_ number: String, text: String, integer: String) -> String {
        """
        CREATE TABLE webhook_outbox (
            number \(number),
            tenant \(text) NOT NULL,
            id \(text) NOT NULL,
            lane \(text) NOT NULL,
            user_id \(text),
            type \(text) NOT NULL,
            subject \(text) NOT NULL,
            data \(text) NOT NULL,
            quiet_start \(integer),
            quiet_end \(integer),
            time_zone \(text),
            state \(integer) NOT NULL,
            created_at \(integer) NOT NULL,
            due_at \(integer) NOT NULL,
            next_at \(integer) NOT NULL,
            leased_until \(integer) NOT NULL,
            gives_up_at \(integer) NOT NULL,
            attempts \(integer) NOT NULL,
            tried_at \(integer),
            error \(text),
            reason \(text),
            settled_at \(integer)
        )
        """
    }

    private static let reacting = Unscoped.reaction("the service sends webhooks about the actions of all users")

    // MARK: In other features' transactions

    static func insert(_ drafts: [WebhookDraft], _ tx: Transaction) throws {
        guard !drafts.isEmpty else { return }
        var values: [SQLValue] = []
        values.reserveCapacity(drafts.count * 18)
        for draft in drafts {
            let id: ID<WebhookDraft> = tx.makeID(WebhookDraft.self)
            values += [
                .text(tx.tenant.text), .text(id.text), .text(draft.lane), draft.userId.sqlValue,
                .text(draft.type.rawValue), .text(draft.subject), .utf8(draft.data),
                (draft.preferences?.quietHours?.startMinute).sqlValue,
                (draft.preferences?.quietHours?.endMinute).sqlValue,
                (draft.preferences?.timeZone).sqlValue, .integer(0), tx.now.sqlValue, draft.dueAt.sqlValue,
                draft.notBefore.sqlValue, .integer(0), draft.dueAt.adding(seconds: WebhookRetry.seconds).sqlValue,
                .integer(0), draft.sentAt.sqlValue,
            ]
        }
        try tx.db.run(insertion.statements(of: values))
    }

    private static let insertion = Insertion(
        """
        INSERT INTO \(outbox, unscoped: reacting)
            (tenant, id, lane, user_id, type, subject, data, quiet_start, quiet_end, time_zone, state, created_at, due_at,
            next_at, leased_until, gives_up_at, attempts, tried_at)
        """, columns: 18)

    /// A removed row of the outbox that reported something unseen.
    struct RemovedWebhook {
        /// The id of the notification or the conversation.
        let subject: String
        let number: Int
        /// Whether an attempt was begun. Its outcome cannot be known.
        let isMaybeSent: Bool
        let leasedUntil: Timestamp
        let preferences: Preferences?
    }

    /// Deletes the webhooks that report notifications or conversations of a user as unseen.
    ///
    /// If an attempt begins at the same moment, one of the two transactions waits for the other. Either the attempt
    /// finds no row, or this deletion sees that the attempt was begun.
    static func withdrawRows(
        _ ids: [String], _ type: WebhookType, of userId: ID<User>, _ tx: Transaction
    ) throws -> [RemovedWebhook] {
        // The type is part of the text, because the index is only for rows of one type.
        let isType: SQL = type == .unreached ? "type = 'notification.unreached'" : "type = 'message.unreached'"
        return try RowParts.ranges(of: ids.count, most: takenAtOnceMax).flatMap { part in
            try tx.db.rows(
                """
                DELETE FROM \(outbox, unscoped: .reaction("what is seen cancels its webhook"))
                WHERE tenant = \(tx.tenant) AND lane = \(WebhookLane.of(userId)) AND \(isType)
                    AND subject IN \(values: ids[part])
                RETURNING subject, number, tried_at, leased_until, quiet_start, quiet_end, time_zone
                """
            ) { row in
                RemovedWebhook(
                    subject: try row.text(0), number: try row.integer(1),
                    isMaybeSent: try row.optionalMoment(2) != nil,
                    leasedUntil: try row.moment(3), preferences: try preferences(row, from: 4))
            }
        }
    }

    /// Returns the users for whom a webhook about a conversation waits whose content has not been read yet.
    static func usersWithWaiting(
        _ subject: String, among users: [ID<User>], _ tx: Transaction
    ) throws -> Set<ID<User>> {
        Set(
            try RowParts.ranges(of: users.count, most: takenAtOnceMax).flatMap { part in
                try tx.db.rows(
                    """
                    SELECT user_id FROM \(outbox, unscoped: reacting)
                    WHERE tenant = \(tx.tenant) AND lane IN \(values: users[part].map(WebhookLane.of))
                        AND type = 'message.unreached' AND subject = \(subject) AND state = 0 AND attempts = 0
                    """
                ) { try $0.id(0) as ID<User> }
            })
    }

    /// Deletes the webhooks about a conversation that were sent or are dead.
    ///
    /// - Returns: The times when they were sent.
    static func takeSent(
        _ subject: String, of users: [ID<User>], _ tx: Transaction
    ) throws -> [ID<User>: Timestamp] {
        let sent = try RowParts.ranges(of: users.count, most: takenAtOnceMax).flatMap { part in
            try tx.db.rows(
                """
                DELETE FROM \(outbox, unscoped: reacting)
                WHERE tenant = \(tx.tenant) AND lane IN \(values: users[part].map(WebhookLane.of))
                    AND type = 'message.unreached' AND subject = \(subject) AND state > 0
                    AND tried_at IS NOT NULL
                RETURNING user_id, tried_at
                """
            ) { (userId: try $0.id(0) as ID<User>, sentAt: try $0.moment(1)) }
        }
        return Dictionary(sent.map { ($0.userId, $0.sentAt) }, uniquingKeysWith: max)
    }

    /// Rows of one statement.
    private static let takenAtOnceMax = 128

    static func store(_ preferences: Preferences, of userId: ID<User>, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(outbox, unscoped: .reaction("a copy of the user's new settings"))
            SET quiet_start = \(preferences.quietHours?.startMinute), quiet_end = \(preferences.quietHours?.endMinute),
                time_zone = \(preferences.timeZone)
            WHERE tenant = \(tx.tenant) AND lane = \(WebhookLane.of(userId)) AND state = 0 AND time_zone IS NOT NULL
            """)
    }

    /// Reads preferences from three columns; nil if the webhook is not about a notification.
    static func preferences(_ row: Row, from first: Int) throws -> Preferences? {
        guard let zone = try row.optionalText(first + 2) else { return nil }
        return Preferences(
            quietHours: try QuietHours(
                optionalStart: row.optionalInteger(first), optionalEnd: row.optionalInteger(first + 1)),
            timeZone: zone)
    }
}
