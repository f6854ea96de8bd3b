import Foundation
import PostgresServer
import TestSupport
import Testing

@testable import Service

/// Problems at the start are reported in one line that says what to do.
@Suite(.timed) struct SourceProblemsTests {
    private func problem(_ app: AppDatabase, _ changes: [String: String] = [:]) -> String {
        do {
            _ = try TestService.start(app.settings.merging(changes) { $1 })
            return "none"
        } catch {
            return "\(error)"
        }
    }

    @Test func publicationsAndRights_areNamed() async throws {
        let app = try AppDatabase(isSetUp: false)
        #expect(problem(app).contains("the publication bellhop does not exist: run bellhop source setup"))
        try app.run("CREATE PUBLICATION bellhop FOR TABLE tasks WITH (publish = 'insert')")
        #expect(problem(app).contains("lacks operations"))
        try app.run(
            "ALTER PUBLICATION bellhop SET (publish = 'insert, update, delete, truncate', publish_via_partition_root)")
        #expect(problem(app).contains("the publication bellhop lacks public.team_members: run bellhop source setup"))
        try app.run("ALTER PUBLICATION bellhop ADD TABLE team_members")
        #expect(problem(app).contains("may not read public.team_members"))
        try app.run(
            "GRANT SELECT ON team_members TO \(app.reader)", "ALTER TABLE team_members ENABLE ROW LEVEL SECURITY")
        #expect(problem(app).contains("ALTER ROLE name BYPASSRLS"))
        try app.run("ALTER TABLE team_members DISABLE ROW LEVEL SECURITY", "ALTER ROLE \(app.reader) NOREPLICATION")
        #expect(problem(app).contains("ALTER ROLE name REPLICATION"))
        try app.run("ALTER ROLE \(app.reader) REPLICATION")
        try app.setUp()
        #expect(problem(app) == "none")
        try await app.drop()
    }

    /// PostgreSQL returns the rows of such a table with the rows of its parent, and publishes them under another name.
    @Test func tableFromWhichOthersInherit_isRefused() async throws {
        let app = try AppDatabase(isSetUp: false)
        try app.run("CREATE TABLE guests () INHERITS (team_members)")
        let reason = "the table public.guests inherits from public.team_members, and its rows are not read"
        #expect(throws: SourceProblem.self) { try app.setUp() }
        try app.run("ALTER TABLE guests NO INHERIT team_members")
        try app.setUp()
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(app.settings.merging(["logLevel": "info"]) { $1 }, logger: logger)
        try await service.isReading()
        try app.run("ALTER TABLE guests INHERIT team_members")
        try await eventually("it is named", step: { service.clock.advance(seconds: 1) }) {
            lines().contains { $0.contains("not being published") && $0.contains(reason) }
        }
        #expect(problem(app).contains(reason))
        #expect(problem(app).contains("ALTER TABLE public.guests NO INHERIT public.team_members"))
        try await app.drop()
    }

    @Test func slotOfAnotherOwner_isNotTouched() async throws {
        let app = try AppDatabase()
        try app.run("SELECT pg_create_logical_replication_slot('\(app.name)', 'test_decoding')")
        #expect(problem(app).contains("belongs to another program (test_decoding, this database): set sourceSlot"))
        try await app.drop()
    }

    @Test func wrongLogins_areToldFromServersThatAreAway() async throws {
        let app = try AppDatabase()
        let nowhere = app.server.url(app.reader, "no_such_database")
        #expect(problem(app, ["source": nowhere]).contains("the login was rejected"))
        // An unreachable server is retried, and the service starts without it.
        #expect(problem(app, ["source": "postgres://nobody@127.0.0.1:1/app"]) == "none")
        try await app.drop()
    }

    @Test func setup_canBeRepeated_andNamesTheMissedRows() async throws {
        let app = try AppDatabase()
        #expect(try app.setUp().allSatisfy { !$0.contains("public.") })
        try app.run("ALTER TABLE tasks REPLICA IDENTITY DEFAULT")
        #expect(try app.setUp().contains { $0.contains("public.tasks: old rows contain only their key") })
        try app.run("ALTER TABLE tasks DROP CONSTRAINT tasks_pkey")
        #expect(throws: SourceProblem.self) { try app.setUp() }
        try await app.drop()
    }
}
