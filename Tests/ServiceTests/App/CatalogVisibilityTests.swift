import PostgresServer
import TestSupport
import Testing
import Values
import Visibility

@testable import Database
@testable import Service

/// Every policy of the catalog, including those with memberships. The rule in Swift, SQLite's predicate and
/// PostgreSQL's policy must agree on each row.
///
/// The tables here have the catalog's names and policies, but only the columns that policies read. Any row can
/// therefore be written, and a table added to the catalog is covered automatically.
@Suite(.timed) struct CatalogVisibilityTests {
    @Test func everyTable_isVisibleAsDeclared_inSwiftAndInSQLite() throws {
        let store = try DatabaseStore.open(DatabaseURL("sqlite::memory:"), tables: DemoScenario.tables)
        defer { store.close() }
        try store.migrate([DemoScenario.migration])
        try DemoScenario.play(on: store)
    }

    @Test func everyTable_isVisibleAsDeclared_inPostgreSQL() throws {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        defer { server.drop(name) }
        var owning = StoreOptions()
        owning.access = .owner
        let owner = try DatabaseStore.open(
            DatabaseURL(server.url("bellhop_owner", name)), options: owning, tables: DemoScenario.tables)
        try owner.migrate([DemoScenario.migration], tables: DemoScenario.tables)
        owner.close()
        try server.makeLogin()
        let store = try DatabaseStore.open(DatabaseURL(server.url("bellhop", name)), tables: DemoScenario.tables)
        defer { store.close() }
        try DemoScenario.play(on: store)
    }
}

private enum DemoScenario {
    static let tables = Catalog.tables.filter { !$0.read.templates.isEmpty || !$0.write.templates.isEmpty }
    static let grants = tables.flatMap { $0.read.entries + $0.write.entries }.compactMap(\.grant)

    static let migration = Migration(
        "0001_stage",
        sql: tables.map { table in
            let columns = ["row_number INTEGER", "tenant TEXT NOT NULL"] + columns(of: table).map { "\($0) TEXT" }
            return .both("CREATE TABLE \(table.name) (\(columns.joined(separator: ", "))) STRICT")
        })

    /// Returns the columns that policies read: the table's own policies, policies that find memberships in the table, and
    /// the policy for what the service does for one user.
    static func columns(of table: Table) -> [String] {
        let own = (table.read.entries + table.write.entries).flatMap(\.columns)
        let asked = grants.filter { $0.table.name == table.name }.flatMap { [$0.memberColumn, $0.ofColumn] }
        return Set(own + asked + [table.userColumn].compactMap(\.self)).sorted()
    }

    struct Row {
        let table: Table
        let tenant: ID<Tenant>
        let values: [String: String]

        init(_ table: Table, _ random: inout SeededGenerator) {
            self.table = table
            tenant = ["t1", "t1", "t1", "t2"].randomElement(using: &random) ?? "t1"
            // Few distinct values, so that rows, memberships and scopes match.
            var values: [String: String] = [:]
            let conditions = (table.read.entries + table.write.entries).compactMap(\.condition)
            for column in DemoScenario.columns(of: table) {
                let words = conditions.filter { $0.column == column }.map { Optional($0.value) }
                values[column] =
                    (["a", "b", "c", "d", "a:b", nil] + words + words).randomElement(using: &random) ?? nil
            }
            self.values = values
        }
    }

    static func scope(_ random: inout SeededGenerator) -> Scope {
        var keys: Set<String> = []
        func value() -> String { ["a", "b", "c", "a:b"].randomElement(using: &random) ?? "a" }
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1, 2: keys.insert(AudienceKey.make("user", value()))
            case 3: keys.insert(AudienceKey.make("shop", value(), "staff"))
            case 4: keys.insert("everyone")
            default: keys.insert(["tenant:admin", "tenant:service"].randomElement(using: &random) ?? "everyone")
            }
        }
        return Scope(tenant: Bool.random(using: &random) ? "t1" : "t2", keys: keys)
    }

    /// Returns the scope with all keys that rows grant its owner, by the rule in Swift.
    static func enlarged(_ scope: Scope, _ rows: [Row]) -> Scope {
        var granted: Set<String> = []
        for grant in grants {
            for row in rows where row.table.name == grant.table.name {
                let isOwn = scope.sees(
                    tenant: row.tenant,
                    audience: [grant.holder].compactMap { $0.key(of: { row.values[$0] }) })
                guard isOwn, let key = grant.grantedKey.key(of: { row.values[$0] }) else { continue }
                granted.insert(key)
            }
        }
        return Scope(tenant: scope.tenant, keys: scope.keys.union(granted))
    }

    static func play(on store: DatabaseStore) throws {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        let rows = tables.flatMap { table in (0..<24).map { _ in Row(table, &random) } }
        try insert(rows, into: store)
        var cases = 0
        var visible: [String: Int] = [:]
        for _ in 0..<60 {
            let scope = scope(&random)
            let enlarged = enlarged(scope, rows)
            for table in tables {
                let readable = try read(table, as: scope, in: store)
                let writable = try write(table, as: scope, in: store)
                for (number, row) in rows.enumerated() where row.table.name == table.name {
                    let reads = enlarged.sees(tenant: row.tenant, audience: table.read.audience { row.values[$0] })
                    let writes = enlarged.sees(tenant: row.tenant, audience: table.write.audience { row.values[$0] })
                    cases += 2
                    if reads { visible[table.name, default: 0] += 1 }
                    if readable.contains(number) == reads, writable.contains(number) == writes { continue }
                    Issue.record("seed \(seed): \(scope.keys) \(row): Swift says \(reads), \(writes)")
                }
            }
        }
        #expect(cases > 10_000)
        // A table whose rows are never visible would prove nothing.
        let unseen = tables.filter { !$0.read.templates.isEmpty && visible[$0.name] == nil }
        #expect(unseen.isEmpty, "\(unseen.map(\.name))")
    }

    private static func insert(_ rows: [Row], into store: DatabaseStore) throws {
        try store.writeAndWait { db in
            for (number, row) in rows.enumerated() {
                let columns = DemoScenario.columns(of: row.table)
                let names = SQL(unchecked: (["row_number", "tenant"] + columns).joined(separator: ", "))
                let values: [SQL] = ["\(number)", "\(row.tenant)"] + columns.map { "\(row.values[$0])" }
                try db.run(
                    """
                    INSERT INTO \(row.table, unscoped: .audit("a test writes")) (\(names))
                    VALUES (\(SQL.joined(values, separator: ", ")))
                    """)
            }
        }
    }

    private static func read(_ table: Table, as scope: Scope, in store: DatabaseStore) throws -> Set<Int> {
        try store.read { db in
            try db.enter(scope)
            let woven = Set(try db.rows("SELECT row_number FROM \(table, visibleTo: scope)") { try $0.integer(0) })
            guard db.engine == .postgreSQL else { return woven }
            // The policy alone, with a statement that has no predicate.
            let bare = Set(try db.rows(SQL(unchecked: "SELECT row_number FROM \(table.name)")) { try $0.integer(0) })
            #expect(bare == woven, "\(table.name) \(scope.keys)")
            return bare
        }
    }

    private static func write(_ table: Table, as scope: Scope, in store: DatabaseStore) throws -> Set<Int> {
        try store.writeAndWait { db in
            try db.enter(scope)
            return Set(
                try db.rows("UPDATE \(table, writableBy: scope) SET row_number = row_number RETURNING row_number") {
                    try $0.integer(0)
                })
        }
    }
}
