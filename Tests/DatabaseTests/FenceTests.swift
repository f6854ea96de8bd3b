import TestSupport
import Testing
import Values

@testable import Database

/// Statements within a tenant, and for a user of a tenant: no other row is touched, whatever the statement's text says.
@Suite(.timed) struct FenceTests {
    private static let notes = Table(
        "notes", read: ["user:{user_id}", "shop:{shop_id}:staff"], write: ["user:{user_id}"])
    /// The service's own records of tenants. Their user is the person whose erasure includes the row.
    private static let counts = Table(
        "counts", read: [], write: [], person: .rows(by: ["user_id"], [.deleted("user_id")]))
    private static let secrets = ServiceTable("secrets")
    private static let why = Unscoped.bookkeeping("a test")
    private static let looking = Unscoped.audit("a test looks at all rows")

    private static func migration() -> Migration {
        let columns = """
            tenant TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL, shop_id TEXT, \
            PRIMARY KEY (tenant, user_id, id)
            """
        return Migration(
            "0001_fences",
            sql: ["notes", "counts"].map { .both("CREATE TABLE \($0) (\(columns)) STRICT") } + [
                .both("CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY) STRICT")
            ])
    }

    /// Returns both databases. Each table has one row of each of two users of two tenants.
    private static func stores() throws -> Stores {
        let stores = try Stores(migration(), tables: [notes, counts, secrets.table])
        for store in stores.both { try fill(store) }
        return stores
    }

    private static func fill(_ store: DatabaseStore) throws {
        try store.writeAndWait { db in
            for table in [notes, counts] {
                try db.run("DELETE FROM \(table, unscoped: why)")
                try db.run(
                    """
                    INSERT INTO \(table, unscoped: why) (tenant, user_id, id, n)
                    VALUES ('a', 'u', '1', 1), ('a', 'v', '1', 2), ('b', 'u', '1', 3), ('b', 'v', '1', 4)
                    """)
            }
        }
    }

    /// Returns all rows as `tenant user id n`.
    private static func rows(_ table: Table, in store: DatabaseStore) throws -> [String] {
        try store.read { db in
            try db.rows("SELECT tenant, user_id, id, n FROM \(table, unscoped: looking) ORDER BY 1, 2, 3") {
                "\(try $0.text(0)) \(try $0.text(1)) \(try $0.text(2)) \(try $0.integer(3))"
            }
        }
    }

    // MARK: The conditions

    /// Each statement writes, without a condition of its own on the tenant.
    private static func writes(to table: Table) -> [(sql: SQL, after: [String])] {
        [
            ("UPDATE \(table, within: "a", why) SET n = 9", ["a u 1 9", "a v 1 9", "b u 1 3", "b v 1 4"]),
            (
                "UPDATE \(table, within: "a", why) SET n = 9 WHERE n = 1 OR n = 3",
                ["a u 1 9", "a v 1 2", "b u 1 3", "b v 1 4"]
            ),
            ("UPDATE \(table, of: "v", in: "a") SET n = 9", ["a u 1 1", "a v 1 9", "b u 1 3", "b v 1 4"]),
            ("DELETE FROM \(table, within: "a", why)", ["b u 1 3", "b v 1 4"]),
            ("DELETE FROM \(table, within: "a", why) WHERE id = '1' OR TRUE", ["b u 1 3", "b v 1 4"]),
            ("DELETE FROM \(table, of: "u", in: "b") RETURNING n", ["a u 1 1", "a v 1 2", "b v 1 4"]),
            (
                """
                DELETE FROM \(table, within: "a", why) WHERE n IN (SELECT n + 1 FROM \(table, within: "a", why))
                """, ["a u 1 1", "b u 1 3", "b v 1 4"]
            ),
            (
                """
                INSERT INTO \(table, within: "a", why) (id, tenant, user_id, n)
                SELECT '2', \("a"), own.user_id, max(own.n) FROM \(table, within: "a", why) AS own GROUP BY own.user_id
                """, ["a u 1 1", "a u 2 1", "a v 1 2", "a v 2 2", "b u 1 3", "b v 1 4"]
            ),
            (
                """
                INSERT INTO \(table, within: "b", why) (tenant, user_id, id, n)
                VALUES (\("b"), 'u', '1', 7), (\("b"), 'w', '(?', 8)
                ON CONFLICT (tenant, user_id, id) DO UPDATE SET n = \(5)
                """, ["a u 1 1", "a v 1 2", "b u 1 5", "b v 1 4", "b w (? 8"]
            ),
            (
                """
                WITH most (n) AS (SELECT max(n) FROM \(table, of: "v", in: "a"))
                UPDATE \(table, of: "v", in: "a") SET n = 10 + (SELECT n FROM most)
                """, ["a u 1 1", "a v 1 12", "b u 1 3", "b v 1 4"]
            ),
        ]
    }

