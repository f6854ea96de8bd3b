import BellhopClient
import Foundation
import PostgresServer
import TestSupport
import Testing

@testable import Service

/// Memberships whose rows change without a message in the app's log: by DDL, or because the file changes. SELECT is the
/// truth.
@Suite(.timed) struct SourceCatalogTests {
    /// A table of members in two partitions, and one of its rows in each.
    private static let partitioned = [
        "DROP TABLE team_members",
        "CREATE TYPE kind AS ENUM ('t1', 't2', 't9')",
        """
        CREATE TABLE team_members (id text, user_id text, team_id text, part int, PRIMARY KEY (id, part))
            PARTITION BY LIST (part)
        """,
        "CREATE TABLE members_1 PARTITION OF team_members FOR VALUES IN (1)",
        "CREATE TABLE members_2 PARTITION OF team_members FOR VALUES IN (2)",
        "ALTER TABLE team_members REPLICA IDENTITY FULL", "ALTER TABLE members_1 REPLICA IDENTITY FULL",
        "ALTER TABLE members_2 REPLICA IDENTITY FULL",
        "INSERT INTO team_members VALUES ('m1', 'ada', 't1', 1), ('m2', 'ben', 't1', 2)",
    ]

    private static func app(_ statements: [String] = [], tables: String = AppDatabase.tables) throws -> AppDatabase {
        let app = try AppDatabase(tables: tables, isSetUp: false)
        _ = try app.server.run(statements, in: app.name)
        try app.setUp()
        return app
    }

    private static func keys(_ user: String, _ service: TestService) async throws -> Set<String> {
        Set(try await service.client(user).getMe().value.scope.filter { $0.hasPrefix("team:") })
    }

    /// Waits until each user has the keys that SELECT gives.
    private static func followsSelect(
        _ app: AppDatabase, _ service: TestService, select: String = "SELECT user_id, team_id FROM team_members",
        of users: [String] = ["ada", "ben", "eve"], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let text = try app.server.run(
            ["SELECT coalesce(string_agg(user_id || ' ' || team_id, ','), '') FROM (\(select)) AS s"], in: app.name)
        let pairs = text.split(separator: ",").map { $0.split(separator: " ").map(String.init) }
        for user in users {
            let expected = Set(pairs.filter { $0[0] == user }.map { "team:\($0[1]):member" })
            try await eventually(
                "\(user) has \(expected)", sourceLocation: sourceLocation, step: { service.clock.advance(seconds: 1) }
            ) { try await keys(user, service) == expected }
        }
    }

