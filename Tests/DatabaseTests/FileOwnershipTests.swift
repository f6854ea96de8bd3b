import Foundation
import TestSupport
import Testing

@testable import Database

/// The owners of a database's files, and the effect of links in another user's folder.
@Suite(.timed) struct FileOwnershipTests {
    /// The user of the image, which owns nothing else here.
    private static let service: uid_t = 65532
    private static let isRoot = geteuid() == 0
    private static let items = Migration("0001", sql: ["CREATE TABLE items (id INTEGER PRIMARY KEY) STRICT"])

    /// Belongs to root: a backup, and a file that no other user may write.
    private let vault: TemporaryDirectory
    /// Belongs to the service's user, if the test runs as root.
    private let folder: TemporaryDirectory
    private let backup: String
    private let secret: String

    private var database: String { folder.file("a.sqlite") }

    init() throws {
        vault = try TemporaryDirectory()
        folder = try TemporaryDirectory()
        backup = vault.file("backup.sqlite")
        secret = try vault.write("root's own\n", to: "secret")
        let store = try DatabaseStore.open(.file(backup))
        try store.migrate([Self.items])
        store.close()
        #expect(chmod(secret, 0o600) == 0)
        if Self.isRoot { #expect(chown(folder.path, Self.service, Self.service) == 0) }
    }

    private func restore() throws -> String? {
        try DatabaseStore.replace(.file(database), by: backup, keepingAs: ".before") { _ in }
    }

    private func open(_ access: StoreOptions.Access) throws {
        var options = StoreOptions()
        options.access = access
        try DatabaseStore.open(.file(database), options: options).close()
    }

    private func owner(_ path: String) -> uid_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_uid : nil
    }

    private func expectSecretUntouched() throws {
        #expect(try String(contentsOfFile: secret, encoding: .utf8) == "root's own\n")
        #expect(owner(secret) == geteuid())
    }

    /// The service's user replaces the lock file by a link, and waits for the administrator.
    @Test(arguments: [true, false])
    func lockFileThatIsALink_isRefused_andLeadsNowhere(_ isSymbolic: Bool) throws {
        let lock = database + ".lock"
        #expect((isSymbolic ? symlink(secret, lock) : link(secret, lock)) == 0)
        #expect(throws: DatabaseError.self) { try restore() }
        #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(database)).close() }
        try expectSecretUntouched()
        #expect(unlink(lock) == 0)
        _ = try restore()
    }

    @Test func lockFileThatIsAPipe_isRefused_andBlocksNobody() throws {
        #expect(mkfifo(database + ".lock", 0o600) == 0)
        let error = #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(database)).close() }
        #expect(error?.detail.contains("is not a regular file") == true)
    }