    @Test func writes_stayInTheFence_onBothStores() throws {
        let stores = try Self.stores()
        defer { stores.close() }
        for table in [Self.notes, Self.counts] {
            for (sql, after) in Self.writes(to: table) {
                for store in stores.both {
                    try Self.fill(store)
                    try store.writeAndWait { _ = try $0.run(sql) }
                    #expect(try Self.rows(table, in: store) == after, "\(store.engine) \(sql.text)")
                }
            }
        }
    }

    @Test func reads_stayInTheFence_onBothStores() throws {
        let stores = try Self.stores()
        defer { stores.close() }
        let reads: [(SQL, [Int])] = [
            ("SELECT n FROM \(Self.notes, within: "a", Self.why) WHERE n < 9 OR TRUE ORDER BY n", [1, 2]),
            ("SELECT n FROM \(Self.counts, of: "v", in: "b") AS own WHERE own.n > 0 ORDER BY n", [4]),
            ("SELECT one.n FROM \(Self.notes, of: "u", in: "b") AS one", [3]),
            (
                """
                SELECT one.n * 10 + other.n FROM \(Self.notes, within: "a", Self.why) AS one
                JOIN \(Self.counts, of: "v", in: "a") AS other ON other.id = one.id ORDER BY 1
                """, [12, 22]
            ),
            (
                """
                SELECT coalesce(other.n, 0) FROM \(Self.notes, within: "a", Self.why) AS one
                LEFT JOIN \(Self.counts, within: "a", Self.why) AS other ON other.n = one.n + 1 ORDER BY 1
                """, [0, 2]
            ),
            ("WITH own AS (SELECT * FROM \(Self.counts, within: "b", Self.why)) SELECT n FROM own ORDER BY n", [3, 4]),
            (
                """
                SELECT n FROM \(Self.notes, within: "a", Self.why)
                UNION ALL SELECT n + 10 FROM \(Self.counts, within: "a", Self.why) ORDER BY 1
                """, [1, 2, 11, 12]
            ),
        ]
        for (sql, expected) in reads {
            for store in stores.both {
                let found = try store.read { try $0.rows(sql) { try $0.integer(0) } }
                #expect(found == expected, "\(store.engine) \(sql.text)")
            }
        }
    }

