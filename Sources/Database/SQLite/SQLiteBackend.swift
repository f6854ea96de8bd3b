import Threads

/// An SQLite file owned by this process: readers on the calling threads, and one writer.
final class SQLiteBackend: StoreBackend {
    let queue: WriteQueue
    private let options: StoreOptions
    private let file: DatabaseFile
    private let readers: ReaderPool
    /// Not started for a read-only store.
    private let writer = LoopThread("sqlite-writer")

    init(_ url: DatabaseURL, options: StoreOptions) throws(DatabaseError) {
        self.options = options
        file = try DatabaseFile(url, access: options.access)
        readers = ReaderPool(file, options: options)
        queue = WriteQueue(depthMax: options.queueDepthMax)
        guard options.access != .readOnly else {
            // Detects a damaged or foreign file now, and not at the first request.
            let probe = try SQLiteConnection(file, role: .reader, options: options)
            try probe.runScript("SELECT count(*) FROM sqlite_schema")
            queue.close()
            return
        }
        let connection = try SQLiteConnection(file, role: .writer, options: options)
        try connection.runScript("SELECT count(*) FROM sqlite_schema")
        let moving = try SQLiteConnection(file, role: .checkpointer, options: options)
        file.noteIdentities()
        start(connection, moving)
    }

    /// Starts the writer and the checkpointer, and hands them their connections for good. Each connection is closed
    /// when its thread ends; the file lock is released after both.
    private func start(_ connection: sending SQLiteConnection, _ moving: sending SQLiteConnection) {
        let queue = queue
        let checkpointer = Checkpointer()
        checkpointer.start(moving, readers: readers, queue: queue)
        let watch = LoopThread("sqlite-watch")
        watch.start { [watch, file] in
            while watch.wait(atMost: Self.checkPause) { file.isMoved() }
        }
        // Taken out by the thread, so that the connection is closed with the writer and not with the captured
        // variables.
        var owned: SQLiteConnection? = connection
        writer.start { [readers, file, options] in
            if let connection = owned.take() {
                var writer = SQLiteWriter(
                    connection: DrivenConnection(connection), file: file, queue: queue, readers: readers,
                    checkpointer: checkpointer, options: options, schedule: CheckpointSchedule(options))
                writer.run()
            }
            watch.stop()
            file.release()
        }
    }

    /// Moved files are noticed within a second.
    private static let checkPause: Duration = .milliseconds(500)

    var trouble: DatabaseError? { file.trouble }
    var hasRoom: Bool { file.hasRoom }

    func read<Value>(isSingle _: Bool, isVital _: Bool, _ body: (DatabaseConnection) throws -> Value) throws -> Value {
        try read { try body($0.db) }
    }

    private func read<Value>(_ body: (DrivenConnection<SQLiteConnection>) throws -> Value) throws -> Value {
        let reader = try readers.take()
        var isReusable = false
        defer { readers.give(reader, isReusable: isReusable) }
        let value = try body(reader)
        isReusable = true
        return value
    }

    func query(
        _ woven: SQL.Woven, with records: SQL?, as _: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy) {
        do {
            try read { reader in
                let found = try records.map { try reader.db.records($0) } ?? []
                completion(.success(RowCursor(records: found) { body in _ = try reader.driver.perform(woven, body) }))
            }
        } catch {
            completion(.failure(error))
        }
    }

    var isOnWriter: Bool { writer.isCurrent }

    /// Returns nil, because one process owns the file and no other process writes.
    func listen(to _: String, _: @escaping @Sendable (ChannelSignal) -> Void) -> (@Sendable () -> Void)? { nil }

    func rewrite() throws {
        // The copy, and the same pages in the write-ahead log. Without this check, other writes would find the disk
        // full before the copy fails.
        let needed = 2 * UInt64(DatabaseFile.bytes(path))
        guard file.hasRoom(forBytes: needed) else {
            throw DatabaseError(.full, "\(needed >> 20) MiB of room are needed for two copies of the file")
        }
        readers.releaseSnapshots()
        let connection = try SQLiteConnection(file, role: .checkpointer, options: options)
        // The copy is as large as the file: too large for memory, and for many directories of temporary files.
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let quoted = "'" + directory.replacing("'", with: "''") + "'"
        try connection.runScript("PRAGMA temp_store_directory = \(quoted); PRAGMA temp_store = FILE; VACUUM")
    }

    func checkpoint() throws {
        readers.releaseSnapshots()
        var options = options
        // Truncation keeps writers waiting while a read still uses the WAL.
        options.busyTimeout = .milliseconds(200)
        let connection = try SQLiteConnection(file, role: .checkpointer, options: options)
        _ = try connection.checkpoint(.passive)
        _ = try connection.checkpoint(.truncate)
    }

    func integrityCheck() throws -> [String] {
        let found = try read(isSingle: true, isVital: false) {
            try $0.rows("PRAGMA quick_check(20)") { try $0.text(0) }
        }
        return found == ["ok"] ? [] : found
    }

    var sizeBytes: Int { file.sizeBytes }
    var path: String { file.path }

    func schemaChanged() { readers.drop() }
    func prepareMigrations(in _: DatabaseConnection) throws {}
    func finishMigrations(of _: [Table], in _: DatabaseConnection) throws {}

    func close() {
        queue.close()
        writer.join()
        readers.close()
    }
}
