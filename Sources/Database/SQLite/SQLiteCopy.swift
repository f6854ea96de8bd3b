import CSQLite
import Foundation

extension SQLiteConnection {
    /// Copies the database as it stands at one moment into a new file, while others write on.
    ///
    /// In one step: one read transaction. In several, SQLite would begin again whenever another process has written.
    ///
    /// - Throws: `.cannotOpen` where something is at that path already.
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
    /// Copies an SQLite database to a new file, beside the service that writes it.
    ///
    /// - Parameter prepare: changes the copy; only then has it its name.
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
        // Fails where somebody else has made the file meanwhile.
        guard link(unfinished, path) == 0 else {
            throw DatabaseError(.ioError, "cannot make \(path): \(DatabaseFile.lastSystemError())")
        }
        try DatabaseFile.synchronize(folder)
    }

    /// Puts a copy in the place of an SQLite database that no service has open. At every moment of it, one of the two is
    /// there, whole.
    ///
    /// - Returns: where the database that was there is now; nil if there was none.
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
        // Done by an administrator, it must stay readable to the service.
        if let owner { for path in [made, file.path + ".lock"] { chown(path, owner.user, owner.group) } }
        guard rename(made, file.path) == 0 else {
            throw DatabaseError(.ioError, "cannot replace \(file.path): \(DatabaseFile.lastSystemError())")
        }
        try DatabaseFile.synchronize(DatabaseFile.folder(of: file.path))
        return kept
    }
}

extension DatabaseFile {
    /// Leaves no write-ahead log beside the database: SQLite would read it into whatever has that name next. What is too
    /// damaged to be opened keeps its log beside it under the other name.
    fileprivate func setAside(as kept: String) {
        if let connection = try? SQLiteConnection(self, role: .writer, options: StoreOptions()) {
            _ = try? connection.checkpoint(.truncate)
        }
        for end in ["-wal", "-shm"] { rename(path + end, kept + end) }
    }

    /// Whose the database is, or would be: that of its folder.
    fileprivate static func owner(of url: DatabaseURL) -> (user: uid_t, group: gid_t)? {
        guard case .file(let path) = url.location else { return nil }
        var status = stat()
        guard stat(path, &status) == 0 || stat(folder(of: path), &status) == 0 else { return nil }
        return (status.st_uid, status.st_gid)
    }

    /// A file's name is durable when its folder is.
    fileprivate static func synchronize(_ folder: String) throws(DatabaseError) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if descriptor >= 0 { close(descriptor) } }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw DatabaseError(.ioError, "cannot synchronize \(folder): \(lastSystemError())")
        }
    }
}