    @Test func rowOutsideTheFence_isNotInserted() throws {
        let stores = try Self.stores()
        defer { stores.close() }
        let into = "INSERT INTO \(Self.notes, within: .boundLater, Self.why) (user_id, tenant, id, n)" as SQL
        let insertion = Insertion(into, columns: 4)
        let forged: [[SQL]] = [
            ["INSERT INTO \(Self.notes, within: "a", Self.why) (tenant, user_id, id, n) VALUES (\("b"), 'u', 'x', 1)"],
            [
                """
                INSERT INTO \(Self.notes, within: "a", Self.why) (tenant, user_id, id, n)
                VALUES (\("a"), 'u', 'x', 1), (\("b"), 'u', 'x', 1)
                """
            ],
            [
                """
                INSERT INTO \(Self.counts, of: "u", in: "a") (tenant, user_id, id, n)
                VALUES (\("a"), \("v"), 'x', 1)
                """
            ],
            insertion.statements(
                of: [.text("u"), .text("a"), .text("x"), .integer(1), .text("u"), .text("b"), .text("x"), .integer(1)],
                within: "a"),
        ]
        for statements in forged {
            for store in stores.both {
                let before = try Self.rows(Self.notes, in: store)
                let single = #expect(throws: DatabaseError.self) {
                    try store.writeAndWait { db in for sql in statements { try db.run(sql) } }
                }
                let together = #expect(throws: DatabaseError.self) {
                    try store.writeAndWait { _ = try $0.run(statements) }
                }
                #expect(single?.code == .notPermitted)
                #expect(together?.code == .notPermitted)
                #expect(try Self.rows(Self.notes, in: store) == before)
            }
        }
    }

    // MARK: PostgreSQL's own fence

    /// Returns a statement that forgets its condition, in a fence.
    private static func forgetful(_ text: String, _ fence: Fence) -> SQL {
        var sql = SQL(unchecked: text)
        sql.enter(fence)
        return sql
    }

    @Test(arguments: ["notes", "counts"])
    func statementThatForgetsItsCondition_touchesNoOtherRow_onPostgreSQL(name: String) throws {
        let stores = try Self.stores()
        defer { stores.close() }
        let table = name == "notes" ? Self.notes : Self.counts
        let tenant = Fence(tenant: "a", within: [name])
        let user = Fence(tenant: "a", user: "u", owned: [name])
        let others = ["b u 1 3", "b v 1 4"]
        // The scope has keys for rows of both users. They do not open more than the statement's own fence.
        let staff = Scope(tenant: "b", keys: ["user:u", "user:v"])
        let own = Scope(tenant: "a", keys: ["user:u", "user:v"])
        for scope in [nil, staff, own] {
            for (fence, count, kept) in [(tenant, 2, others), (user, 1, ["a v 1 2"] + others)] {
                func write(_ text: String) throws -> Int {
                    try stores.postgres.writeAndWait { db in
                        try db.enter(scope)
                        return try db.run(Self.forgetful(text, fence))
                    }
                }
                try Self.fill(stores.postgres)
                let seen = try stores.postgres.read { db in
                    try db.enter(scope)
                    // A scope, and the statement before, have opened other rows.
                    _ = try db.integer("SELECT count(*) FROM \(Self.notes, unscoped: Self.looking)")
                    _ = try db.integer("SELECT count(*) FROM \(Self.counts, unscoped: Self.looking)")
                    return try db.integer(Self.forgetful("SELECT count(*) FROM \(name)", fence))
                }
                #expect(seen == count)
                #expect(try write("UPDATE \(name) SET n = n") == count)
                #expect(throws: DatabaseError.self) { try write("UPDATE \(name) SET tenant = 'b', id = '9'") }
                #expect(throws: DatabaseError.self) {
                    try write("INSERT INTO \(name) (tenant, user_id, id, n) VALUES ('b', 'u', 'x', 1)")
                }
                if fence.user != nil {
                    #expect(throws: DatabaseError.self) {
                        try write("INSERT INTO \(name) (tenant, user_id, id, n) VALUES ('a', 'v', 'x', 1)")
                    }
                }
                #expect(try write("DELETE FROM \(name)") == count)
                #expect(try Self.rows(table, in: stores.postgres) == kept)
            }
        }
    }

    /// What a statement opens does not stay open, and a statement without any word sees nothing.
    @Test func fenceEndsWithItsStatement_onPostgreSQL() throws {
        let stores = try Self.stores()
        defer { stores.close() }
        let seen = try stores.postgres.read { db in
            let first = try db.integer("SELECT count(*) FROM \(Self.notes, within: "a", Self.why)")
            let other = try db.integer("SELECT count(*) FROM \(Self.notes, of: "u", in: "b")")
            return [first, other, try db.integer("SELECT count(*) FROM notes")]
        }
        #expect(seen == [2, 1, 0])
    }

    // MARK: The texts

    /// The text is the same for all tenants and users, so that a prepared statement is found again.
    @Test func textsAreTheSame_forAllTenants() {
        func texts(_ tenant: ID<Tenant>, _ user: ID<User>) -> [String] {
            [
                "SELECT n FROM \(Self.notes, within: tenant, Self.why) WHERE id = \("x")",
                "UPDATE \(Self.notes, of: user, in: tenant) SET n = 1 WHERE id = \("x")" as SQL,
            ].map { $0.woven().text }
        }
        #expect(texts("a", "u") == texts("b", "v"))
        #expect(
            texts("a", "u") == [
                "SELECT n FROM (SELECT * FROM notes WHERE tenant = ?) AS notes WHERE id = ?",
                "UPDATE notes SET n = 1 WHERE (notes.tenant = ? AND notes.user_id = ?) AND ( id = ?) ",
            ])
    }

    @Test func conditionOfAFence_isBoundBetweenTheValues() {
        let sql: SQL =
            "UPDATE \(Self.notes, of: "u", in: "a") SET n = \(1), id = \("y") WHERE id = \("x") RETURNING \(7)"
        #expect(
            sql.woven().binds == [.integer(1), .text("y"), .text("a"), .text("u"), .text("x"), .integer(7)])
        #expect(sql.woven().hiddenColumns == 0)
    }

    @Test func tenantThatIsBoundLater_hasItsPlaces() throws {
        let part: SQL = "id IN (SELECT id FROM \(Self.counts, within: .boundLater, Self.why) WHERE n = ?)"
        let sql: SQL = "SELECT n FROM \(Self.notes, within: .boundLater, Self.why) WHERE user_id = ? AND \(part)"
        let bound = sql.binding(within: "a", "u", 1)
        #expect(bound.binds == [.text("a"), .text("u"), .text("a"), .integer(1)])
        let stores = try Self.stores()
        defer { stores.close() }
        for store in stores.both {
            #expect(try store.read { try $0.rows(bound) { try $0.integer(0) } } == [1])
        }
    }

    /// A backend without a name has an empty id.
    @Test func userWithAnEmptyId_hasRows() throws {
        let stores = try Self.stores()
        defer { stores.close() }
        for table in [Self.notes, Self.counts] {
            for store in stores.both {
                try store.writeAndWait { db in
                    _ = try db.run(
                        """
                        INSERT INTO \(table, of: "", in: "a") (tenant, user_id, id, n)
                        VALUES (\("a"), \(""), '1', 5)
                        """)
                }
                #expect(try store.read { try $0.integer("SELECT sum(n) FROM \(table, of: "", in: "a")") } == 5)
            }
        }
    }

    @Test func tableOfNoTenant_needsNoWord() throws {
        let stores = try Self.stores()
        defer { stores.close() }
        for store in stores.both {
            try store.writeAndWait { _ = try $0.run("INSERT INTO \(Self.secrets) (name) VALUES (\("x"))") }
            #expect(try store.read { try $0.integer("SELECT count(*) FROM \(Self.secrets)") } == 1)
        }
    }

    @Test func userOfATable_isWhoWritesIt_orReadsIt_orIsErasedWithIt() {
        #expect(Self.notes.userColumn == "user_id")
        #expect(Self.counts.userColumn == "user_id")
        let follows = Table("follows", read: ["user:{follower}", "user:{author}"], write: ["user:{follower}"])
        #expect(follows.userColumn == "follower")
        #expect(Table("requests", read: ["user:{a}"], write: ["user:{a}", "user:{b}"]).userColumn == nil)
        #expect(Self.secrets.table.userColumn == nil)
    }
}
