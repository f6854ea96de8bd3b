import Database
import Domain
import MicroHTTP
import Values

/// The notification preferences of each user: sound, haptics, quiet hours (R-VIS-FR-5.2, R-VIS-FR-5.3).
enum PreferencesFeature {
    static let feature = Feature(
        name: "preferences", set: .bell, tables: [preferences], migrations: migrations,
        endpoints: [
            Endpoint(.get, "/v1/preferences", access: .bearer, show),
            Endpoint(.put, "/v1/preferences", access: .bearer, replace),
        ],
        events: ["preferences:update"])

    // MARK: Routes

    private static func show(_ call: Call) throws -> Answer {
        .query(query(of: call.caller)) { Response.json(200, try preferences(in: $0)) }
    }

    /// `PUT /v1/preferences`: replaces all preferences. Members that are left out take their defaults.
    private static func replace(_ call: Call) throws -> Answer {
        let wanted = try call.body { Preferences(reading: &$0, isTimeZone: TimeZones.isKnown) }
        return .write(locking: .user(call.caller.userId)) { tx in
            try store(wanted, tx)
            let userId = tx.caller.userId
            tx.record(.preferencesChanged(wanted, of: userId))
            // The user's other devices display and apply them.
            tx.publish(
                "preferences:update", audience: preferences.read.audience { $0 == "user_id" ? userId.text : nil },
                collapse: "preferences:\(userId.text)", data: JSONWriter.bytes(wanted))
            return Response.json(200, wanted)
        }
    }

    // MARK: Rows

    static let preferences = Table(
        "preferences", read: ["user:{user_id}"], write: ["user:{user_id}"],
        person: .rows(by: ["user_id"], [.deleted("user_id")]))

    static let migrations = [
        Migration(
            "0001_preferences",
            sql: [
                """
                CREATE TABLE preferences (
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    sound INTEGER NOT NULL,
                    haptics INTEGER NOT NULL,
                    quiet_start INTEGER,
                    quiet_end INTEGER,
                    time_zone TEXT NOT NULL,
                    updated_at INTEGER NOT NULL,
                    PRIMARY KEY (tenant, user_id),
                    CHECK ((quiet_start IS NULL) = (quiet_end IS NULL))
                ) STRICT, WITHOUT ROWID
                """
            ])
    ]

    /// Returns a user's preferences, for messages that the service sends to the user.
    static func preferences(of owner: Owner, in db: DatabaseConnection) throws -> Preferences {
        try db.withRows(
            """
            SELECT sound, haptics, quiet_start, quiet_end, time_zone
            FROM \(preferences, of: owner)
            """
        ) { try preferences(in: $0) }
    }

    static func query(of caller: Caller) -> SQL {
        """
        SELECT sound, haptics, quiet_start, quiet_end, time_zone
        FROM \(preferences, visibleTo: caller.scope) WHERE user_id = \(caller.userId)
        """
    }

    /// Returns the caller's preferences; the defaults if the caller never set any.
    static func preferences(in rows: RowCursor) throws -> Preferences {
        let found = try rows.row { row in
            Preferences(
                sound: try row.bool(0), haptics: try row.bool(1),
                quietHours: try QuietHours(optionalStart: row.optionalInteger(2), optionalEnd: row.optionalInteger(3)),
                timeZone: try row.text(4))
        }
        return found ?? Preferences()
    }

    static func store(_ wanted: Preferences, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(preferences, writableBy: tx.scope)
                (tenant, user_id, sound, haptics, quiet_start, quiet_end, time_zone, updated_at)
            VALUES (\(tx.tenant), \(tx.caller.userId), \(wanted.sound), \(wanted.haptics),
                \(wanted.quietHours?.startMinute), \(wanted.quietHours?.endMinute), \(wanted.timeZone), \(tx.now))
            ON CONFLICT (tenant, user_id) DO UPDATE SET
                sound = excluded.sound, haptics = excluded.haptics, quiet_start = excluded.quiet_start,
                quiet_end = excluded.quiet_end, time_zone = excluded.time_zone, updated_at = excluded.updated_at
            """)
    }
}