    /// The service's user places a link to a file of root where SQLite will look for its log, and waits for a command of
    /// root. SQLite gives the log to the owner of the database.
    @Test(arguments: ["-wal", "-shm", "-journal"], [StoreOptions.Access.readOnly, .exclusive])
    func fileBesideTheDatabase_thatIsALink_isRefused(_ suffix: String, _ access: StoreOptions.Access) throws {
        _ = try restore()
        let beside = database + suffix
        #expect(link(secret, beside) == 0)
        let error = #expect(throws: DatabaseError.self) { try open(access) }
        #expect(error?.detail == "\(beside) is a hard link to another file: remove it")
        let copyError = #expect(throws: DatabaseError.self) {
            try DatabaseStore.copy(.file(database), to: vault.file("copy.sqlite")) { _ in }
        }
        #expect(copyError?.detail.hasPrefix("\(beside) is a hard link to another file: remove it") == true)
        try expectSecretUntouched()
    }

    @Test(arguments: ["", "-wal", "-shm", "-journal"])
    func fileOfTheDatabase_thatIsAPipe_isRefused_andBlocksNobody(_ suffix: String) throws {
        _ = try restore()
        if suffix.isEmpty { #expect(unlink(database) == 0) }
        #expect(mkfifo(database + suffix, 0o600) == 0)
        for access in [StoreOptions.Access.readOnly, .exclusive] {
            let error = #expect(throws: DatabaseError.self) { try open(access) }
            #expect(error?.detail == "\(database + suffix) is not a regular file: remove it")
        }
    }

    /// Between the check and the opening, the service's user exchanges the log. Root has only that user's rights.
    @Test(.enabled(if: isRoot, "only root may act as another user"))
    func sourceOfABackup_isReadAsItsOwner() throws {
        _ = try restore()
        #expect(chown(database, 0, 0) == 0)
        #expect(chmod(database, 0o600) == 0)
        let error = #expect(throws: DatabaseError.self) {
            try DatabaseStore.copy(.file(database), to: vault.file("copy.sqlite")) { _ in }
        }
        #expect(error?.detail.contains("accessed as uid \(Self.service)") == true, "\(error?.detail ?? "")")
    }

    @Test(.enabled(if: isRoot, "only root may give files away"))
    func lockFileOfAStranger_isRefused() throws {
        let lock = database + ".lock"
        try Data().write(to: URL(fileURLWithPath: lock))
        #expect(chown(lock, 12_345, 12_345) == 0)
        let error = #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(database)).close() }
        #expect(error?.detail.contains("belongs to uid 12345") == true)
    }

    /// The database's name leads to a database of root, which a restore would replace.
    @Test(.enabled(if: isRoot, "only root may write to other users' folders"))
    func databaseThatIsALink_isNotFollowedByRoot() throws {
        let precious = vault.file("precious.sqlite")
        try DatabaseStore.open(.file(precious)).close()
        let before = try Data(contentsOf: URL(fileURLWithPath: precious))
        #expect(symlink(precious, database) == 0)
        #expect(throws: DatabaseError.self) { try restore() }
        #expect(try Data(contentsOf: URL(fileURLWithPath: precious)) == before)
        #expect(owner(precious) == 0)
        #expect(!FileManager.default.fileExists(atPath: precious + ".before"))
    }

    /// The restored copy of a backup that only root may read belongs to the service's user, with all files beside it.
    @Test(.enabled(if: isRoot, "only root may act as another user"))
    func restoreByRoot_leavesFilesOfTheService() throws {
        #expect(try restore() == nil)
        #expect(try restore() == database + ".before")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.sorted() == ["a.sqlite", "a.sqlite.before", "a.sqlite.lock"])
        for name in names { #expect(owner(folder.file(name)) == Self.service, "\(name)") }
        #expect(owner(backup) == 0)
        // Root has its rights back.
        #expect(FileManager.default.contents(atPath: secret) != nil)
        #expect(FileManager.default.createFile(atPath: vault.file("new"), contents: nil))
        #expect(owner(vault.file("new")) == 0)
    }

    @Test(.enabled(if: isRoot, "only root may act as another user"))
    func backupByRoot_belongsToTheOwnerOfItsFolder() throws {
        let copy = folder.file("copy.sqlite")
        try DatabaseStore.copy(.file(backup), to: copy) { _ in }
        #expect(owner(copy) == Self.service)
        let own = vault.file("copy.sqlite")
        try DatabaseStore.copy(.file(backup), to: own) { _ in }
        #expect(owner(own) == 0)
    }

    /// Root does not control its folder inside a folder of the service, because the service could replace it.
    @Test(.enabled(if: isRoot, "only root may act as another user"))
    func backupIntoAnUnwritableFolder_explainsTheRefusal() throws {
        let inside = folder.file("backups")
        #expect(mkdir(inside, 0o755) == 0)
        let error = #expect(throws: DatabaseError.self) {
            try DatabaseStore.copy(.file(backup), to: inside + "/a.sqlite") { _ in }
        }
        #expect(error?.detail.contains("accessed as uid \(Self.service)") == true, "\(error?.detail ?? "")")
    }

    @Test(.enabled(if: isRoot, "only root may give folders away"))
    func controller_isTheFirstUserWhoCouldChangeThePath() throws {
        let inside = folder.file("inside")
        #expect(symlink(vault.path, inside) == 0)
        #expect(DatabaseFile.controller(of: inside + "/secret")?.user == Self.service)
        let pointer = vault.file("pointer")
        #expect(symlink(folder.path, pointer) == 0)
        #expect(DatabaseFile.controller(of: pointer + "/a.sqlite")?.user == Self.service)
        #expect(DatabaseFile.controller(of: vault.path + "/../" + secret.split(separator: "/").last!) == nil)
        #expect(DatabaseFile.controller(of: secret) == nil)
    }

    // MARK: One owning process

    /// SQLite would write a log beside each name, which would damage the file.
    @Test func hardLinkOfTheFile_isRefused() throws {
        let store = try DatabaseStore.open(.file(database))
        try store.migrate([Self.items])
        let second = folder.file("b.sqlite")
        #expect(link(database, second) == 0)
        let error = #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(second)).close() }
        #expect(error?.code == .locked)
        try store.writeAndWait { try $0.run("INSERT INTO items (id) VALUES (1)") }
        store.close()
        try DatabaseStore.open(.file(second)).close()
    }

    @Test func removedFiles_blockASecondProcess_untilTheyAreClosed() throws {
        let store = try DatabaseStore.open(.file(database))
        try store.migrate([Self.items])
        for suffix in ["", "-wal", "-shm", ".lock"] { #expect(unlink(database + suffix) == 0) }
        let error = #expect(throws: DatabaseError.self) { try DatabaseStore.open(.file(database)).close() }
        #expect(error?.code == .locked)
        #expect(error?.detail.contains("process \(getpid()) still has them open") == true, "\(error?.detail ?? "")")
        store.close()
        try DatabaseStore.open(.file(database)).close()
    }
}
