import CSQLite
import Foundation
import Threads

extension DatabaseFile {
    /// The open database with its lock. The descriptor stays open as long as SQLite has the file open: closing any
    /// descriptor of a file drops all `fcntl` locks that the process has on it, SQLite's too.
    struct Owned {
        let descriptor: Int32
        let identity: Identity

        func giveUp() {
            DatabaseFile.ownedByThisProcess.withLock { _ = $0.remove(identity) }
            // A child process that is just starting has a copy of the descriptor, and with it the lock.
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
    }

    /// The files that this process owns. They must not be opened again, because closing a second descriptor would drop
    /// SQLite's locks.
    private static let ownedByThisProcess = Locked<Set<Identity>>([])

    /// Opens and locks the database. A missing file is created with access for this user only: SQLite gives the files
    /// beside the database the same mode, and would otherwise leave the mode to the umask.
    ///
    /// - Throws: `.locked` if another process has opened the same file under another name.
    static func own(_ path: String) throws(DatabaseError) -> Owned {
        for file in paths(path) where !permits(file, R_OK | W_OK) {
            guard errno == ENOENT else { throw refusal(of: file, because: errno) }
        }
        if case .success(let identity) = identity(of: path), ownedByThisProcess.withLock({ $0.contains(identity) }) {
            throw hardLinkError(path)
        }
        let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw refusal(of: path, because: errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            close(descriptor)
            guard reason == EWOULDBLOCK else { throw refusal(of: path, because: reason) }
            throw hardLinkError(path)
        }
        let identity = Identity(status)
        ownedByThisProcess.withLock { _ = $0.insert(identity) }
        return Owned(descriptor: descriptor, identity: identity)
    }

    private static func hardLinkError(_ path: String) -> DatabaseError {
        DatabaseError(
            .locked,
            "\(path) is in use by a process that opened it under another name (a hard link): stop that process first")
    }

    /// Refuses files that SQLite would open, but that the owner of the database cannot have made as its own: a hard link
    /// to another file, which SQLite would overwrite, or a pipe, for which it would wait.
    static func requirePlainFiles(_ path: String) throws(DatabaseError) {
        for file in paths(path) + [path + "-journal"] {
            var status = stat()
            guard lstat(file, &status) == 0, let fault = fault(of: status, isDatabase: file == path) else { continue }
            throw DatabaseError(.cannotOpen, "\(file) \(fault): remove it")
        }
    }

    /// Returns what keeps a file from being used. The database itself may have a second name, which its lock covers.
    private static func fault(of status: stat, isDatabase: Bool = false) -> String? {
        if status.st_mode & S_IFMT != S_IFREG { return "is not a regular file" }
        return status.st_nlink > 1 && !isDatabase ? "is a hard link to another file" : nil
    }

    /// Opens the lock file, and creates it if it is missing.
    ///
    /// - Throws: `.cannotOpen` for anything except a plain file of this user or of the database's owner. A user with
    ///   write access to the folder could place a link there, through which root would overwrite its own file.
    static func openLock(_ lockPath: String, database: String) throws(DatabaseError) -> Int32 {
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw refusal(of: lockPath, because: errno) }
        var status = stat()
        var fault: String?
        if fstat(descriptor, &status) != 0 {
            fault = "cannot be examined: \(lastSystemError())"
        } else if let found = Self.fault(of: status) {
            fault = found
        } else if !lockUsers(database).contains(status.st_uid) {
            fault = "belongs to uid \(status.st_uid), which does not own the database"
        }
        guard let fault else { return descriptor }
        close(descriptor)
        throw DatabaseError(.cannotOpen, "\(lockPath) \(fault): remove it")
    }

    private static func lockUsers(_ database: String) -> Set<uid_t> {
        var users: Set<uid_t> = [geteuid()]
        var status = stat()
        for place in [database, folder(of: database)] where lstat(place, &status) == 0 { users.insert(status.st_uid) }
        return users
    }

