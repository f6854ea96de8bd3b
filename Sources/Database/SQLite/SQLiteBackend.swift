import Foundation

/// A file of this process: readers on the calling threads, one writer.
final class SQLiteBackend: StoreBackend {
    let queues: [WriteQueue]
    private let options: StoreOptions
    private let file: DatabaseFile
    private let readers: ReaderPool
    /// Recognizes the writer's thread, to refuse a wait for itself; nil for a store that only reads. The thread
    /// keeps its `Thread` alive while it runs, so the identity is not used again.
    private let writerThread: ObjectIdentifier?

    init(_ url: DatabaseURL, options: StoreOptions) throws(DatabaseError) {
        self.options = options
        file = try DatabaseFile(url, access: options.access)
        readers = ReaderPool(path: file.path, options: options)
        let queue = WriteQueue(depthMax: options.queueDepthMax)
        queues = [queue]
        guard options.access != .readOnly else {
            // A damaged or foreign file shows now and not at the first request.
            let probe = try SQLiteConnection(path: file.path, role: .reader, options: options)
            try probe.runScript("SELECT count(*) FROM sqlite_schema")
            writerThread = nil
            queue.close()
            queue.noteFinished()
            return
        }
        let connection = try SQLiteConnection(path: file.path, role: .writer, options: options)
        try connection.runScript("SELECT count(*) FROM sqlite_schema")
        let moving = try SQLiteConnection(path: file.path, role: .checkpointer, options: options)
        writerThread = Self.start(
            connection: connection, moving: moving, readers: readers, queue: queue, file: file, options: options)
    }

    /// Starts the writer and the checkpointer, and gives them their connections for good: each is closed when its
    /// thread ends, the lock of the file after both.
    private static func start(
        connection: SQLiteConnection, moving: SQLiteConnection, readers: ReaderPool, queue: WriteQueue,
        file: DatabaseFile, options: StoreOptions
    ) -> ObjectIdentifier {
        let checkpointer = Checkpointer(readers: readers, queue: queue)
        let work = ThreadWork {
            SQLiteWriter(
                connection: connection, queue: queue, readers: readers, checkpointer: checkpointer, options: options
            ).run()
        }
        let upkeep = ThreadWork { checkpointer.run(moving) }
        ThreadWork.startThread("sqlite-checkpoint") {
            upkeep.run()
            checkpointer.noteFinished()
        }
        return ThreadWork.startThread("sqlite-writer") {
            work.run()
            file.release()
            queue.noteFinished()
        }
    }

    func read<Value>(isSingle: Bool, isVital: Bool, _ body: (Connection) throws -> Value) throws -> Value {
        let reader = try readers.take()
        do {
            let value = try body(reader.connection)
            readers.give(reader, isReusable: true)
            return value
        } catch {
            readers.give(reader, isReusable: false)
            throw error
        }
    }

    func query(
        _ woven: SQL.Woven, as scope: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy) {
        do {
            try read(isSingle: true, isVital: false) { db in
                completion(.success(RowCursor { body in _ = try db.perform(woven, body) }))
            }
        } catch {
            completion(.failure(error))
        }
    }

    var isOnWriter: Bool { ObjectIdentifier(Thread.current) == writerThread }

    /// One process owns the file: there is nobody to hear from.
    func listen(to channel: String, _ wake: @escaping @Sendable (String?) -> Void) -> (@Sendable () -> Void)? { nil }

    func checkpoint() throws {
        readers.releaseSnapshots()
        let connection = try SQLiteConnection(path: file.path, role: .checkpointer, options: options)
        _ = try connection.checkpoint(.truncate)
    }

    func integrityCheck() throws -> [String] {
        let found = try read(isSingle: true, isVital: false) {
            try $0.rows("PRAGMA quick_check(20)") { try $0.text(0) }
        }
        return found == ["ok"] ? [] : found
    }

    var sizeBytes: Int { file.sizeBytes }
    /// The path of the database file.
    var path: String { file.path }

    func schemaChanged() { readers.drop() }

    func close() {
        closeQueues()
        for queue in queues { queue.waitUntilFinished() }
        readers.close()
    }
}
