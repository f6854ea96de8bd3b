import Database
import Domain
import Values

/// The stored counts of every user. The transactions that change the counted rows also change the counts.
///
/// Each row names the shares that are hidden from its user. What is shown follows from the row alone, so its version
/// also covers what a change of the features hides or shows (decision 0038).
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
                hidden INTEGER NOT NULL DEFAULT 0,
                PRIMARY KEY (tenant, user_id)
            ) STRICT, WITHOUT ROWID
            """
        ])

    private static let bookkeeping = Unscoped.bookkeeping("counts change when another user's action affects the user")
    /// The columns of ``badges(_:)``.
    private static let columns: SQL = "messages, requests, bell, version, updated_at, hidden"

    /// Returns the counts that the scope may see, or zeros.
    static func read(_ userId: ID<User>, at now: Timestamp, visibleTo scope: Scope, in db: DatabaseConnection) throws
        -> Badges
    {
        try db.withRows(query(userId, visibleTo: scope)) { try badges(in: $0, at: now) }
    }

    static func query(_ userId: ID<User>, visibleTo scope: Scope) -> SQL {
        """
        SELECT \(columns) FROM \(badges, visibleTo: scope)
        WHERE user_id = \(userId.text)
        """
    }

    /// Returns the counts of a user for a message to the user's own devices or the app's own server.
    static func counts(of owner: Owner, at now: Timestamp, in db: DatabaseConnection) throws -> Badges {
        let counts = try db.row(
            """
            SELECT \(columns) FROM \(badges, of: owner)
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
    /// - Parameters:
    ///   - versionStep: 1 for the transaction's first change of the user, 0 for later ones.
    ///   - hidden: The hidden shares of a user's first row.
    static func add(
        _ change: BadgeChange, versionStep: Int, to owner: Owner, hiding hidden: BadgeShares, at now: Timestamp,
        in db: DatabaseConnection
    ) throws -> Badges {
        let sum = try db.row(
            singleUserAddition.binding(
                within: owner.tenant, owner.tenant, owner.userId.text, max(0, change.messages),
                max(0, change.requests), max(0, change.bell),
                now.microseconds, hidden.rawValue, change.messages, change.requests, change.bell, versionStep),
            badges(_:))
        guard let sum else { throw DatabaseError(.other, "counts were written but not returned") }
        return sum
    }

    private static let singleUserAddition: SQL = """
        INSERT INTO \(badges, within: .boundLater, bookkeeping)
            (tenant, user_id, messages, requests, bell, version, updated_at, hidden)
        VALUES (?, ?, ?, ?, ?, 1, ?, ?)
        ON CONFLICT (tenant, user_id) DO UPDATE SET messages = badges.messages + ?, requests = badges.requests + ?,
            bell = badges.bell + ?, version = badges.version + ?, updated_at = excluded.updated_at
        RETURNING \(columns)
        """

    /// Adds to the counts of users, without subtracting anything, each changed for the first time in its transaction.
    /// Many users take one statement, and on PostgreSQL one round trip.
    ///
    /// - Parameter hidden: The hidden shares of a user's first row.
    static func add(
        _ changes: [(userId: ID<User>, change: BadgeChange)], tenant: ID<Tenant>, hiding hidden: BadgeShares,
        at now: Timestamp, in db: DatabaseConnection
    ) throws -> [ID<User>: Badges] {
        var values: [SQLValue] = []
        values.reserveCapacity(changes.count * 8)
        for (userId, change) in changes {
            values += [
                .text(tenant.text), .text(userId.text), change.messages.sqlValue, change.requests.sqlValue,
                change.bell.sqlValue, .integer(1), .integer(now.microseconds),
                hidden.rawValue.sqlValue,
            ]
        }
        return try sums(addition.statements(of: values, within: tenant), in: db)
    }

    private static let addition = Insertion(
        """
        INSERT INTO \(badges, within: .boundLater, bookkeeping)
            (tenant, user_id, messages, requests, bell, version, updated_at, hidden)
        """, columns: 8,
        """
        ON CONFLICT (tenant, user_id) DO UPDATE SET messages = badges.messages + excluded.messages,
            requests = badges.requests + excluded.requests, bell = badges.bell + excluded.bell,
            version = badges.version + 1, updated_at = excluded.updated_at
        RETURNING \(columns), user_id
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
                RETURNING \(columns), user_id
                """
            ], in: db)
    }

    private static func sums(_ statements: [SQL], in db: DatabaseConnection) throws -> [ID<User>: Badges] {
        Dictionary(uniqueKeysWithValues: try db.rows(of: statements) { (ID(try $0.text(6)), try badges($0)) })
    }

    private static func badges(_ row: Row) throws -> Badges {
        Badges(
            messages: try row.integer(0), requests: try row.integer(1), bell: try row.integer(2),
            version: try row.integer(3), asOf: try row.moment(4)
        ).hiding(BadgeShares(rawValue: try row.integer(5)))
    }
}

