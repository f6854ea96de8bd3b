import BellhopClient
import Database
import PostgresServer
import TestSupport
import Testing

@testable import Service

/// The database of an app whose log the service reads: teams with members, and tasks of teams.
struct AppDatabase {
    let server: PostgresServer
    let name: String
    let reader: String
    private let file: String
    private let directory: TemporaryDirectory

    static let tables = """
        version: 1
        tables:
          - table: team_members
            primaryKey: [id]
            tenant: {constant: default}
            audience: {select: ["user:{user_id}"]}
            memberships:
              - name: team
                subject: user:{user_id}
                grants: team:{team_id}:member
          - table: tasks
            primaryKey: [id]
            tenant: {column: tenant}
            audience: {select: ["team:{team_id}:member"]}
        topics:
          - pattern: order:{id}
            audience: ["user:{id}"]
        """

    /// - Parameter isSetUp: whether `bellhop source setup` has run.
    init(tables: String = tables, isSetUp: Bool = true) throws {
        server = try PostgresServer.shared()
        name = try server.makeDatabase()
        reader = "r\(name)"
        directory = try TemporaryDirectory()
        file = try directory.write(tables, to: "tables.yaml")
        try server.run(
            [
                "CREATE ROLE \(reader) LOGIN REPLICATION",
                "CREATE TABLE team_members (id text PRIMARY KEY, user_id text, team_id text)",
                """
                CREATE TABLE tasks (id text PRIMARY KEY, tenant text DEFAULT 'default', team_id text DEFAULT 't1',
                    note text)
                """,
                "ALTER TABLE tasks REPLICA IDENTITY FULL", "ALTER TABLE team_members REPLICA IDENTITY FULL",
                "INSERT INTO team_members VALUES ('m1', 'ada', 't1')",
            ], in: name)
        if isSetUp { try setUp() }
    }

    @discardableResult
    func setUp(senders: [String] = []) throws -> [String] {
        let setup = try SourceSetup(
            of: TablesPage(named: file), role: reader, senders: senders.compactMap(SourceSender.init))
        return try setup.run(at: server.url("postgres", name))
    }

    /// Makes a login of its own name.
    func makeRole(_ suffix: String, _ options: String = "") throws -> String {
        let role = "\(suffix)_\(name)"
        try run("CREATE ROLE \(role) LOGIN \(options)")
        return role
    }

    /// Runs statements as a role, each its own transaction.
    @discardableResult
    func run(as role: String, _ statements: String...) throws -> String {
        try server.run(statements, as: role, in: name)
    }

    /// The settings of a service that reads this database. Each database has its own slot.
    var settings: [String: String] {
        ["source": server.url(reader, name), "sourceSlot": name, "tables": file]
    }

    func run(_ statements: String...) throws { try server.run(statements, in: name) }

    /// Returns the value of a statement, run in another database, so that it works while this one refuses
    /// connections.
    func look(_ statement: String) throws -> String { try server.run([statement]) }

    func insertTasks(_ numbers: ClosedRange<Int>) throws {
        try run(
            """
            INSERT INTO tasks (id, note) SELECT 'k' || n, 'note ' || n
            FROM generate_series(\(numbers.lowerBound), \(numbers.upperBound)) AS n
            """)
    }

    func drop() async throws {
        _ = try server.run(["ALTER DATABASE \(name) ALLOW_CONNECTIONS false"])
        try await eventually("the slot is dropped") {
            _ = try? server.run([
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'",
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '\(name)' AND NOT active",
            ])
            return try look("SELECT count(*) FROM pg_replication_slots WHERE database = '\(name)'") == "0"
        }
        server.drop(name)
        let roles = try look(
            "SELECT coalesce(string_agg(quote_ident(rolname), ', '), '') FROM pg_roles WHERE rolname LIKE '%\(name)'")
        if !roles.isEmpty { _ = try? server.run(["DROP ROLE \(roles)"]) }
    }
}

extension TestService {
    /// Opens a stream of Ada, subscribed to the tasks of her teams.
    func listenToTasks() async throws -> StreamListener {
        let stream = try await listen(as: .user("ada"))
        try await stream.subscribe([["table": "tasks"]])
        return stream
    }

    /// Returns the value of a metric.
    func metric(_ name: String) async throws -> Double? {
        let page = try await call("GET", "/metrics").text
        let line = page.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
        return line?.split(separator: " ").last.flatMap { Double($0) }
    }

    func hasKey(_ key: String, _ user: String) async throws -> Bool {
        try await client(user).getMe().value.scope.contains(key)
    }

    func isReading() async throws {
        try await eventually("the app's log is read") { try await metric("bellhop_source_connected") == 1 }
    }

    /// Returns the number of row changes published so far.
    func publishedRows() throws -> Int {
        try app.store.read { db in
            try db.integer(
                "SELECT count(*) FROM \(EventLog.routes, unscoped: EventLog.bookkeeping) WHERE route LIKE '#@%'") ?? 0
        }
    }
}
