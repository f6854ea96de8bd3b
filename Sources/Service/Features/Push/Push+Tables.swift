import Database
import Domain
import Values

extension PushFeature {
    /// Each user's own devices.
    static let devices = Table(
        "devices", read: ["user:{user_id}"], write: ["user:{user_id}"],
        person: .rows(by: ["user_id", "id"], [.deleted("user_id")], hidden: ["address", "fingerprint"]))

    /// The messages to send, one row for each device. No user reads them.
    static let outbox = Table(
        "push_outbox", read: [], write: [], kept: "30 days after sending, one day before",
        person: .rows(by: ["number"], [.deleted("user_id")]))

    static let migrations = [
        creation,
        // The tenants with waiting messages, and the due messages of one.
        Migration(
            "0002_push", sql: ["CREATE INDEX push_outbox_turns ON push_outbox (tenant, next_at) WHERE state = 0"]),
        // A mark at the fingerprints of spellings. The service replaces them by the fingerprints of devices, for which it
        // needs the keys. Without FORCE, the owner of the table sees all rows.
        Migration(
            "0001_device_addresses",
            sql: [
                .postgreSQL("ALTER TABLE devices NO FORCE ROW LEVEL SECURITY"),
                "UPDATE devices SET fingerprint = '~' || fingerprint",
                .postgreSQL("ALTER TABLE devices FORCE ROW LEVEL SECURITY"),
            ]),
    ]

    private static let creation = Migration(
        "0001_push",
        sql: [
            """
            CREATE TABLE devices (
                tenant TEXT NOT NULL,
                user_id TEXT NOT NULL,
                id TEXT NOT NULL,
                platform TEXT NOT NULL,
                app TEXT,
                environment TEXT NOT NULL,
                address BLOB NOT NULL,
                fingerprint TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                registered_at INTEGER NOT NULL,
                badge INTEGER,
                badge_at INTEGER NOT NULL,
                error TEXT,
                error_at INTEGER,
                PRIMARY KEY (tenant, user_id, id)
            ) STRICT, WITHOUT ROWID
            """,
            // An address belongs to one user. This finds its former one.
            "CREATE UNIQUE INDEX devices_addresses ON devices (fingerprint)",
            .sqlite(definition("INTEGER PRIMARY KEY AUTOINCREMENT", text: "TEXT", integer: "INTEGER") + " STRICT"),
            .postgreSQL(
                definition(
                    "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", text: "TEXT COLLATE \"C\"", integer: "BIGINT")),
            // A device has one message about each subject: the next message replaces it.
            """
            CREATE UNIQUE INDEX push_outbox_subjects ON push_outbox (tenant, user_id, type, subject, device_id)
            """,
            "CREATE INDEX push_outbox_due ON push_outbox (next_at) WHERE state = 0",
            "CREATE INDEX push_outbox_lanes ON push_outbox (tenant, user_id, device_id, due_at) WHERE state = 0",
            "CREATE INDEX push_outbox_ends ON push_outbox (gives_up_at)",
        ])

    /// The state is 0 while a message waits and 1 once it was accepted, as long as it may be withdrawn.
    private static func definition(_ number: String, text: String, integer: String) -> String {
        """
        CREATE TABLE push_outbox (
            number \(number),
            tenant \(text) NOT NULL,
            user_id \(text) NOT NULL,
            device_id \(text) NOT NULL,
            type \(text) NOT NULL,
            subject \(text) NOT NULL,
            state \(integer) NOT NULL,
            created_at \(integer) NOT NULL,
            due_at \(integer) NOT NULL,
            next_at \(integer) NOT NULL,
            leased_until \(integer) NOT NULL,
            gives_up_at \(integer) NOT NULL,
            attempts \(integer) NOT NULL,
            tried_at \(integer)
        )
        """
    }

    static let reacting = Unscoped.reaction("the service sends messages about the actions of all users")

    // MARK: Devices

    private static let deviceColumns = Device.columns()

    static func list(of caller: Caller) -> SQL {
        """
        SELECT \(deviceColumns) FROM \(devices, visibleTo: caller.scope)
        WHERE user_id = \(caller.userId) ORDER BY registered_at DESC, id
        """
    }

