import Foundation
import TestSupport
import Testing

@testable import Database

/// The permissions of a database's files, and the error text if this process lacks them.
@Suite(.timed) struct DatabaseFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber).intValue
    }

    @Test func newFiles_areReadableByTheirOwnerOnly_withAnyUmask() throws {
        let path = directory.file("a.sqlite")
        let usual = umask(0)
        defer { umask(usual) }
        let store = try DatabaseStore.open(.file(path))
        defer { store.close() }
        try store.migrate([Migration("0001", sql: ["CREATE TABLE items (id INTEGER PRIMARY KEY) STRICT"])])
        for suffix in ["", "-wal", "-shm", ".lock"] { #expect(try mode(path + suffix) == 0o600, "a.sqlite\(suffix)") }
    }

    @Test func existingFile_keepsItsMode() throws {
        let path = directory.file("a.sqlite")
        try DatabaseStore.open(.file(path)).close()
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        try DatabaseStore.open(.file(path)).close()
        #expect(try mode(path) == 0o640)
    }

    @Test func missingFolder_isNamedInTheError() throws {
        let missing = directory.file("missing")
        let error = #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(missing + "/a.sqlite")).close() }
        #expect(error?.code == .cannotOpen)
        #expect(error?.detail == "the folder \(missing) does not exist")
    }

    @Test func denial_namesTheOwner_andTheRemedy() {
        let folder = DatabaseFile.Attributes(path: "/data", isFolder: true, owner: 0, ownerName: "root", mode: 0o755)
        #expect(
            folder.denial(to: 65532) == """
                /data belongs to root (uid 0), but the service runs as uid 65532: run chown 65532 /data, \
                or mount a volume that this user owns
                """)
        let file = DatabaseFile.Attributes(
            path: "/data/a.sqlite", isFolder: false, owner: 1000, ownerName: nil, mode: 0o600)
        #expect(
            file.denial(to: 65532) == """
                /data/a.sqlite belongs to uid 1000, but the service runs as uid 65532: run chown 65532 /data/a.sqlite
                """)
        #expect(file.denial(to: 1000) == nil)
        let own = DatabaseFile.Attributes(path: "/data", isFolder: true, owner: 65532, ownerName: nil, mode: 0o555)
        #expect(own.denial(to: 65532) == "/data has mode 555: run chmod u+rwx /data")
    }

    @Test func readOnlyFileSystem_isNamedInTheError() {
        let error = DatabaseFile.refusal(of: "/data", because: EROFS)
        #expect(error.code == .readOnly)
        #expect(error.detail.contains("/data is on a file system that is mounted read-only"))
    }

    /// A connection opened later must not read a file that replaced the original.
    @Test func replacedFile_isNotOpened_andNotTouchedAtTheEnd() throws {
        let path = directory.file("a.sqlite")
        let store = try DatabaseStore.open(.file(path))
        try store.migrate([Migration("0001", sql: ["CREATE TABLE items (id INTEGER PRIMARY KEY) STRICT"])])
        try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (1)") }
        try store.checkpoint()
        try store.read { db in
            for file in [path, path + "-wal"] {
                let copy = try Data(contentsOf: URL(fileURLWithPath: file)) + Data("x".utf8)
                #expect(unlink(file) == 0)
                try copy.write(to: URL(fileURLWithPath: file))
            }
            // This connection still has the original file open; a second reader would open the replacement.
            #expect(try db.integer("SELECT count(*) FROM items") == 1)
            #expect(errorCode { _ = try store.read { try $0.integer("SELECT count(*) FROM items") } } == .moved)
        }
        let lost = #expect(throws: DatabaseError.self) {
            try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (2)") }
        }
        #expect(lost?.storageTrouble == .moved)
        #expect(store.trouble?.code == .moved)
        store.close()
        for file in [path, path + "-wal"] {
            #expect(try Data(contentsOf: URL(fileURLWithPath: file)).last == UInt8(ascii: "x"), "\(file)")
        }
    }

    /// If a file does not exist or its folder hides it, the permissions of the folder are reported.
    @Test func closestFolder_isTheFirstThatExists() throws {
        let place = try #require(DatabaseFile.Attributes(closestTo: directory.file("missing/a.sqlite")))
        #expect(place.path == directory.path)
        #expect(place.isFolder)
        #expect(place.owner == geteuid())
    }
}
