import CSQLite
import Foundation
import Synchronization
import Threads

extension DatabaseFile {
    /// Which file a path leads to, whatever it is called.
    struct Identity: Equatable {
        let device: UInt
        let number: UInt
    }

    /// The files that SQLite works with: the database, its write-ahead log, and the index of that.
    static func paths(_ path: String) -> [String] { [path, path + "-wal", path + "-shm"] }

    /// Notes which files these are, when they are open.
    func noteIdentities() {
        let found = Self.paths(path).map { (path: $0, identity: try? Self.identity(of: $0).get()) }
        identities.withLock { $0 = found }
    }

    /// Looks whether the paths still lead to the files that are open: if one was removed, moved, or replaced by another,
    /// what is written goes where nobody will find it, and a new connection would read something else. It is true for
    /// good then: nobody knows what was done to the files meanwhile.
    ///
    /// By the inodes, as SQLite's own `SQLITE_FCNTL_HAS_MOVED` does for the database alone. A look that fails for
    /// another reason says nothing.
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

    /// - Throws: `.moved`, if that was found.
    func requireInPlace() throws(DatabaseError) {
        if let trouble { throw trouble }
    }

    /// What was found by the last look.
    var trouble: DatabaseError? {
        guard hasMoved.load(ordering: .relaxed) else { return nil }
        return DatabaseError(
            .moved, "\(path), or a file beside it, was removed, moved or replaced: put it right, and start again")
    }

    /// Whether the disk, and what the process may make of a file, have room for more than a few pages.
    var hasRoom: Bool {
        let largest = Self.paths(path).map(Self.bytes).max() ?? 0
        guard csqlite_file_bytes_max() >= UInt64(largest) + Self.roomBytesMin else { return false }
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return true }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize) >= Self.roomBytesMin
    }

    /// Less, and the next transaction of some size fails again.
    private static let roomBytesMin: UInt64 = 1 << 20

    private struct SystemError: Error {
        let reason: Int32
    }

    private static func identity(of path: String) -> Result<Identity, SystemError> {
        var status = stat()
        guard stat(path, &status) == 0 else { return .failure(SystemError(reason: errno)) }
        return .success(Identity(device: UInt(status.st_dev), number: UInt(status.st_ino)))
    }
}