    /// Each statement removes, adds or rewrites rows, and PostgreSQL publishes no row for it.
    @Test(arguments: [
        ["DROP TABLE members_2"], ["ALTER TABLE team_members DETACH PARTITION members_2"], ["TRUNCATE members_2"],
        [
            "CREATE TABLE members_3 (id text NOT NULL, user_id text, team_id text, part int NOT NULL)",
            "INSERT INTO members_3 VALUES ('m3', 'eve', 't1', 3), ('m4', 'ada', 't9', 3)",
            "ALTER TABLE team_members ATTACH PARTITION members_3 FOR VALUES IN (3)",
            "GRANT SELECT ON members_3 TO PUBLIC",
        ],
        ["ALTER TABLE team_members ALTER COLUMN team_id TYPE text USING 't9'"],
        [
            "ALTER TABLE team_members DROP COLUMN team_id",
            "ALTER TABLE team_members ADD COLUMN team_id text DEFAULT 't9'",
        ],
        [
            "ALTER TABLE team_members RENAME COLUMN team_id TO other",
            "ALTER TABLE team_members ADD COLUMN team_id text GENERATED ALWAYS AS (other || '9') STORED",
            "ALTER TABLE team_members RENAME COLUMN team_id TO unused",
            "ALTER TABLE team_members RENAME COLUMN other TO team_id",
            "UPDATE team_members SET team_id = 't2' WHERE id = 'm2'",
        ],
        [
            "ALTER TABLE team_members ALTER COLUMN team_id TYPE kind USING team_id::kind",
            "ALTER TYPE kind RENAME VALUE 't1' TO 't7'",
        ],
    ])
    func rowsThatChangeWithoutAMessage_areReadAgain(statements: [String]) async throws {
        let app = try Self.app(Self.partitioned)
        let service = try TestService.start(app.settings)
        try await service.isReading()
        try await Self.followsSelect(app, service)
        #expect(try await Self.keys("ben", service) == ["team:t1:member"])
        let ben = try await service.listen(as: .user("ben"))
        _ = try app.server.run(statements, in: app.name)
        try await Self.followsSelect(app, service)
        if try await !service.hasKey("team:t1:member", "ben") { try await ben.nextScope(without: "team:t1:member") }
        // The log is read on, and nothing else was lost.
        try app.run("INSERT INTO team_members (id, user_id, team_id, part) VALUES ('m5', 'eve', 't2', 1)")
        try await Self.followsSelect(app, service)
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 0)
        try await app.drop()
    }

    /// The partition is dropped while nothing reads, after rows that the log still has.
    @Test func partitionDropped_whileNotReading_leavesNoKey() async throws {
        let app = try Self.app(Self.partitioned)
        let service = try TestService.start(app.settings)
        try await service.isReading()
        try await service.restart {
            try app.run(
                "INSERT INTO team_members VALUES ('m3', 'eve', 't1', 2)", "DROP TABLE members_2")
        }
        try await Self.followsSelect(app, service)
        #expect(try await Self.keys("eve", service).isEmpty)
        try await app.drop()
    }

    @Test func columnRenamed_orTableDropped_givesNoKey() async throws {
        let app = try Self.app()
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(app.settings.merging(["logLevel": "info"]) { $1 }, logger: logger)
        try await service.isReading()
        #expect(try await Self.keys("ada", service) == ["team:t1:member"])
        func losesAll() async throws {
            try await eventually("the key is gone", step: { service.clock.advance(seconds: 1) }) {
                try await Self.keys("ada", service).isEmpty
            }
        }
        try app.run("ALTER TABLE team_members RENAME COLUMN user_id TO person")
        try await losesAll()
        try app.run("ALTER TABLE team_members RENAME COLUMN person TO user_id")
        try await Self.followsSelect(app, service)
        try app.run("DROP TABLE team_members")
        try await losesAll()
        #expect(lines().contains { $0.contains("Tables with memberships were read again") })
        // It is published again after the setup has run, as a new table.
        try app.run(
            "CREATE TABLE team_members AS SELECT 'm1' AS id, 'ada' AS user_id, 't4' AS team_id",
            "ALTER TABLE team_members ADD PRIMARY KEY (id)", "ALTER TABLE team_members REPLICA IDENTITY FULL")
        try app.setUp()
        try await Self.followsSelect(app, service)
        try app.run("UPDATE team_members SET team_id = 't6'")
        try await Self.followsSelect(app, service)
        try await app.drop()
    }

    /// A rewrite changes no row: users keep their keys while the table is read, and their streams receive nothing.
    @Test func rewrittenTable_isRead_withoutANotice() async throws {
        let app = try Self.app(Self.partitioned)
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let ben = try await service.listen(as: .user("ben"))
        try app.run("VACUUM FULL members_2")
        try await eventually("it is read", step: { service.clock.advance(seconds: 1) }) {
            try await service.metric("bellhop_source_tables_read_total") == 1
        }
        try app.run("INSERT INTO team_members VALUES ('m3', 'ben', 't5', 1)")
        let scope = try await ben.next("stream:scope").json["scope"].array?.compactMap(\.string) ?? []
        #expect(Set(scope).isSuperset(of: ["team:t1:member", "team:t5:member"]))
        for _ in 0..<3 {
            service.clock.advance(seconds: 3)
            try app.run("INSERT INTO tasks (id) VALUES (gen_random_uuid()::text)")
        }
        try await Self.isReadOnce(service)
        try await app.drop()
    }

    @Test func partitionThatMayNotBeRead_givesNoKeys_andIsNamed() async throws {
        let app = try Self.app(Self.partitioned)
        let (logger, lines) = RecordedLog.logger()
        let service = try TestService.start(app.settings.merging(["logLevel": "info"]) { $1 }, logger: logger)
        try await service.isReading()
        try app.run("REVOKE SELECT ON members_2 FROM \(app.reader)")
        try await eventually("it is named", step: { service.clock.advance(seconds: 1) }) {
            lines().contains { $0.contains("give no keys") && $0.contains("GRANT SELECT ON public.members_2") }
        }
        try await Self.followsSelect(
            app, service, select: "SELECT user_id, team_id FROM members_1")
        try app.run("GRANT SELECT ON members_2 TO \(app.reader)")
        try await Self.followsSelect(app, service)
        try await app.drop()
    }

    /// The rows are visible before they are counted as read.
    private static func isReadOnce(_ service: TestService) async throws {
        try await eventually("the table counts as read once") {
            try await service.metric("bellhop_source_tables_read_total") == 1
        }
    }

    // MARK: The file

    private static let withState = AppDatabase.tables.replacingOccurrences(
        of: "grants: team:{team_id}:member", with: "grants: team:{team_id}:member\n        when: {state: [active]}")

    private static let stateful = [
        "ALTER TABLE team_members ADD COLUMN state text DEFAULT 'active'",
        "INSERT INTO team_members VALUES ('m2', 'ben', 't1', 'invited'), ('m3', 'eve', 't2', 'active')",
    ]

    private static let active = "SELECT user_id, team_id FROM team_members WHERE state = 'active'"

    @Test func changedRule_readsTheTableAgain() async throws {
        let app = try Self.app(Self.stateful)
        let service = try TestService.start(app.settings)
        try await service.isReading()
        try await Self.followsSelect(app, service)
        let directory = try TemporaryDirectory()
        try await service.restart(with: ["tables": try directory.write(Self.withState, to: "state.yaml")])
        #expect(try await Self.keys("ben", service).isEmpty)
        try await Self.followsSelect(app, service, select: Self.active)
        try await Self.isReadOnce(service)
        try app.run("UPDATE team_members SET state = 'active' WHERE id = 'm2'")
        try await Self.followsSelect(app, service, select: Self.active)
        #expect(try await service.metric("bellhop_source_slot_lost_total") == 0)
        try await app.drop()
    }

    /// The rule uses the same columns as before, so that only the file shows the change.
    @Test func changedValueOfARule_readsTheTableAgain() async throws {
        let app = try Self.app(Self.stateful, tables: Self.withState)
        let service = try TestService.start(app.settings)
        try await service.isReading()
        try await Self.followsSelect(app, service, select: Self.active)
        let directory = try TemporaryDirectory()
        let invited = Self.withState.replacingOccurrences(of: "[active]", with: "[invited]")
        try await service.restart(with: ["tables": try directory.write(invited, to: "invited.yaml")])
        try await Self.followsSelect(
            app, service, select: "SELECT user_id, team_id FROM team_members WHERE state = 'invited'")
        try await Self.isReadOnce(service)
        try await app.drop()
    }

    /// The table stays, with a second membership, and later without the first.
    @Test func membershipsThatComeAndGo_followTheirRows() async throws {
        let app = try Self.app()
        let service = try TestService.start(app.settings)
        try await service.isReading()
        let file = try #require(app.settings["tables"])
        let directory = try TemporaryDirectory()
        let second = AppDatabase.tables.replacingOccurrences(of: "name: team", with: "name: squad")
            .replacingOccurrences(of: "grants: team:", with: "grants: squad:")
            .replacingOccurrences(of: #""team:{team_id}:member""#, with: #""squad:{team_id}:member""#)
        try await service.restart(with: ["tables": try directory.write(second, to: "squad.yaml")])
        try await eventually("the new membership counts") { try await service.hasKey("squad:t1:member", "ada") }
        #expect(try await Self.keys("ada", service).isEmpty)
        try app.run("UPDATE team_members SET team_id = 't3'")
        try await eventually("it follows") { try await service.hasKey("squad:t3:member", "ada") }
        try await service.restart(with: ["tables": file])
        try await Self.followsSelect(app, service)
        try await app.drop()
    }

    /// The replica with the new file waits for the slot with fewer keys, and reads the table when it has it.
    @Test func replicaWithTheNewFile_isNarrow_untilItReads() async throws {
        let app = try Self.app(Self.stateful)
        let (first, second) = try TestService.startReplicas(app.settings)
        try await eventually("one reads") {
            let connected = [
                try await first.metric("bellhop_source_connected"), try await second.metric("bellhop_source_connected"),
            ]
            return connected.count { $0 == 1 } == 1
        }
        try await eventually("both know the rows") {
            let known = try await [first.hasKey("team:t1:member", "ben"), second.hasKey("team:t1:member", "ben")]
            return known == [true, true]
        }
        second.app.source?.stop()
        try await first.isReading()
        let directory = try TemporaryDirectory()
        try await second.restart(with: ["tables": try directory.write(Self.withState, to: "state.yaml")])
        for user in ["ada", "ben", "eve"] { #expect(try await Self.keys(user, second).isEmpty) }
        #expect(try await Self.keys("ben", first) == ["team:t1:member"])
        let ben = try await first.listen(as: .user("ben"))
        first.app.source?.stop()
        try await second.isReading()
        try await Self.followsSelect(app, second, select: Self.active)
        try await ben.nextScope(without: "team:t1:member")
        try await app.drop()
    }
}
