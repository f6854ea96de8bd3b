import BellhopClient
import Database
import Foundation
import PostgresServer
import TestSupport
import Testing

@testable import Database
@testable import Service

/// Databases of earlier versions, opened by the current service.
@Suite(.timed) struct EarlierDatabasesTests {
    /// One level on one database engine.
    struct Earlier: Sendable, CustomTestStringConvertible {
        let level: DatabaseLevel
        let engine: DatabaseEngine
        var testDescription: String { "\(level) on \(engine)" }
    }

    static let earlier = ((try? DatabaseLevel.all.get()) ?? []).flatMap { level in
        [DatabaseEngine.sqlite, .postgreSQL].map { Earlier(level: level, engine: $0) }
    }

    @Test(arguments: earlier) func database_ofAnEarlierVersion_isServedWithAllItsRows(_ earlier: Earlier) async throws {
        let level = earlier.level
        let directory = try TemporaryDirectory()
        let database =
            earlier.engine == .sqlite ? try level.makeFile(in: directory) : try level.makeServerDatabase()
        let service = try TestService.start(
            on: database, in: directory, LevelStory.settings, at: LevelStory.later)
        // A resumed stream receives the missed events or a resync, never nothing.
        let stream = try await service.listen(as: .user("ada"), lastEventID: level.cursor)
        let missed = try await stream.next().name
        #expect(["booking:status_change", "stream:resync"].contains(missed), "\(missed)")
        for chapter in LevelStory.chapters where chapter.level <= level.number { try await chapter.isServed(service) }
        try service.expectExactCounts()
        // Features that this level did not have yet work as well.
        for chapter in LevelStory.chapters where chapter.level > level.number {
            try await chapter.happen(service)
            try await chapter.isServed(service)
        }
        try service.expectExactCounts()
    }

    /// A later version adds a column to a table with rows. Nothing is lost.
    @Test(arguments: [DatabaseEngine.sqlite, .postgreSQL])
    func laterMigration_keepsTheRows(on engine: DatabaseEngine) async throws {
        let directory = try TemporaryDirectory()
        let level = try #require(try DatabaseLevel.all.get().last)
        let database = engine == .sqlite ? try level.makeFile(in: directory) : try level.makeServerDatabase()
        let later = Migration(
            "0002_preferences",
            sql: [
                .sqlite("ALTER TABLE preferences ADD COLUMN mood INTEGER NOT NULL DEFAULT 7"),
                .postgreSQL("ALTER TABLE preferences ADD COLUMN mood BIGINT NOT NULL DEFAULT 7"),
            ])
        var options = StoreOptions()
        options.access = .owner
        let url = try database.name.map { try PostgresServer.shared().url("bellhop_owner", $0) } ?? database.url
        let store = try DatabaseStore.open(DatabaseURL(url), options: options, tables: Catalog.tables)
        defer { store.close() }
        // On SQLite, nothing has applied the migrations that are newer than the level.
        #expect(try store.migrate(Catalog.migrations + [later], tables: Catalog.tables).last == later.id)
        #expect(try store.migrate(Catalog.migrations + [later], tables: Catalog.tables).isEmpty)
        let query = "SELECT user_id || ' ' || mood FROM preferences"
        let found =
            try database.name.map { [try PostgresServer.shared().run([query], in: $0)] }
            ?? store.read { db in try db.rows(SQL(unchecked: query)) { try $0.text(0) } }
        #expect(found == ["ada 7"])
    }

    /// Every level has a chapter, and every migration of a level is a current one.
    @Test func everyLevel_isStored_andKnown() throws {
        let levels = try DatabaseLevel.all.get()
        #expect(levels.map(\.number) == Set(LevelStory.chapters.map(\.level)).sorted())
        let known = Set(Catalog.migrations.map(\.id))
        for level in levels { #expect(known.isSuperset(of: level.migrations), "\(level)") }
    }

    /// Stores the newest level. The files of released versions stay unchanged, because such databases exist.
    @Test(
        .enabled(if: ProcessInfo.processInfo.environment["STORE_LEVEL"] != nil, "STORE_LEVEL=1 stores the newest one"))
    func newestLevel_isStored() async throws {
        let service = try TestService.start(LevelStory.settings, at: LevelStory.moment)
        let cursor = try await service.position(as: .user("ada"))
        for chapter in LevelStory.chapters { try await chapter.happen(service) }
        try await DatabaseLevel.store(LevelStory.chapters.map(\.level).max() ?? 1, cursor: cursor, of: service)
    }

    // MARK: Released migrations

    /// The text of a migration that a stored level has cannot change, because the service would refuse that database.
    @Test func migrations_areThoseOfTheStoredLevels() throws {
        let present = Set(Catalog.migrations.map(DatabaseLevel.line(of:)))
        for level in try DatabaseLevel.all.get() {
            for line in level.lines where !present.contains(line) {
                Issue.record(
                    """
                    \(level) has another text of this migration. Revert the change, or, if the level is not released, \
                    store it again (STORE_LEVEL=1): \(line)
                    """)
            }
        }
    }

    /// From then on, its text cannot change.
    @Test func everyMigration_isInAStoredLevel_onceItsVersionIsReleased() throws {
        let changelog = try String(contentsOf: repository.appendingPathComponent("CHANGELOG.md"), encoding: .utf8)
        let version = try #require(changelog.split(separator: "\n").first { $0.hasPrefix("## ") })
        guard !version.hasPrefix("## Unreleased") else { return }
        let stored = Set(try DatabaseLevel.all.get().flatMap(\.migrations))
        let missing = Catalog.migrations.map(\.id).filter { !stored.contains($0) }
        #expect(missing == [], "\(version): LevelStory needs a chapter, and a level is to be stored (STORE_LEVEL=1)")
    }

    /// A new migration is applied after all others in an older database, and after the migrations of its feature in a
    /// new one. So it may need no table of another feature.
    @Test func migrations_needNoOtherFeature() throws {
        let owners = Dictionary(grouping: Catalog.migrations) { $0.id.drop { $0 != "_" } }
        for (owner, migrations) in owners {
            let store = try DatabaseStore.open(DatabaseURL("sqlite::memory:"), tables: Catalog.tables)
            defer { store.close() }
            #expect(throws: Never.self, "\(owner)") { try store.migrate(migrations) }
        }
    }

    /// A database with unknown migrations stops the start with an error that names the migration.
    @Test func start_refusesADatabase_withUnknownMigrations() throws {
        let directory = try TemporaryDirectory()
        let url = "sqlite:\(directory.file("a.sqlite"))"
        func change(_ statement: String) throws {
            let store = try DatabaseStore.open(DatabaseURL(url), tables: Catalog.tables)
            defer { store.close() }
            try store.migrate(Catalog.migrations)
            try store.writeAndWait { try $0.runMigration(statement) }
        }
        func serve() throws -> (status: Int32, text: String) {
            try BellhopProcess(
                ["serve"], settings: ["JWT_SECRET": TestService.secret, "PORT": "0", "DATABASE": url]
            ).finish()
        }
        try change("UPDATE schema_migrations SET checksum = 'another' WHERE id = '0001_shops'")
        let changed = try serve()
        #expect(changed.status == 78)
        #expect(changed.text.contains("0001_shops"), "\(changed.text)")
        #expect(changed.text.contains("restore an earlier backup, or start the matching version"))
    }
}
