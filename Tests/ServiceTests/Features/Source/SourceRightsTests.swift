import BellhopClient
import Database
import PostgresServer
import TestSupport
import Testing

@testable import Service

/// An app's schema cannot make the reader run code. The reader's role has REPLICATION, and perhaps BYPASSRLS.
@Suite(.timed) struct SourceRightsTests {
    /// A role that may create types and functions can create ones that a reader might run. Each trap records the role
    /// that runs it: in a table, or, if the transaction may not write, by a lock that the session keeps.
    private static let traps = [
        "CREATE TABLE witness (who text, what text)",
        """
        CREATE FUNCTION spring(what text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
            INSERT INTO witness VALUES (current_user, what);
            RETURN true;
        EXCEPTION WHEN OTHERS THEN
            PERFORM pg_advisory_lock(4711, 1);
            RETURN true;
        END $$
        """,
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        """
        CREATE FUNCTION mood_as_json(mood) RETURNS json LANGUAGE sql AS
            $$ SELECT CASE WHEN spring('cast') THEN '"trap"'::json END $$
        """,
        "CREATE CAST (mood AS json) WITH FUNCTION mood_as_json(mood)",
        "CREATE DOMAIN careful AS text CHECK (spring('domain'))", "CREATE TYPE pair AS (a careful, b mood)",
        "ALTER TABLE tasks ADD COLUMN mood mood, ADD COLUMN pair pair, ADD COLUMN careful careful",
        "ALTER TABLE team_members ADD COLUMN mood mood DEFAULT 'sad', ADD COLUMN pair pair DEFAULT ROW('x', 'glad')",
        """
        CREATE FUNCTION public.to_jsonb(team_members) RETURNS jsonb LANGUAGE sql AS
            $$ SELECT CASE WHEN spring('overload') THEN jsonb_build_object('id', 'x', 'user_id', 'eve', 'team_id', 't1') END $$
        """,
        // A planner evaluates it while it examines the indexes.
        "CREATE INDEX ON team_members ((spring('index') AND id = 'x'))",
        "ALTER DATABASE \"%\" SET search_path = public, pg_catalog",
    ]

    @Test func appsFunctions_neverRunWithTheReadersRights() async throws {
        let app = try AppDatabase()
        _ = try app.server.run(
            Self.traps.map { $0.replacing("%", with: app.name) } + ["GRANT INSERT ON witness TO \(app.reader)"],
            in: app.name)
        let service = try TestService.start(app.settings)
        try await service.isReading()
        #expect(try await service.hasKey("team:t1:member", "ada"))
        #expect(try await !service.hasKey("team:t1:member", "eve"))
        let stream = try await service.listenToTasks()
        try app.run("INSERT INTO tasks VALUES ('k1', 'default', 't1', 'n', 'sad', ROW('x', 'glad'), 'y')")
        let record = try await stream.next("table:change").json["record"]
        #expect(record["mood"].string == "sad")
        #expect(record["pair"]["a"].string == "x")
        #expect(record["pair"]["b"].string == "glad")
        #expect(record["careful"].string == "y")
        let ran = "SELECT coalesce(string_agg(DISTINCT what, ', '), 'nothing') FROM witness WHERE who = '\(app.reader)'"
        #expect(try app.server.run([ran], in: app.name) == "nothing")
        #expect(try app.look("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 4711") == "0")
        try await app.drop()
    }

    /// PostgreSQL resolves a table's name when a statement runs, so an attacker may have replaced the table by a view.
    @Test func viewNamedLikeATable_isNotRead() async throws {
        let app = try AppDatabase()
        let server = try SourceServer.open(DatabaseURL(app.server.url(app.reader, app.name))) { false }
        try app.run(
            "ALTER TABLE team_members RENAME TO real_members", "CREATE VIEW team_members AS SELECT * FROM real_members",
            "GRANT SELECT ON team_members TO \(app.reader)")
        let error = #expect(throws: SourceError.self) {
            try server.connection.copyOut("COPY public.team_members (id) TO STDOUT") { _ in }
        }
        #expect(error?.description.contains("cannot copy from view") == true)
        try await app.drop()
    }

    @Test func sessions_haveTheirOwnSchemasAndTimeouts() async throws {
        let app = try AppDatabase()
        try app.run("ALTER ROLE \(app.reader) SET search_path = public")
        let url = try DatabaseURL(app.server.url(app.reader, app.name))
        for replicates in [false, true] {
            let connection = try SourceConnection(url, replicates: replicates)
            #expect(try connection.ask("SHOW search_path") == [["pg_catalog, pg_temp"]])
            #expect(try connection.ask("SHOW statement_timeout") == [[replicates ? "0" : "30s"]])
            #expect(try connection.ask("SHOW lock_timeout") == [[replicates ? "0" : "5s"]])
        }
        try await app.drop()
    }

    @Test func partitionsOfMemberships_areReadEach() async throws {
        let app = try AppDatabase(isSetUp: false)
        try app.run(
            "DROP TABLE team_members",
            """
            CREATE TABLE team_members (id text, user_id text, team_id text, PRIMARY KEY (id, team_id))
            PARTITION BY LIST (team_id)
            """,
            "CREATE TABLE members_1 PARTITION OF team_members FOR VALUES IN ('t1')",
            "CREATE TABLE members_2 (team_id text NOT NULL, user_id text, id text NOT NULL, junk int GENERATED ALWAYS AS (1) STORED)",
            "ALTER TABLE members_2 DROP COLUMN junk",
            "ALTER TABLE team_members ATTACH PARTITION members_2 FOR VALUES IN ('t2')",
            #"INSERT INTO team_members VALUES ('m1', 'ada', 't1'), (E'm\\2\t\n', 'ben', 't2')"#)
        try app.setUp()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        #expect(try await service.hasKey("team:t1:member", "ada"))
        #expect(try await service.hasKey("team:t2:member", "ben"))
        try app.run("CREATE TABLE members_3 PARTITION OF team_members FOR VALUES IN ('t3')")
        let problem = await #expect(throws: SourceProblem.self) { try await service.restart() }
        #expect(problem?.description.contains("may not read public.members_3") == true)
        try await app.drop()
    }

    @Test func columnsOfACompositeType_mayChange() async throws {
        let app = try AppDatabase()
        try app.run("CREATE TYPE pair AS (a text, b int)", "ALTER TABLE tasks ADD COLUMN pair pair")
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let stream = try await service.listenToTasks()
        try app.run("INSERT INTO tasks (id, pair) VALUES ('k1', ROW('x', 1))")
        #expect(try await stream.next("table:change").json["record"]["pair"]["b"].int == 1)
        try app.run(
            "ALTER TYPE pair ADD ATTRIBUTE c text[]",
            "INSERT INTO tasks (id, pair) VALUES ('k2', ROW('x', 1, ARRAY['y']))")
        let record = try await stream.next("table:change").json["record"]
        #expect(record["id"].string == "k2")
        #expect(record["pair"]["c"].array?.first?.string == "y")
        try await app.drop()
    }
}
