import Foundation
import TestSupport
import Testing

@testable import Database

/// Failures of real files: the error is clear, no job is half done, and every acknowledged write is still stored.
@Suite(.timed) struct FailureTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let items = Migration(
        "0001_items", sql: ["CREATE TABLE items (id INTEGER PRIMARY KEY, body BLOB) STRICT"])

    @Test func secondService_isRefused_andTheFirstIsNamed() throws {
        let url = DatabaseURL.file(directory.file("a.sqlite"))
        let store = try DatabaseStore.open(url)
        let error = #expect(throws: DatabaseError.self) { _ = try DatabaseStore.open(url) }
        #expect(error?.code == .locked)
        #expect(error?.detail.contains("\(getpid())") == true)
        // A different spelling of the same path does not bypass the lock.
        let detour = "\(directory.path)/../\(directory.path.split(separator: "/").last!)/a.sqlite"
        #expect(errorCode { _ = try DatabaseStore.open(.file(detour)) } == .locked)
        store.close()
        try DatabaseStore.open(url).close()
    }

    @Test func readOnlyStore_readsBesideTheService_andSeesItsCommits() throws {
        let url = DatabaseURL.file(directory.file("a.sqlite"))
        let service = try DatabaseStore.open(url)
        defer { service.close() }
        try service.migrate([Self.items])
        var options = StoreOptions()
        options.access = .readOnly
        let check = try DatabaseStore.open(url, options: options)
        defer { check.close() }
        for count in 1...3 {
            try service.writeAndWait { try $0.run("INSERT INTO items (body) VALUES (NULL)") }
            #expect(try check.read { try $0.integer("SELECT count(*) FROM items") } == count)
        }
        #expect(errorCode { _ = try check.writeAndWait { try $0.run("DELETE FROM items") } } == .readOnly)
        #expect(
            errorCode { _ = try DatabaseStore.open(.file(directory.file("absent")), options: options) } == .cannotOpen)
    }

    @Test func fullDatabase_failsTheWholeGroup_withTheReason_andRecovers() throws {
        var options = StoreOptions()
        options.pagesMax = 40
        let store = try DatabaseStore.open(.file(directory.file("a.sqlite")), options: options)
        defer { store.close() }
        try store.migrate([Self.items])
        try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (1)") }
        let body = [UInt8](repeating: 7, count: 400_000)
        let gate = Gate()
        let results = Collected<Result<Int, any Error>>()
        try store.write({ _ in gate.wait() }, completion: { _ in })
        try store.write({ try $0.run("INSERT INTO items (id) VALUES (2)") }, completion: { results.append($0) })
        try store.write(
            { try $0.run("INSERT INTO items (id, body) VALUES (3, \(body))") }, completion: { results.append($0) })
        gate.open()
        let codes = results.wait(for: 2).map { result -> DatabaseError.Code? in
            if case .failure(let error as DatabaseError) = result { return error.code }
            return nil
        }
        // The large write fails with its own error. SQLite decides whether the small one succeeds, but it is
        // answered.
        #expect(codes.contains(.full))
        let stored = try store.read { try $0.rows("SELECT id FROM items ORDER BY id") { try $0.integer(0) } }
        #expect(stored == (codes.contains(nil) ? [1, 2] : [1]))
        #expect(store.trouble?.code == .full)
        try store.probe()
        #expect(store.trouble == nil)
        try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (4)") }
        #expect(try store.integrityCheck() == [])
    }

    @Test func databaseLockedByAnotherProgram_failsTheGroup_andRecovers() throws {
        var options = StoreOptions()
        options.busyTimeout = .milliseconds(20)
        let store = try DatabaseStore.open(.file(directory.file("a.sqlite")), options: options)
        defer { store.close() }
        try store.migrate([Self.items])
        // A connection outside the store, like that of the sqlite3 tool.
        let visitor = try SQLiteConnection(
            DatabaseFile(.file(store.path), access: .readOnly), role: .checkpointer, options: options)
        try visitor.runScript("BEGIN IMMEDIATE")
        let error = #expect(throws: DatabaseError.self) {
            try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (1)") }
        }
        #expect(error?.code == .unavailable)
        #expect(error?.cause == .busy)
        #expect(error?.isTransient == true)
        // Reads continue to work.
        #expect(try store.read { try $0.integer("SELECT count(*) FROM items") } == 0)
        try visitor.runScript("ROLLBACK")
        try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (1)") }
        #expect(store.metrics().batchesFailed == 1)
    }

    @Test func foreignOrDamagedFile_isCalledCorrupt_andLeftAlone() throws {
        let path = directory.file("a.sqlite")
        let text = Data(String(repeating: "this is no database ", count: 500).utf8)
        try text.write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: DatabaseError.self) { _ = try DatabaseStore.open(.file(path)) }
        #expect(error?.code == .corrupt)
        #expect(error?.detail.contains(path) == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == text)
    }

    @Test func damagedPages_areFoundByTheCheck_andReadsSayCorrupt() throws {
        let path = directory.file("a.sqlite")
        let store = try DatabaseStore.open(.file(path))
        try store.migrate([Self.items])
        try store.writeAndWait { db in
            let body = [UInt8](repeating: 1, count: 500)
            for _ in 0..<200 { try db.run("INSERT INTO items (body) VALUES (\(body))") }
        }
        store.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        for page in 3..<12 {
            try file.seek(toOffset: UInt64(page * 4096))
            try file.write(contentsOf: Data(repeating: 0xAB, count: 4096))
        }
        try file.close()
        let damaged = try DatabaseStore.open(.file(path))
        defer { damaged.close() }
        let found = errorCode {
            _ = try damaged.read { db in try db.rows("SELECT * FROM items") { try $0.integer(0) } }
        }
        #expect(found == .corrupt)
        let findings = (try? damaged.integrityCheck()) ?? ["the check itself failed"]
        #expect(!findings.isEmpty)
    }

    @Test func directoryThatTakesNoFiles_isAClearError() {
        // Not even root may create files in /proc.
        let found = errorCode { _ = try DatabaseStore.open(.file("/proc/bellhop.sqlite")) }
        #expect(found == .cannotOpen || found == .readOnly)
        #expect(errorCode { _ = try DatabaseStore.open(.file("/no/such/directory/a.sqlite")) } == .cannotOpen)
    }

    @Test func constraints_haveTheirOwnCodes() throws {
        let store = try DatabaseStore.open(.memory)
        defer { store.close() }
        try store.migrate([
            Migration(
                "0001",
                sql: [
                    "CREATE TABLE p (id INTEGER PRIMARY KEY, u TEXT UNIQUE, n INTEGER NOT NULL CHECK (n > 0)) STRICT",
                    "CREATE TABLE c (p INTEGER REFERENCES p (id)) STRICT",
                    "INSERT INTO p VALUES (1, 'a', 1)",
                ])
        ])
        func failure(_ sql: SQL) -> DatabaseError.Code? {
            errorCode { _ = try store.writeAndWait { try $0.run(sql) } }
        }
        #expect(failure("INSERT INTO p VALUES (1, 'b', 1)") == .constraintUnique)
        #expect(failure("INSERT INTO p VALUES (2, 'a', 1)") == .constraintUnique)
        #expect(failure("INSERT INTO p VALUES (2, 'b', 0)") == .constraintCheck)
        #expect(failure("INSERT INTO p VALUES (2, 'b', NULL)") == .constraintNotNull)
        #expect(failure("INSERT INTO c VALUES (9)") == .constraintForeignKey)
        #expect(failure("INSERT INTO nowhere VALUES (9)") == .statement)
    }

    @Test func urls_areUnderstood_orRefusedWithoutShowingSecrets() throws {
        #expect(try DatabaseURL("sqlite::memory:").location == .memory)
        #expect(try DatabaseURL("sqlite:a/b.sqlite").location == .file(path: "a/b.sqlite"))
        #expect(try DatabaseURL("sqlite:///var/b.sqlite").location == .file(path: "/var/b.sqlite"))
        for text in ["", "sqlite:", "sqlite:/", "sqlite://host/x", "mysql://me:secret@host/db", "x.sqlite"] {
            let error = #expect(throws: DatabaseError.self) { _ = try DatabaseURL(text) }
            #expect(error?.code == .url)
            #expect(error?.detail.contains("secret") == false)
        }
    }
}
