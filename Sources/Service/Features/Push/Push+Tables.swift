import Database
import Domain
import Values
import Visibility

extension PushFeature {
    /// Each user's own devices.
    static let devices = Table(
        "devices", read: ["user:{user_id}"], write: ["user:{user_id}"],
        person: .rows(by: ["user_id", "id"], [.deleted("user_id")], .hidden(["address", "fingerprint"])))

    static let migration = Migration(
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
                route TEXT NOT NULL,
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
            // The route is that of the messages to the device. An address belongs to one user. This finds its former one.
            "CREATE UNIQUE INDEX devices_addresses ON devices (fingerprint)",
        ])

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
    static func store(
        _ device: Device, address: [UInt8], route: String, fingerprint: String, _ tx: Transaction
    ) throws {
        try tx.db.run(
            """
            INSERT INTO \(devices, writableBy: tx.scope)
                (tenant, user_id, \(deviceColumns), address, route, fingerprint, badge_at)
            VALUES (\(tx.tenant), \(tx.caller.userId), \(device.values), \(address), \(route), \(fingerprint), 0)
            ON CONFLICT (tenant, user_id, id) DO UPDATE SET
                platform = excluded.platform, app = excluded.app, environment = excluded.environment,
                address = excluded.address, route = excluded.route, fingerprint = excluded.fingerprint, registered_at = excluded.registered_at,
                badge = NULL, error = NULL, error_at = NULL
            """)
    }

    /// Returns the devices of users, at most a number of them.
    static func devices(of users: [ID<User>], atMost limit: Int = .max, _ tx: Transaction) throws -> [RegisteredDevice]
    {
        var found: [RegisteredDevice] = []
        for part in RowParts.ranges(of: users.count, most: OutboxLimits.rowsAtOnceMax) where found.count < limit {
            found += try devices(
                "user_id IN \(values: users[part].map(\.text))", of: tx.tenant, atMost: limit - found.count, in: tx.db)
        }
        return found
    }

    static func devices(
        _ condition: SQL, of tenant: ID<Tenant>, atMost limit: Int = .max, in db: DatabaseConnection
    ) throws -> [RegisteredDevice] {
        try db.rows(
            """
            SELECT user_id, id, route, badge_at FROM \(devices, within: tenant, Outbox.adding)
            WHERE \(condition) LIMIT \(limit)
            """
        ) { row in
            RegisteredDevice(
                userId: try row.id(0), id: try row.id(1), route: try row.text(2), badgeAt: try row.moment(3))
        }
    }

    /// Returns the number of devices of each user that has some.
    static func deviceCounts(of users: [ID<User>], _ tx: Transaction) throws -> [ID<User>: Int] {
        var counts: [ID<User>: Int] = [:]
        for part in RowParts.ranges(of: users.count, most: OutboxLimits.rowsAtOnceMax) {
            try tx.db.forEach(
                """
                SELECT user_id, count(*) FROM \(devices, within: tx.tenant, Outbox.adding)
                WHERE user_id IN \(values: users[part].map(\.text)) GROUP BY user_id
                """
            ) { row in
                counts[try row.id(0)] = try row.integer(1)
                return true
            }
        }
        return counts
    }

    /// A device as the reactions need it.
    struct RegisteredDevice: Sendable {
        let userId: ID<User>
        let id: ID<Device>
        let route: String
        /// The time when it was last sent a number.
        let badgeAt: Timestamp

        var lane: OutboxLane { OutboxLane(name: PushFeature.lane(of: id, userId), route: route) }
    }

    /// The messages to one device are sent one after the other.
    static func lane(of device: ID<Device>, _ userId: ID<User>) -> String {
        Outbox.laneName(.push, AudienceKey.make("device", userId.text, device.text))
    }
}
