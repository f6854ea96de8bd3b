import CSQLite
import Foundation
import Synchronization
import Threads

extension DatabaseFile {
    /// The identity of a file, regardless of its name.
    struct Identity: Hashable {
        let device: UInt
        let number: UInt
    }

    /// Returns the files that SQLite uses: the database, its write-ahead log, and the index of the log.
    static func paths(_ path: String) -> [String] { [path, path + "-wal", path + "-shm"] }

    /// Records the identities of the open files.
    func noteIdentities() {
        let found = Self.paths(path).map { (path: $0, identity: try? Self.identity(of: $0).get()) }
        identities.withLock { $0 = found }
    }

    /// Checks whether the paths still lead to the open files. If one was removed, moved or replaced, new writes would
    /// be lost, and a new connection would read something else. The result then stays true for good, because the state
    /// of the files is unknown.
    ///
    /// It compares inodes, as SQLite's own `SQLITE_FCNTL_HAS_MOVED` does for the database alone. A check that fails for
    /// another reason has no effect.
    @discardableResult
    func isMoved() -> Bool {
        if hasMoved.load(ordering: .relaxed) { return true }
        for (path, known) in identities.withLock({ $0 }) {
            guard let known else { continue }
            switch Self.identity(of: path) {
            case .success(known): continue
            case .failure(let error) where error.reason != ENOENT && error.reason != ENOTDIR: continue
            case .success, .failure:
                hasMoved.store(true, ordering: .relaxed)
                return true
            }
        }
        return false
    }

    /// Checks that the files are in place.
    ///
    /// - Throws: `.moved` if an earlier check found otherwise.
    func requireInPlace() throws(DatabaseError) {
        if let trouble { throw trouble }
    }

    /// The result of the last check.
    var trouble: DatabaseError? {
        guard hasMoved.load(ordering: .relaxed) else { return nil }
        return DatabaseError(
            .moved, "\(path) or a file beside it was removed, moved or replaced: restore it, then restart the service")
    }

    /// Whether the disk and the file size limit of the process have room for more than a few pages.
    var hasRoom: Bool { hasRoom(forBytes: Self.roomBytesMin) }

    /// Whether the disk and the file size limit of the process have room for so many bytes more.
    func hasRoom(forBytes needed: UInt64) -> Bool {
        let largest = Self.paths(path).map(Self.bytes).max() ?? 0
        guard csqlite_file_bytes_max() >= UInt64(largest) + needed else { return false }
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return true }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize) >= needed
    }

    /// With less room, the next transaction of some size fails again.
    private static let roomBytesMin: UInt64 = 1 << 20

    struct SystemError: Error {
        let reason: Int32
    }

    static func identity(of path: String) -> Result<Identity, SystemError> {
        var status = stat()
        guard stat(path, &status) == 0 else { return .failure(SystemError(reason: errno)) }
        return .success(Identity(status))
    }
}

extension DatabaseFile.Identity {
    init(_ status: stat) { self.init(device: UInt(status.st_dev), number: UInt(status.st_ino)) }
}
