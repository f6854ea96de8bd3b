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
            throw DatabaseError(.cannotOpen, "cannot create \(path): \(DatabaseFile.lastSystemError())")
        }
        close(descriptor)
        var target: OpaquePointer?
        defer { sqlite3_close_v2(target) }
        guard sqlite3_open_v2(path, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, nil) == SQLITE_OK,
            let target, let copying = sqlite3_backup_init(target, "main", database, "main")
        else {
            throw target.map { DatabaseError.last(of: $0) }
                ?? DatabaseError(.outOfMemory, "out of memory for a connection")
        }
        let result = sqlite3_backup_step(copying, -1)
        let end = sqlite3_backup_finish(copying)
        guard result == SQLITE_DONE, end == SQLITE_OK else {
            let error = DatabaseError.last(of: target)
            throw DatabaseError(error.code, "cannot copy to \(path): \(error.detail)")
        }
    }
}

extension DatabaseStore {
    /// Runs work that may create the files of an SQLite database. If root runs it, the files belong to the owner of
    /// their folder.
    public static func asOwner<Value>(of url: DatabaseURL, _ work: () throws -> Value) throws -> Value {
        guard case .file(let path) = url.location else { return try work() }
        return try DatabaseFile.asOwner(of: path, work)
    }

    /// Copies an SQLite database to a new file while the service writes to the database. Root reads and writes with the
    /// rights of the users that control the two paths (``DatabaseFile/controller(of:)``).
    ///
    /// - Parameter prepare: Changes the copy, before it gets its final name.
    public static func copy(
        _ url: DatabaseURL, to path: String, prepare: (DatabaseStore) throws -> Void
    ) throws {
        let source = try openSource(url)
        try DatabaseFile.asOwner(of: path) { try copy(source, to: path, prepare: prepare) }
    }

    /// Opens a database to be copied, and reads once, which also opens the files beside it. Its user could place links
    /// beside it, through which SQLite would give root's files away.
    private static func openSource(_ url: DatabaseURL) throws -> SQLiteConnection {
        var options = StoreOptions()
        options.access = .readOnly
        return try asOwner(of: url) { [options] in
            let source = try SQLiteConnection(DatabaseFile(url, access: .readOnly), role: .reader, options: options)
            try source.runScript("SELECT count(*) FROM sqlite_schema")
            return source
        }
    }

    private static func copy(
        _ source: SQLiteConnection, to path: String, prepare: (DatabaseStore) throws -> Void
    ) throws {
        let folder = DatabaseFile.folder(of: path)
        guard !FileManager.default.fileExists(atPath: path) else {
            throw DatabaseError(.cannotOpen, "the file \(path) already exists")
        }
        let unfinished = path + DatabaseFile.unfinishedMark + "\(getpid())"
        defer { for end in ["", "-wal", "-shm", ".lock"] { unlink(unfinished + end) } }
        try source.copy(to: unfinished)
        let made = try DatabaseStore.open(DatabaseURL(file: unfinished))
        do {
            try prepare(made)
            made.close()
        } catch {
            made.close()
            throw error
        }
        // Fails if another process has created the file meanwhile.
        guard link(unfinished, path) == 0 else {
            throw DatabaseError(.ioError, "cannot create \(path): \(DatabaseFile.lastSystemError())")
        }
        try DatabaseFile.synchronize(folder)
    }

    /// Replaces an SQLite database that no service has open by a copy. At every moment, one of the two is complete and
    /// in place. Root reads the copy with the rights of the user that controls its path, and uses the rights of the
    /// database's owner for all other steps.
    ///
    /// - Returns: The new path of the old database, if there was one.
    public static func replace(
        _ url: DatabaseURL, by path: String, keepingAs suffix: String, prepare: (DatabaseStore) throws -> Void
    ) throws -> String? {
        let source = try openSource(DatabaseURL(file: path))
        guard case .file(let target) = url.location else { throw DatabaseError(.url, "\(url) does not name a file") }
        if case .success(let copy) = DatabaseFile.identity(of: path),
            case .success(copy) = DatabaseFile.identity(of: target)
        {
            throw DatabaseError(.cannotOpen, "\(path) is the database itself: name a backup")
        }
        return try DatabaseFile.asOwner(of: target) {
            try replace(url, by: source, keepingAs: suffix, prepare: prepare)
        }
    }

    private static func replace(
        _ url: DatabaseURL, by source: SQLiteConnection, keepingAs suffix: String,
        prepare: (DatabaseStore) throws -> Void
    ) throws -> String? {
        let file = try DatabaseFile(url, access: .exclusive)
        defer { file.release() }
        let made = file.path + DatabaseFile.restoredSuffix
        defer { unlink(made) }
        try copy(source, to: made, prepare: prepare)
        let kept = DatabaseFile.bytes(file.path) == 0 ? nil : file.path + suffix
        if let kept {
            file.setAside(as: kept)
            guard link(file.path, kept) == 0 else {
                throw DatabaseError(.ioError, "cannot create \(kept): \(DatabaseFile.lastSystemError())")
            }
        }
        guard rename(made, file.path) == 0 else {
            throw DatabaseError(.ioError, "cannot replace \(file.path): \(DatabaseFile.lastSystemError())")
        }
        try DatabaseFile.synchronize(DatabaseFile.folder(of: file.path))
        return kept
    }
}

extension DatabaseFile {
    /// What the names of a copy add to the name of its file until it is complete: the copy that a restoration makes
    /// beside the database, and any copy while it is being written.
    fileprivate static let restoredSuffix = ".restored"
    fileprivate static let unfinishedMark = ".unfinished-"

    /// Removes what killed restorations have left beside a database. No other one can be running, because this process
    /// owns the database. The whole copies would keep persons that are erased later.
    static func removeUnfinishedRestores(of path: String) {
        let folder = folder(of: path)
        let copy = (path.split(separator: "/").last.map(String.init) ?? path) + restoredSuffix
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where name == copy || name.hasPrefix(copy + unfinishedMark) {
            unlink(folder + "/" + name)
        }
    }

    /// Removes the write-ahead log from beside the database. SQLite would otherwise apply it to the next file of that
    /// name. A database that is too damaged to be opened keeps its log beside it, under the new name.
    fileprivate func setAside(as kept: String) {
        if let connection = try? SQLiteConnection(self, role: .writer, options: StoreOptions()) {
            _ = try? connection.checkpoint(.truncate)
        }
        for end in ["-wal", "-shm"] { rename(path + end, kept + end) }
    }

    /// Flushes a folder to disk. Only then are the names of its files durable.
    fileprivate static func synchronize(_ folder: String) throws(DatabaseError) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if descriptor >= 0 { close(descriptor) } }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw DatabaseError(.ioError, "cannot synchronize \(folder): \(lastSystemError())")
        }
    }
}