// MARK: Hidden shares

extension BadgeLedger {
    /// Hides exactly these shares of users' counts. Only users whose shown counts change get a new version.
    ///
    /// - Returns: The counts of these users, and the number of users whose hidden shares were others.
    static func hide(
        _ hidden: BadgeShares, of users: [ID<User>], tenant: ID<Tenant>, at now: Timestamp, in db: DatabaseConnection
    ) throws -> (shown: [ID<User>: Badges], changed: Int) {
        let isSeen = BadgeShare.allCases.map { share -> SQL in
            let bit = BadgeShares(share).rawValue
            return "((hidden & \(bit)) <> \(hidden.rawValue & bit) AND \(SQL(unchecked: share.column)) > 0)"
        }
        let parts = RowParts.ranges(of: users.count, most: 512).map { part -> SQL in
            "hidden <> \(hidden.rawValue) AND user_id IN \(values: users[part].map(\.text))"
        }
        let shown = try sums(
            parts.map { isMeant in
                """
                UPDATE \(badges, within: tenant, bookkeeping) SET hidden = \(hidden.rawValue), version = version + 1,
                    updated_at = \(now.microseconds)
                WHERE \(isMeant) AND (\(SQL.joined(isSeen, separator: " OR ")))
                RETURNING \(columns), user_id
                """
            }, in: db)
        let others = try db.run(
            parts.map { isMeant in
                "UPDATE \(badges, within: tenant, bookkeeping) SET hidden = \(hidden.rawValue) WHERE \(isMeant)"
            })
        return (shown, shown.count + others)
    }

    /// Some users that follow each other in the order of the table.
    struct Piece {
        /// Users of one tenant whose hidden shares differ from the wanted ones.
        var differing: [ID<User>] = []
        var tenant = ID<Tenant>("")
        /// The last user that was looked at; nil behind the last row.
        var last: Owner?
    }

    /// Looks at the users after one, from the beginning if it is nil, until enough of one tenant differ.
    ///
    /// - Parameters:
    ///   - rowsMax: The number of users to look at.
    ///   - usersMax: The number of users who may differ.
    static func look(
        after place: Owner?, hiding hidden: BadgeShares, rowsMax: Int, usersMax: Int, in db: DatabaseConnection
    ) throws -> Piece {
        var piece = Piece()
        try db.forEach(
            walk(after: place, limit: rowsMax)
        ) { row in
            let owner = Owner(tenant: try row.id(0), userId: try row.id(1))
            if try row.integer(2) != hidden.rawValue {
                if piece.differing.isEmpty { piece.tenant = owner.tenant }
                guard piece.tenant == owner.tenant else { return false }
                piece.differing.append(owner.userId)
            }
            piece.last = owner
            return piece.differing.count < usersMax
        }
        return piece
    }

    static func walk(after place: Owner?, limit: Int) -> SQL {
        """
        SELECT tenant, user_id, hidden
        FROM \(badges, unscoped: .bookkeeping("a walk looks at the users of all tenants, not at their counts"))
        WHERE (tenant, user_id) > (\(place?.tenant.text ?? ""), \(place?.userId.text ?? ""))
        ORDER BY tenant, user_id LIMIT \(limit)
        """
    }
}

// MARK: Recounting

extension BadgeLedger {
    /// Returns every user's stored counts, hidden ones too, for the recount of `bellhop check`.
    static func stored(in db: DatabaseConnection) throws -> [Owner: BadgeChange] {
        var stored: [Owner: BadgeChange] = [:]
        try db.forEach(
            """
            SELECT tenant, user_id, messages, requests, bell
            FROM \(badges, unscoped: .audit("a recount reads the rows of all users"))
            """
        ) { row in
            stored[Owner(tenant: try row.id(0), userId: try row.id(1))] = BadgeChange(
                messages: try row.integer(2), requests: try row.integer(3), bell: try row.integer(4))
            return true
        }
        return stored
    }
}

/// A share of the badges with its recount, as the feature that maintains it declares them.
struct CountedShare: Sendable {
    let share: BadgeShare
    /// Counts the feature's own rows. Users without any may be missing.
    let recount: @Sendable (DatabaseConnection) throws -> [Owner: Int]
}
