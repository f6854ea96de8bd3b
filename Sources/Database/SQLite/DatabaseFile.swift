import Foundation
import Synchronization
import Threads

/// The file of an open database, and the lock that gives this process exclusive ownership.
///
/// A lock file beside it has an advisory lock (`flock`) and the owner's process id. The database has such a lock too, so
/// that its second name (a hard link) starts no second process. The kernel drops the locks when the process ends,
/// however it ends, so a stale file never blocks a start. SQLite's own locks are of another kind (`fcntl`): other
/// processes of the user may read the file (`sqlite3`, `bellhop check`).
final class DatabaseFile: Sendable {
    let path: String
    /// The private directory of an in-memory database, removed at the end.
    private let privateDirectory: String?
    /// The open lock file; -1 for a reader, and after the release.
    private let lockDescriptor: Atomic<Int32>
    /// The open and locked database; nil for a reader, and after the release.
    private let owned = Locked<Owned?>(nil)
    /// The identities of the files when the database was opened; empty before.
    let identities = Locked<[(path: String, identity: Identity?)]>([])
    /// See ``isMoved()``.
    let hasMoved = Atomic<Bool>(false)

    private static let privatePrefix = "bellhop-memory-"
    private static let lockName = "owner.lock"
    /// Containers often have a /dev/shm of 64 MiB, which a database outgrows. Then the temporary directory is used.
    private static let freeBytesMin: UInt64 = 256 << 20

    init(_ url: DatabaseURL, access: StoreOptions.Access) throws(DatabaseError) {
        switch url.location {
        case .server: throw DatabaseError(.url, "a server URL does not name a file")
        case .file(let given):
            path = Self.resolved(given)
            privateDirectory = nil
            if access == .readOnly {
                lockDescriptor = Atomic(-1)
                guard Self.permits(path, R_OK) else {
                    guard errno == ENOENT else { throw Self.refusal(of: path, because: errno) }
                    let folder = Self.folder(of: path)
                    let folderExists = Self.isFolder(folder)
                    throw DatabaseError(
                        .cannotOpen,
                        folderExists ? "the database \(path) does not exist" : "the folder \(folder) does not exist")
                }
                try Self.requirePlainFiles(path)
            } else {
                // SQLite creates files beside the database. It would report an unwritable folder without naming it.
                let folder = Self.folder(of: path)
                guard Self.permits(folder, W_OK | X_OK) else {
                    guard errno == ENOENT else { throw Self.refusal(of: folder, because: errno) }
                    throw DatabaseError(.cannotOpen, "the folder \(folder) does not exist")
                }
                guard !Self.isFolder(path) else {
                    throw DatabaseError(
                        .cannotOpen, "\(path) is a folder: name a file in it, such as \(path)/bellhop.sqlite")
                }
                try Self.requirePlainFiles(path)
                lockDescriptor = Atomic(try Self.lock(path + ".lock", database: path))
            }
        case .memory:
            guard access == .exclusive else {
                throw DatabaseError(.url, "a database in memory can only be opened by the process that created it")
            }
            let parent = Self.fastDirectory()
            Self.sweep(parent)
            let directory = parent + "/" + Self.privatePrefix + UUID().uuidString
            guard mkdir(directory, 0o700) == 0 else {
                throw DatabaseError(.cannotOpen, "cannot create \(directory): \(Self.lastSystemError())")
            }
            // Locked under another name first. Otherwise a sweep that sees the unlocked file would take it for one of a
            // dead process.
            let unnamed = directory + "/new.lock"
            lockDescriptor = Atomic(try Self.lock(unnamed, database: directory))
            rename(unnamed, directory + "/" + Self.lockName)
            privateDirectory = directory
            path = directory + "/database.sqlite"
        }
        guard access != .readOnly else { return }
        do throws(DatabaseError) {
            try Self.requireNoOwnerOfRemovedFiles(path)
            let owned = try Self.own(path)
            self.owned.withLock { $0 = owned }
            if access == .exclusive { Self.removeUnfinishedRestores(of: path) }
        } catch {
            release()
            throw error
        }
    }

