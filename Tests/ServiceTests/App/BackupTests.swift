import BellhopClient
import Database
import Foundation
import PostgresServer
import TestSupport
import Testing
import Threads

@testable import Service

/// Backups of a database, and services that start from them.
@Suite(.timed) struct BackupTests {
    /// Starts a service on a file, whichever database the other tests use.
    private static func start(in directory: TemporaryDirectory, _ name: String = "live.sqlite") throws -> TestService {
        try TestService.start(
            on: TestDatabase(url: "sqlite:\(directory.file(name))", name: nil), in: directory, at: TestService.morning)
    }

    private static func settings(_ directory: TemporaryDirectory, _ name: String = "live.sqlite") throws -> Settings {
        try TestService.settings(["database": "sqlite:\(directory.file(name))", "jwtSecret": TestService.secret])
    }

    @Test func backupUnderLoad_containsEveryAcknowledgedWrite() async throws {
        let directory = try TemporaryDirectory()
        let service = try Self.start(in: directory)
        let answered = Locked(0)
        let isOver = Gate()
        async let writing: Void = concurrently(0..<4) { writer in
            var number = 0
            while !isOver.isOpen {
                try await service.publish("n\(writer * 100_000 + number)", to: "ada")
                number += 1
                answered.withLock { $0 += 1 }
            }
        }.reduce(()) { _, _ in () }
        for copy in 0..<3 {
            let before = answered.withLock { $0 }
            try await eventually("events continue to be written") { answered.withLock { $0 } > before + 20 }
            let known = answered.withLock { $0 }
            let name = "copy\(copy).sqlite"
            try Operations.backUp(Self.settings(directory), to: directory.file(name))
            #expect(try Operations.check(Self.settings(directory, name)).isEmpty)
            let copied = try Self.start(in: directory, name)
            let count = try await copied.client("ada").getBadges().value.bell
            #expect(count >= known)
            await copied.app.shutdown()
        }
        isOver.open()
        try await writing
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
            $0.contains("unfinished")
        }
        #expect(left.isEmpty, "\(left)")
    }

    /// Anyone that can exchange the backup must not run statements as the service.
    @Test(arguments: [
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END", "trigger t is not part of"),
        ("CREATE VIEW v AS SELECT 1", "view v is not part of"),
        ("DROP INDEX notifications_events", "index notifications_events is missing"),
        ("ALTER TABLE notifications ADD COLUMN extra TEXT DEFAULT 'x'", "table notifications was changed"),
    ])
    func backupWithAForeignSchema_isRefused(_ change: SQL, _ fault: String) async throws {
        let directory = try TemporaryDirectory()
        let service = try Self.start(in: directory)
        let settings = try Self.settings(directory)
        let copy = directory.file("copy.sqlite")
        try Operations.backUp(settings, to: copy)
        let hostile = try DatabaseStore.open(DatabaseURL(file: copy))
        try hostile.writeAndWait { try $0.run(change) }
        hostile.close()
        try await service.restart {
            let error = #expect(throws: DatabaseError.self) { try Operations.restore(settings, from: copy) }
            #expect(error?.detail.contains(fault) == true, "\(error?.detail ?? "")")
        }
    }

    @Test func restoredDatabase_hasAnotherLog_andKeepsWhatWasThere() async throws {
        let directory = try TemporaryDirectory()
        let service = try Self.start(in: directory)
        try await service.publish("n1", to: "ada")
        let settings = try Self.settings(directory)
        let copy = directory.file("copy.sqlite")
        try Operations.backUp(settings, to: copy)
        try await service.publish("n2", to: "ada")
        let position = try await service.position(as: .user("ada"))
        let refusal = #expect(throws: DatabaseError.self) { try Operations.restore(settings, from: copy) }
        #expect(refusal?.code == .locked)
        var kept: String?
        try await service.restart { kept = try Operations.restore(settings, from: copy) }
        #expect(try await service.client("ada").getBadges().value.bell == 1)
        // Another event will receive the sequence number that the position names.
        try await service.publish("n3", to: "ada")
        let stream = try await service.listen(as: .user("ada"), lastEventID: position)
        #expect(try await stream.next("stream:resync").json["reason"] == "epoch")
        #expect(try await service.position(as: .user("ada")) != position)
        // The epoch changes only once.
        let fresh = try await service.position(as: .user("ada"))
        try await service.restart()
        #expect(try await service.position(as: .user("ada")) == fresh)
        let there = try Self.start(in: directory, URL(fileURLWithPath: #require(kept)).lastPathComponent)
        #expect(try await there.client("ada").getBadges().value.bell == 2)
    }

    /// A killed restoration leaves a whole copy beside the database, which no erasure would reach.
    @Test func copiesOfKilledRestorations_areRemovedAtTheNextStart() async throws {
        let directory = try TemporaryDirectory()
        let service = try Self.start(in: directory)
        let left = [
            "live.sqlite.restored", "live.sqlite.restored.unfinished-77", "live.sqlite.restored.unfinished-77-wal",
        ]
        let kept = ["live.sqlite.before-20260110T120000", "other.sqlite.restored", "live.sqlite.restored-by-hand"]
        try await service.restart {
            for name in left + kept { try Data("a copy".utf8).write(to: URL(fileURLWithPath: directory.file(name))) }
        }
        let found = try Set(FileManager.default.contentsOfDirectory(atPath: directory.path))
        #expect(found.isDisjoint(with: left) && found.isSuperset(of: kept), "\(found)")
    }

    @Test func invalidBackup_isRefused_withoutAnyEffect() async throws {
        let directory = try TemporaryDirectory()
        let service = try Self.start(in: directory)
        try await service.publish("n1", to: "ada")
        let settings = try Self.settings(directory)
        let copy = directory.file("copy.sqlite")
        try Operations.backUp(settings, to: copy)
        #expect(throws: DatabaseError.self) { try Operations.backUp(settings, to: copy) }
        #expect(throws: DatabaseError.self) { try Operations.backUp(settings, to: directory.file("no/folder/copy")) }
        await service.app.shutdown()
        let before = try Data(contentsOf: URL(fileURLWithPath: directory.file("live.sqlite")))
        let other = try DatabaseStore.open(DatabaseURL(file: directory.file("other.sqlite")))
        other.close()
        var damaged = try Data(contentsOf: URL(fileURLWithPath: copy))
        for place in stride(from: 4096, to: damaged.count, by: 512) { damaged[place] ^= 0xff }
        try damaged.write(to: URL(fileURLWithPath: directory.file("damaged.sqlite")))
        try Data("no database".utf8).write(to: URL(fileURLWithPath: directory.file("text")))
        for name in ["other.sqlite", "damaged.sqlite", "text", "nothing", "live.sqlite"] {
            #expect(throws: DatabaseError.self, "\(name)") {
                try Operations.restore(settings, from: directory.file(name))
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.file("live.sqlite"))) == before)
        #expect(try Operations.check(settings).isEmpty)
    }

    /// A dump restored into another database and a server restored from an archive both have another origin.
    @Test func restoredServer_givesTheLogANewEpoch() async throws {
        let server = try PostgresServer.shared()
        let directory = try TemporaryDirectory()
        let original = try TestDatabase(on: server)
        let service = try TestService.start(on: original, in: directory, at: TestService.morning)
        try await service.publish("n1", to: "ada")
        let position = try await service.position(as: .user("ada"))
        try await service.restart()
        #expect(try await service.position(as: .user("ada")) == position)
        await service.app.shutdown()
        let copy = try server.makeDatabase(copying: original.name)
        let restored = try TestService.start(
            on: TestDatabase(url: server.url("bellhop", copy), name: copy), in: directory, at: TestService.morning)
        let stream = try await restored.listen(as: .user("ada"), lastEventID: position)
        #expect(try await stream.next("stream:resync").json["reason"] == "epoch")
    }

    /// The login of the service may not create tables.
    @Test func migrationByTheServicesLogin_namesTheOwner() throws {
        let server = try PostgresServer.shared()
        // The template of this one creates the login.
        let template = try TestDatabase(on: server)
        defer { template.drop() }
        let empty = try server.makeDatabase()
        defer { server.drop(empty) }
        let settings = try TestService.settings([
            "database": server.url("bellhop", empty), "jwtSecret": TestService.secret,
        ])
        let error = #expect(throws: DatabaseError.self) { try Operations.migrate(settings) }
        #expect(error?.detail.contains("use the login that owns them, such as bellhop_owner") == true)
    }

    @Test func dryRun_listsTheMigrations_andCreatesNoFile() throws {
        let directory = try TemporaryDirectory()
        let settings = try Self.settings(directory)
        let pending = try Operations.pendingMigrations(settings)
        #expect(pending.first?.statements.first?.contains("CREATE TABLE") == true)
        #expect(!FileManager.default.fileExists(atPath: directory.file("live.sqlite")))
        #expect(try Operations.migrate(settings) == pending.map(\.id))
        #expect(try Operations.pendingMigrations(settings).isEmpty)
    }
}
