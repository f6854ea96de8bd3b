import Database
import Foundation
import TestSupport
import Testing

@testable import Service

/// The declarations of how a person leaves each table.
@Suite(.timed) struct PersonPolicyTests {
    /// The columns of all tables, as the migrations create them.
    private static func columns(of table: Table, in db: DatabaseConnection) throws -> [(name: String, isText: Bool)] {
        switch db.engine {
        case .sqlite:
            try db.rows("SELECT name, type FROM pragma_table_info(\(table.name))") {
                (try $0.text(0), try $0.text(1) == "TEXT")
            }
        case .postgreSQL:
            try db.rows(
                """
                SELECT column_name::text, data_type::text FROM information_schema.columns
                WHERE table_name = \(table.name) AND table_schema = current_schema()
                """
            ) { (try $0.text(0), try $0.text(1) == "text") }
        }
    }

    @Test func tableWithoutADeclaration_stopsTheStart() {
        let table = Table("reminders", read: ["user:{user_id}"], write: ["user:{user_id}"])
        #expect(Catalog.undeclared(Catalog.tables + [table]) == ["reminders"])
        #expect(Catalog.undeclared(Catalog.tables).isEmpty)
    }

    /// `Docs/privacy.md` lists each table with rows about users, and no table that does not exist.
    @Test func everyTableAboutUsers_isInThePrivacyPage() throws {
        let page = try String(contentsOf: repository.appendingPathComponent("Docs/privacy.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let cells = rows.compactMap { $0.split(separator: "|").first }
        let named = Set(cells.flatMap { $0.matches(of: /`(?<table>\w+)`/).map { String($0.table) } })
        let about = Catalog.tables.filter { table in
            table.person.map { !$0.links.isEmpty || !$0.summary.hasPrefix("nothing") } ?? true
        }
        #expect(about.map(\.name).filter { !named.contains($0) } == [])
        #expect(named.subtracting(Catalog.tables.map(\.name)) == [])
    }

    /// A table that a migration creates has a declaration, and its columns exist. Rows that stay say of each text what
    /// becomes of it.
    @Test func declarations_areThoseOfTheTables() throws {
        let service = try TestService.start()
        try service.app.store.read { db in
            let stored: [String] =
                switch db.engine {
                case .sqlite: try db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { try $0.text(0) }
                case .postgreSQL:
                    try db.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()") {
                        try $0.text(0)
                    }
                }
            let known = Set(Catalog.tables.map(\.name))
            // What the database itself records about its schema and its writers.
            let own: Set = ["schema_migrations", "schema_policies", "write_marks"]
            #expect(Set(stored).subtracting(known).subtracting(own).filter { !$0.hasPrefix("sqlite_") } == [])
            for table in Catalog.tables {
                guard let policy = table.person, !policy.links.isEmpty else { continue }
                let columns = try Self.columns(of: table, in: db)
                let changes = policy.links.flatMap(\.changes)
                let named =
                    policy.key + policy.links.map(\.column) + changes.map(\.column) + Array(policy.hidden)
                    + Array(policy.json) + Array(policy.impersonal) + [policy.content].compactMap(\.self)
                #expect(Set(named).subtracting(columns.map(\.name)) == [], "\(table.name)")
                guard !changes.isEmpty else { continue }
                let explained = Set(changes.map(\.column)).union(policy.impersonal).union(policy.key).union(
                    policy.hidden
                )
                .union(policy.links.map(\.column)).union([table.tenantColumn])
                let texts = columns.filter(\.isText).map(\.name)
                #expect(Set(texts).subtracting(explained) == [], "\(table.name): what becomes of these texts?")
            }
        }
    }
}
