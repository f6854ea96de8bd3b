import Database

/// The former tables, which ``Outbox/migration`` replaces.
extension WebhooksFeature {
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
}