    deinit {
        release()
    }

    /// Releases the database. Called when its last writing connection is closed.
    func release() {
        // Before the lock file: closing a descriptor drops the process's `fcntl` locks on the file, and the next owner
        // of the lock file may be in this process.
        owned.withLock { $0.take() }?.giveUp()
        let descriptor = lockDescriptor.exchange(-1, ordering: .acquiringAndReleasing)
        guard descriptor >= 0 else { return }
        // Unlocked after the directory is gone, so that no sweep comes between.
        if let privateDirectory { try? FileManager.default.removeItem(atPath: privateDirectory) }
        // Unlocked explicitly, because a child process that is just being started has a copy of the descriptor, and
        // with it the lock.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// The bytes of the database and its WAL on disk.
    var sizeBytes: Int {
        Self.bytes(path) + Self.bytes(path + "-wal")
    }

    static func bytes(_ file: String) -> Int {
        var status = stat()
        return stat(file, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Returns whether this process has that access to a file or folder; if not, `errno` has the reason.
    static func permits(_ path: String, _ access: Int32) -> Bool {
        faccessat(AT_FDCWD, path, access, AT_EACCESS) == 0
    }

    private static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
    }

    static func folder(of path: String) -> String { URL(fileURLWithPath: path).deletingLastPathComponent().path }

    /// Returns one canonical path per file, however it was written. Two names would make two locks.
    private static func resolved(_ path: String) -> String {
        let whole = URL(fileURLWithPath: path).standardizedFileURL
        if let known = realpath(whole.path, nil) {
            defer { free(known) }
            return String(cString: known)
        }
        let directory = folder(of: whole.path)
        guard let known = realpath(directory, nil) else { return whole.path }
        defer { free(known) }
        return String(cString: known) + "/" + whole.lastPathComponent
    }

    private static func lock(_ lockPath: String, database: String) throws(DatabaseError) -> Int32 {
        let descriptor = try openLock(lockPath, database: database)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let isLocked = errno == EWOULDBLOCK
            let reason = lastSystemError()
            defer { close(descriptor) }
            guard isLocked else { throw DatabaseError(.ioError, "cannot lock \(lockPath): \(reason)") }
            throw DatabaseError(
                .locked, "\(database) is in use by process \(owner(of: descriptor)): stop that process first")
        }
        let identity = Array("\(getpid())\n".utf8)
        // Only for the error message above; the lock is valid without it.
        _ = ftruncate(descriptor, 0)
        _ = pwrite(descriptor, identity, identity.count, 0)
        return descriptor
    }

    private static func owner(of descriptor: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        let digits = bytes.prefix(max(0, count)).prefix { (48...57).contains($0) }
        return digits.isEmpty ? "(unknown)" : String(decoding: digits, as: UTF8.self)
    }

    private static func fastDirectory() -> String {
        var status = statvfs()
        let shared = "/dev/shm"
        if statvfs(shared, &status) == 0, access(shared, W_OK) == 0,
            UInt64(status.f_bavail) * UInt64(status.f_frsize) >= freeBytesMin
        {
            return shared
        }
        return FileManager.default.temporaryDirectory.path
    }

    /// Removes the remains of killed processes: private directories whose lock is free.
    private static func sweep(_ parent: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
        for name in names where name.hasPrefix(privatePrefix) {
            let directory = parent + "/" + name
            // In a folder that everybody may write to, other users may place links or their own folders.
            var status = stat()
            guard lstat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid()
            else { continue }
            let descriptor = open(directory + "/" + lockName, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { continue }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
                try? FileManager.default.removeItem(atPath: directory)
            }
            close(descriptor)
        }
    }

    static func lastSystemError() -> String {
        String(cString: strerror(errno))
    }
}