    static func find(_ id: ID<Device>, _ tx: Transaction) throws -> Device? {
        try tx.db.row(
            """
            SELECT \(deviceColumns) FROM \(devices, visibleTo: tx.scope)
            WHERE user_id = \(tx.caller.userId) AND id = \(id)
            """, Device.init(row:))
    }

    /// Stores a device, in place of an earlier registration of its id.
    static func store(_ device: Device, address: [UInt8], fingerprint: String, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(devices, writableBy: tx.scope)
                (tenant, user_id, \(deviceColumns), address, fingerprint, badge_at)
            VALUES (\(tx.tenant), \(tx.caller.userId), \(device.values), \(address), \(fingerprint), 0)
            ON CONFLICT (tenant, user_id, id) DO UPDATE SET
                platform = excluded.platform, app = excluded.app, environment = excluded.environment,
                address = excluded.address, fingerprint = excluded.fingerprint, registered_at = excluded.registered_at,
                badge = NULL, error = NULL, error_at = NULL
            """)
    }

    /// Locks users. Their devices and messages change only under this lock: a sender changes devices and messages of
    /// many users in one transaction, and would deadlock with requests.
    static func lock(_ owners: [Owner], in db: DatabaseConnection) throws {
        try db.lock(owners.map { LockKey.user($0.userId).name(in: $0.tenant) })
    }

    /// Removes the messages of a device.
    static func removeMessages(of device: ID<Device>, _ owner: Owner, _ db: DatabaseConnection) throws {
        try db.run(
            """
            DELETE FROM \(outbox, unscoped: reacting)
            WHERE tenant = \(owner.tenant) AND user_id = \(owner.userId) AND device_id = \(device)
            """)
    }

    /// Returns the devices of users.
    static func devices(of users: [ID<User>], _ tx: Transaction) throws -> [RegisteredDevice] {
        try RowParts.ranges(of: users.count, most: PushOutboxLimits.rowsAtOnceMax).flatMap { part in
            try tx.db.rows(
                """
                SELECT user_id, id, platform, badge_at FROM \(devices, unscoped: reacting)
                WHERE tenant = \(tx.tenant) AND user_id IN \(values: users[part].map(\.text))
                """
            ) { row in
                RegisteredDevice(
                    userId: try row.id(0), id: try row.id(1),
                    platform: try row.word(2, orElse: "a stored device has an unknown platform"),
                    badgeAt: try row.moment(3))
            }
        }
    }

    /// A device as the reactions need it.
    struct RegisteredDevice: Sendable {
        let userId: ID<User>
        let id: ID<Device>
        let platform: Device.Platform
        /// The time when it was last sent a number.
        let badgeAt: Timestamp
    }

    // MARK: The outbox

    /// A message to be added to the outbox.
    struct Draft: Sendable {
        let type: PushType
        let subject: String
        let device: ID<Device>
        let userId: ID<User>
        let dueAt: Timestamp
    }

    /// Adds messages. A message about the same subject that still waits stays as it is, because its content is read
    /// when it is sent; one that was sent is sent again.
    static func insert(_ drafts: [Draft], _ tx: Transaction) throws {
        guard !drafts.isEmpty else { return }
        var values: [SQLValue] = []
        values.reserveCapacity(drafts.count * 12)
        for draft in drafts {
            values += [
                .text(tx.tenant.text), .text(draft.userId.text), .text(draft.device.text), .text(draft.type.rawValue),
                .text(draft.subject), .integer(0), tx.now.sqlValue, draft.dueAt.sqlValue, draft.dueAt.sqlValue,
                .integer(0), draft.dueAt.adding(seconds: PushOutboxLimits.secondsToLive).sqlValue, .integer(0),
            ]
        }
        try tx.db.run(insertion.statements(of: values))
    }

    /// Returns how many messages about subjects wait already.
    static func waitingCount(
        _ type: PushType, _ subjects: [(userId: ID<User>, subject: String)], _ tx: Transaction
    ) throws -> Int {
        try RowParts.ranges(of: subjects.count, most: PushOutboxLimits.rowsAtOnceMax).reduce(0) { sum, part in
            let count = try tx.db.integer(
                """
                SELECT count(*) FROM \(outbox, unscoped: reacting)
                WHERE tenant = \(tx.tenant) AND user_id IN \(values: subjects[part].map(\.userId.text))
                    AND type = \(type.rawValue) AND subject IN \(values: Set(subjects[part].map(\.subject)).sorted())
                    AND \(isWaiting)
                """)
            return sum + (count ?? 0)
        }
    }

    private static let isWaiting: SQL = "push_outbox.state = 0 AND push_outbox.leased_until = 0"

    private static let insertion = Insertion(
        """
        INSERT INTO \(outbox, unscoped: reacting)
            (tenant, user_id, device_id, type, subject, state, created_at, due_at, next_at, leased_until, gives_up_at,
            attempts)
        """, columns: 12,
        """
        ON CONFLICT (tenant, user_id, type, subject, device_id) DO UPDATE SET
            state = 0, gives_up_at = excluded.gives_up_at,
            created_at = CASE WHEN \(isWaiting) THEN push_outbox.created_at ELSE excluded.created_at END,
            due_at = CASE WHEN \(isWaiting) THEN push_outbox.due_at ELSE excluded.due_at END,
            next_at = CASE WHEN \(isWaiting) THEN push_outbox.next_at
                WHEN push_outbox.leased_until > excluded.next_at THEN push_outbox.leased_until ELSE excluded.next_at END
        """)

    /// Removes the messages about subjects that the user has seen. A message that was sent, or may have been, becomes
    /// its withdrawal.
    ///
    /// While an attempt runs, its row keeps the lease. So the device's next messages wait until it is known that the
    /// withdrawal cannot overtake the message, nor an older number a newer one. If an attempt begins at the same moment,
    /// one of the two transactions waits for the other: either the attempt finds no row, or the second statement finds
    /// that it was begun.
    ///
    /// - Returns: Whether there are withdrawals.
    static func take(
        _ type: PushType, _ subjects: [String], of userId: ID<User>, _ devices: [RegisteredDevice], _ tx: Transaction
    ) throws -> Bool {
        var withdrawals = 0
        for part in RowParts.ranges(of: subjects.count, most: PushOutboxLimits.rowsAtOnceMax) {
            let condition: SQL = """
                tenant = \(tx.tenant) AND user_id = \(userId) AND type = \(type.rawValue)
                    AND subject IN \(values: Array(subjects[part]))
                """
            try tx.db.run("DELETE FROM \(outbox, unscoped: reacting) WHERE \(condition) AND attempts = 0")
            for isBrowser in [false, true] {
                let places = devices.filter { ($0.platform == .webPush) == isBrowser }.map(\.id.text)
                guard !places.isEmpty else { continue }
                withdrawals += try withdraw(
                    "\(condition) AND device_id IN \(values: places)", type, of: userId, isBrowser: isBrowser, tx)
            }
        }
        return withdrawals > 0
    }

    /// Turns messages into their withdrawals.
    ///
    /// - Returns: The number of withdrawals.
    private static func withdraw(
        _ condition: SQL, _ type: PushType, of userId: ID<User>, isBrowser: Bool, _ tx: Transaction
    ) throws -> Int {
        // An older withdrawal of the same subject: a browser's waits for its next alert.
        try tx.db.run(
            """
            DELETE FROM \(outbox, unscoped: reacting) WHERE tenant = \(tx.tenant) AND user_id = \(userId)
                AND type = \(PushType.withdrawal.rawValue) AND (subject, device_id) IN (
                    SELECT \(tag(type, "")) || subject, device_id FROM push_outbox WHERE \(condition))
            """)
        // A browser shows something for each message, so its next alert takes the withdrawals along.
        let later = tx.now.adding(seconds: PushOutboxLimits.sentSeconds)
        let dueAt: SQL = isBrowser ? "\(later)" : "CASE WHEN due_at < \(tx.now) THEN due_at ELSE \(tx.now) END"
        let nextAt = isBrowser ? later : tx.now
        return try tx.db.run(
            """
            UPDATE \(outbox, unscoped: reacting)
            SET type = \(PushType.withdrawal.rawValue), subject = \(tag(type, "")) || subject, state = 0,
                attempts = CASE WHEN leased_until = 0 THEN 1 ELSE attempts END,
                created_at = \(tx.now), due_at = \(dueAt), next_at = \(nextAt),
                gives_up_at = \(nextAt.adding(seconds: PushOutboxLimits.secondsToLive))
            WHERE \(condition)
            """)
    }
}

/// The types of push messages.
enum PushType: String, CaseIterable, Sendable {
    case notification, message, badge, withdrawal, test
}
