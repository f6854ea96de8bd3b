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

    /// Every level as a file, and the levels that a server can have: replicas on PostgreSQL came with the second
    /// level. On a server, a contributor's run tests only the oldest and the newest level.
    static let earlier = {
        let levels = (try? DatabaseLevel.all.get()) ?? []
        let ofServers = levels.filter { $0.migrations.contains("0002_event_counter") }
        let count = effort(quick: 1, full: ofServers.count, long: ofServers.count)
        return levels.map { Earlier(level: $0, engine: .sqlite) }
            + (ofServers.prefix(count) + ofServers.dropFirst(count).suffix(1)).map {
                Earlier(level: $0, engine: .postgreSQL)
            }
    }()

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
        for chapter in LevelStory.chapters.prefix(while: { $0.name <= level.name }) {
            try await chapter.isServed(service)
        }
        try service.expectExactCounts()
        // Features that this level did not have yet work as well.
        for chapter in LevelStory.chapters.drop(while: { $0.name <= level.name }) {
            try await chapter.happen(service)
            try await chapter.isServed(service)
        }
        try service.expectExactCounts()
    }

    /// Every level with a chapter has its fixture, and every migration of a fixture is a current one.
    @Test func everyLevel_isStored_andKnown() throws {
        let levels = try DatabaseLevel.all.get()
        #expect(levels.map(\.name) == LevelStory.chapters.map(\.name))
        let known = Set(Catalog.migrations.map(\.id))
        for level in levels {
            #expect(known.isSuperset(of: level.migrations), "\(level)")
            #expect(level.migrations == LevelStory.migrations(upTo: level.name), "\(level)")
        }
    }

    /// Stores the levels that are not stored yet. Existing files stay unchanged, because such databases exist.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["STORE_LEVELS"] != nil, "STORE_LEVELS=1 stores new ones"))
    func newLevels_areStored() async throws {
        let stored = Set(try DatabaseLevel.all.get().map(\.name))
        let service = try TestService.start(LevelStory.settings, at: LevelStory.moment)
        let cursor = try await service.position(as: .user("ada"))
        for chapter in LevelStory.chapters {
            try await chapter.happen(service)
            try await chapter.remain(service)
            guard !stored.contains(chapter.name) else { continue }
            let migrations = LevelStory.migrations(upTo: chapter.name)
            try DatabaseLevel.store(chapter.name, migrations, cursor: cursor, of: service)
        }
    }

    // MARK: Released migrations

    /// The text of an applied migration cannot change, because the service would refuse that database. A new
    /// migration adds a line to `checksums.txt`, and no other line changes.
    @Test func migrations_matchTheReleasedChecksums() throws {
        let file = DatabaseLevel.folder.appendingPathComponent("checksums.txt")
        let pinned = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map(String.init)
        let present = Catalog.migrations.map {
            "\($0.id) sqlite:\($0.checksum(for: .sqlite)) postgres:\($0.checksum(for: .postgreSQL))"
        }
        for line in present where !pinned.contains(line) {
            Issue.record(
                "if the migration is new, add this line to checksums.txt; otherwise revert its change:\n\(line)")
        }
        for line in pinned where !present.contains(line) { Issue.record("a released migration is missing: \(line)") }
        #expect(pinned == pinned.sorted(), "keep the lines sorted, so that concurrent additions do not conflict")
    }

    /// An older database has applied the released migrations, so a new one can only come after them. Otherwise new and
    /// upgraded databases would apply them in different orders. A new migration adds a line at the end of `order.txt`.
    @Test func migrations_keepTheReleasedOrder() throws {
        let file = DatabaseLevel.folder.appendingPathComponent("order.txt")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let released = lines.filter { !$0.hasPrefix("#") }.map(String.init)
        #expect(Catalog.migrations.map(\.id) == released)
    }

    @Test func migration_thatIsNotListedOnceAndDeclaredOnce_isRefused() {
        let order = MigrationOrder(ids: ["0001_a", "0001_b", "0001_c", "0001_c"])
        let declared = ["0001_c", "0001_d", "0001_a", "0001_a"].map { Migration($0, sql: []) }
        #expect(
            order.mistakes(in: declared) == [
                "0001_a is listed 1 times and declared 2 times", "0001_b is listed 1 times and declared 0 times",
                "0001_c is listed 2 times and declared 1 times", "0001_d is listed 0 times and declared 1 times",
            ])
    }

    @Test func migrations_areSortedByTheList() {
        let order = MigrationOrder(ids: ["0001_b", "0001_a", "0002_b"])
        let declared = ["0001_a", "0001_b", "0002_b"].map { Migration($0, sql: []) }
        #expect(order.sorted(declared).map(\.id) == order.ids)
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
