import CSQLite
import Foundation

extension SQLiteConnection {
    /// Copies a snapshot of the database into a new file, while other connections continue to write.
    ///
    /// It copies in one step: one read transaction. With several steps, SQLite would start over whenever another
    /// process has written.
    ///
    /// - Throws: `.cannotOpen` if the path already exists.
    func copy(to path: String) throws(DatabaseError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw DatabaseError(.cannotOpen, "cannot make \(path): \(DatabaseFile.lastSystemError())")
        }
        close(descriptor)
        var target: OpaquePointer?
        defer { sqlite3_close_v2(target) }
        guard sqlite3_open_v2(path, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, nil) == SQLITE_OK,
            let target, let copying = sqlite3_backup_init(target, "main", database, "main")
        else {
            throw target.map { DatabaseError.last(of: $0) } ?? DatabaseError(.outOfMemory, "no memory for a connection")
        }
        let result = sqlite3_backup_step(copying, -1)
        let end = sqlite3_backup_finish(copying)
        guard result == SQLITE_DONE, end == SQLITE_OK else {
            let error = DatabaseError.last(of: target)
            throw DatabaseError(error.code, "cannot copy to \(path): \(error.detail)")
        }
    }
}

extension Store {
    /// Copies an SQLite database to a new file, while a service writes to it.
    ///
    /// - Parameter prepare: Changes the copy, before it gets its final name.
    public static func copy(
        _ url: DatabaseURL, to path: String, prepare: (Store) throws -> Void
    ) throws {
        var options = StoreOptions()
        options.access = .readOnly
        let source = try DatabaseFile(url, access: .readOnly)
        let folder = DatabaseFile.folder(of: path)
        guard !FileManager.default.fileExists(atPath: path) else {
            throw DatabaseError(.cannotOpen, "there is a file \(path) already")
        }
        let unfinished = "\(path).unfinished-\(getpid())"
        defer { for end in ["", "-wal", "-shm", ".lock"] { unlink(unfinished + end) } }
        try SQLiteConnection(source, role: .reader, options: options).copy(to: unfinished)
        let made = try Store.open(DatabaseURL(file: unfinished))
        do {
            try prepare(made)
            made.close()
        } catch {
            made.close()
            throw error
        }
        // Fails if another process has created the file meanwhile.
        guard link(unfinished, path) == 0 else {
            throw DatabaseError(.ioError, "cannot make \(path): \(DatabaseFile.lastSystemError())")
        }
        try DatabaseFile.synchronize(folder)
    }

    /// Replaces an SQLite database, which no service has open, with a copy. At every moment, one of the two is there as
    /// a whole.
    ///
    /// - Returns: The new path of the old database, if there was one.
    public static func replace(
        _ url: DatabaseURL, by path: String, keepingAs suffix: String, prepare: (Store) throws -> Void
    ) throws -> String? {
        let owner = DatabaseFile.owner(of: url)
        let file = try DatabaseFile(url, access: .exclusive)
        defer { file.release() }
        let made = file.path + ".restored"
        unlink(made)
        defer { unlink(made) }
        try copy(DatabaseURL(file: path), to: made, prepare: prepare)
        let kept = DatabaseFile.bytes(file.path) == 0 ? nil : file.path + suffix
        if let kept {
            file.setAside(as: kept)
            guard link(file.path, kept) == 0 else {
                throw DatabaseError(.ioError, "cannot make \(kept): \(DatabaseFile.lastSystemError())")
            }
        }
        // If an administrator runs this, the file must stay readable to the service.
        if let owner { for path in [made, file.path + ".lock"] { chown(path, owner.user, owner.group) } }
        guard rename(made, file.path) == 0 else {
            throw DatabaseError(.ioError, "cannot replace \(file.path): \(DatabaseFile.lastSystemError())")
        }
        try DatabaseFile.synchronize(DatabaseFile.folder(of: file.path))
        return kept
    }
}

extension DatabaseFile {
    /// Removes the write-ahead log from beside the database. SQLite would otherwise apply it to the next file of that
    /// name. A database that is too damaged to be opened keeps its log beside it, under the new name.
    fileprivate func setAside(as kept: String) {
        if let connection = try? SQLiteConnection(self, role: .writer, options: StoreOptions()) {
            _ = try? connection.checkpoint(.truncate)
        }
        for end in ["-wal", "-shm"] { rename(path + end, kept + end) }
    }

    /// Returns the owner of the database, or of its folder if there is no database yet.
    fileprivate static func owner(of url: DatabaseURL) -> (user: uid_t, group: gid_t)? {
        guard case .file(let path) = url.location else { return nil }
        var status = stat()
        guard stat(path, &status) == 0 || stat(folder(of: path), &status) == 0 else { return nil }
        return (status.st_uid, status.st_gid)
    }

    /// Syncs a folder. The name of a file is durable only when its folder is.
    fileprivate static func synchronize(_ folder: String) throws(DatabaseError) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if descriptor >= 0 { close(descriptor) } }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw DatabaseError(.ioError, "cannot synchronize \(folder): \(lastSystemError())")
        }
    }
}
