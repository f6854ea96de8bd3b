import Database
import Domain
import Values

/// The stored counts of every user. The transactions that change the counted rows also change the counts.
enum BadgeLedger {
    static let badges = Table(
        "badges", read: ["user:{user_id}"], write: [], person: .rows(by: ["user_id"], [.deleted("user_id")]))

    static let migration = Migration(
        "0001_badges",
        sql: [
            // A count below zero is a bug in the service. The transaction that would cause it fails instead.
            """
            CREATE TABLE badges (
                tenant TEXT NOT NULL,
                user_id TEXT NOT NULL,
                messages INTEGER NOT NULL CHECK (messages >= 0),
                requests INTEGER NOT NULL CHECK (requests >= 0),
                bell INTEGER NOT NULL CHECK (bell >= 0),
                version INTEGER NOT NULL,
                updated_at INTEGER NOT NULL,
                PRIMARY KEY (tenant, user_id)
            ) STRICT, WITHOUT ROWID
            """
        ])

    private static let bookkeeping = Unscoped.bookkeeping("counts change when another user's action affects the user")

    /// Returns the counts that the scope may see, or zeros.
    static func read(_ userId: ID<User>, at now: Timestamp, visibleTo scope: Scope, in db: DatabaseConnection) throws
        -> Badges
    {
        try db.withRows(query(userId, visibleTo: scope)) { try badges(in: $0, at: now) }
    }

    static func query(_ userId: ID<User>, visibleTo scope: Scope) -> SQL {
        """
        SELECT messages, requests, bell, version, updated_at FROM \(badges, visibleTo: scope)
        WHERE user_id = \(userId.text)
        """
    }

    /// Returns the counts of a user for a message to the user's own devices or the app's own server.
    static func counts(of owner: Owner, at now: Timestamp, in db: DatabaseConnection) throws -> Badges {
        let counts = try db.row(
            """
            SELECT messages, requests, bell, version, updated_at FROM \(badges, of: owner)
            """, badges(_:))
        return counts ?? Badges(messages: 0, requests: 0, bell: 0, version: 0, asOf: now)
    }

    /// Returns the result of ``query(_:visibleTo:)``: zeros for a user without counts.
    static func badges(in rows: RowCursor, at now: Timestamp) throws -> Badges {
        try rows.row(badges(_:)) ?? Badges(messages: 0, requests: 0, bell: 0, version: 0, asOf: now)
    }

    /// Adds to a user's counts and returns the sum.
    ///
    /// The first row of a user cannot subtract anything. The bounds in VALUES exist because constraints are checked on
    /// the row to be inserted, even if the user's row already exists.
    ///
    /// - Parameter versionStep: 1 for the transaction's first change of the user, 0 for later ones.
    static func add(
        _ change: BadgeChange, versionStep: Int, to owner: Owner, at now: Timestamp, in db: DatabaseConnection
    ) throws -> Badges {
        let sum = try db.row(
            singleUserAddition.binding(
                within: owner.tenant, owner.tenant, owner.userId.text, max(0, change.messages),
                max(0, change.requests), max(0, change.bell),
                now.microseconds, change.messages, change.requests, change.bell, versionStep), badges(_:))
        guard let sum else { throw DatabaseError(.other, "counts were written but not returned") }
        return sum
    }

    private static let singleUserAddition: SQL = """
        INSERT INTO \(badges, within: .boundLater, bookkeeping)
            (tenant, user_id, messages, requests, bell, version, updated_at)
        VALUES (?, ?, ?, ?, ?, 1, ?)
        ON CONFLICT (tenant, user_id) DO UPDATE SET messages = badges.messages + ?, requests = badges.requests + ?,
            bell = badges.bell + ?, version = badges.version + ?, updated_at = excluded.updated_at
        RETURNING messages, requests, bell, version, updated_at
        """

    /// Adds to the counts of users, without subtracting anything, each changed for the first time in its transaction.
    /// Many users take one statement, and on PostgreSQL one round trip.
    static func add(
        _ changes: [(userId: ID<User>, change: BadgeChange)], tenant: ID<Tenant>, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> [ID<User>: Badges] {
        var values: [SQLValue] = []
        values.reserveCapacity(changes.count * 7)
        for (userId, change) in changes {
            values += [
                .text(tenant.text), .text(userId.text), change.messages.sqlValue, change.requests.sqlValue,
                change.bell.sqlValue, .integer(1), .integer(now.microseconds),
            ]
        }
        return try sums(addition.statements(of: values, within: tenant), in: db)
    }

    private static let addition = Insertion(
        """
        INSERT INTO \(badges, within: .boundLater, bookkeeping)
            (tenant, user_id, messages, requests, bell, version, updated_at)
        """, columns: 7,
        """
        ON CONFLICT (tenant, user_id) DO UPDATE SET messages = badges.messages + excluded.messages,
            requests = badges.requests + excluded.requests, bell = badges.bell + excluded.bell,
            version = badges.version + 1, updated_at = excluded.updated_at
        RETURNING messages, requests, bell, version, updated_at, user_id
        """)

    /// Adds the same change to the counts of several users, each changed for the first time in its transaction. Many
    /// users take one statement, even if something is subtracted.
    ///
    /// - Returns: The new counts, without users that have no counts yet.
    static func add(
        _ change: BadgeChange, toEach users: ArraySlice<ID<User>>, tenant: ID<Tenant>, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> [ID<User>: Badges] {
        try sums(
            [
                """
                UPDATE \(badges, within: tenant, bookkeeping) SET messages = messages + \(change.messages),
                    requests = requests + \(change.requests), bell = bell + \(change.bell), version = version + 1,
                    updated_at = \(now.microseconds)
                WHERE user_id IN \(values: users.map(\.text))
                RETURNING messages, requests, bell, version, updated_at, user_id
                """
            ], in: db)
    }

    private static func sums(_ statements: [SQL], in db: DatabaseConnection) throws -> [ID<User>: Badges] {
        Dictionary(uniqueKeysWithValues: try db.rows(of: statements) { (ID(try $0.text(5)), try badges($0)) })
    }

    private static func badges(_ row: Row) throws -> Badges {
        Badges(
            messages: try row.integer(0), requests: try row.integer(1), bell: try row.integer(2),
            version: try row.integer(3), asOf: try row.moment(4))
    }

    /// Calls the body with every user's counts, for the recount of `bellhop check`.
    static func all(
        in db: DatabaseConnection,
        _ body: (_ tenant: ID<Tenant>, _ userId: ID<User>, _ counts: BadgeChange) throws -> Void
    ) throws {
        try db.forEach(
            """
            SELECT tenant, user_id, messages, requests, bell
            FROM \(badges, unscoped: .audit("a recount reads the rows of all users"))
            """
        ) { row in
            let counts = BadgeChange(
                messages: try row.integer(2), requests: try row.integer(3), bell: try row.integer(4))
            try body(try row.id(0), try row.id(1), counts)
            return true
        }
    }
}