    /// Refuses to start beside a process that still uses removed files: their lock file no longer excludes another
    /// process.
    ///
    /// The check covers the processes that the system shows: this user's processes in the same container, or all of the
    /// container's for root.
    static func requireNoOwnerOfRemovedFiles(_ path: String) throws(DatabaseError) {
        let removed = path + ".lock (deleted)"
        var link = [CChar](repeating: 0, count: removed.utf8.count + 1)
        for process in processesWithLocks() {
            let descriptors = "/proc/\(process)/fd"
            for descriptor in (try? FileManager.default.contentsOfDirectory(atPath: descriptors)) ?? [] {
                let count = readlink("\(descriptors)/\(descriptor)", &link, link.count)
                guard count == removed.utf8.count,
                    link.prefix(count).map({ UInt8(bitPattern: $0) }).elementsEqual(removed.utf8),
                    // The copy in a child process that is just starting no longer holds a lock.
                    let details = FileManager.default.contents(atPath: "/proc/\(process)/fdinfo/\(descriptor)"),
                    String(decoding: details, as: UTF8.self).contains("FLOCK")
                else { continue }
                throw DatabaseError(
                    .locked,
                    """
                    the files of \(path) were removed, but process \(process) still has them open: stop that process first
                    """)
            }
        }
    }

    /// Returns the ids of processes that hold such a lock on any file, or of all processes if the system has no list of
    /// locks. Examining the files of all processes would take milliseconds.
    private static func processesWithLocks() -> Set<String> {
        guard let table = FileManager.default.contents(atPath: "/proc/locks") else {
            return Set((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).filter { Int($0) != nil }
        }
        // 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
        return Set(
            String(decoding: table, as: UTF8.self).split(separator: "\n").compactMap { line in
                let fields = line.split(separator: " ")
                return fields.count > 4 && fields[1] == "FLOCK" ? String(fields[4]) : nil
            })
    }

    // MARK: Root

    /// Runs work with the file access of the user that controls the path, if this process runs as root. Links in
    /// another user's folder must not lead root to files that the user may not change. Created files belong to that
    /// user.
    ///
    /// - Throws: `.cannotOpen` if root may not switch to the user; otherwise the errors of the work.
    static func asOwner<Value>(of path: String, _ work: () throws -> Value) throws -> Value {
        guard geteuid() == 0, let owner = controller(of: path) else { return try work() }
        var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
        let count = getgroups(Int32(groups.count), &groups)
        defer { _ = csqlite_use_files_as(geteuid(), getegid(), count, groups) }
        guard csqlite_use_files_as(owner.user, owner.group, 0, nil) == 0 else {
            throw DatabaseError(
                .cannotOpen,
                "\(path) belongs to uid \(owner.user), but this process cannot switch to that user: run it as that user"
            )
        }
        do {
            return try work()
        } catch let error as DatabaseError where [.cannotOpen, .readOnly, .ioError].contains(error.code) {
            throw DatabaseError(
                error.code,
                "\(error.detail) (accessed as uid \(owner.user), the owner of a part of that path)")
        }
    }

    /// Returns the first owner of a part of the path other than root. This user decides where the rest of the path
    /// leads. Nil if root owns the whole path.
    static func controller(of path: String) -> (user: uid_t, group: gid_t)? {
        let whole = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        var parts = whole.split(separator: "/").map(String.init)[...]
        var place: [String] = []
        var linksLeft = 40
        while let part = parts.popFirst() {
            guard part != "." else { continue }
            guard part != ".." else {
                _ = place.popLast()
                continue
            }
            let here = "/" + (place + [part]).joined(separator: "/")
            var status = stat()
            guard lstat(here, &status) == 0 else { return nil }
            if status.st_uid != 0 { return (status.st_uid, status.st_gid) }
            guard status.st_mode & S_IFMT == S_IFLNK else {
                place.append(part)
                continue
            }
            linksLeft -= 1
            guard linksLeft > 0, let target = try? FileManager.default.destinationOfSymbolicLink(atPath: here)
            else { return nil }
            if target.hasPrefix("/") { place = [] }
            parts = (target.split(separator: "/").map(String.init) + parts)[...]
        }
        return nil
    }
}
