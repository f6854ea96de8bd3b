import Foundation

/// An open database: reads on the calling thread, writes in groups on one thread.
///
/// Reads never wait for the writer (WAL), nor the writer for reads. A write is answered after the COMMIT that holds
/// it is on disk.
public final class Store: Sendable {
    public let url: DatabaseURL
    public let options: StoreOptions
    private let file: DatabaseFile
    private let readers: ReaderPool
    private let queue: WriteQueue
    /// Recognizes the writer's thread, to refuse a wait for itself; nil for a store that only reads. The thread
    /// keeps its `Thread` alive while it runs, so the identity is not used again.
    private let writerThread: ObjectIdentifier?

    /// Opens the database, making it if need be.
    ///
    /// - Throws: `.locked` when another service owns it (the message names its process), `.corrupt`, `.readOnly`,
    ///   `.cannotOpen`.
    public static func open(_ url: DatabaseURL, options: StoreOptions = StoreOptions()) throws(DatabaseError) -> Store {
        try Store(url, options: options)
    }

    private init(_ url: DatabaseURL, options: StoreOptions) throws(DatabaseError) {
        self.url = url
        self.options = options
        file = try DatabaseFile(url, access: options.access)
        readers = ReaderPool(path: file.path, options: options)
        queue = WriteQueue(depthMax: options.queueDepthMax)
        guard options.access == .exclusive else {
            // A damaged or foreign file shows now and not at the first request.
            let probe = try Connection(path: file.path, role: .reader, options: options)
            try probe.runScript("SELECT count(*) FROM sqlite_schema")
            writerThread = nil
            queue.close()
            queue.noteFinished()
            return
        }
        let connection = try Connection(path: file.path, role: .writer, options: options)
        try connection.runScript("SELECT count(*) FROM sqlite_schema")
        let moving = try Connection(path: file.path, role: .checkpointer, options: options)
        writerThread = Self.start(
            connection: connection, moving: moving, readers: readers, queue: queue, file: file, options: options)
    }

    /// Starts the writer and the checkpointer, and gives them their connections for good: each is closed when its
    /// thread ends, the lock of the file after both.
    private static func start(
        connection: Connection, moving: Connection, readers: ReaderPool, queue: WriteQueue,
        file: DatabaseFile, options: StoreOptions
    ) -> ObjectIdentifier {
        let checkpointer = Checkpointer(readers: readers, queue: queue)
        let work = ThreadWork {
            Writer(
                connection: connection, queue: queue, readers: readers, checkpointer: checkpointer, options: options
            ).run()
        }
        let upkeep = ThreadWork { checkpointer.run(moving) }
        startThread("sqlite-checkpoint") {
            upkeep.run()
            checkpointer.noteFinished()
        }
        return startThread("sqlite-writer") {
            work.run()
            file.release()
            queue.noteFinished()
        }
    }

    @discardableResult
    private static func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> ObjectIdentifier {
        let thread = Thread(block: body)
        thread.name = name
        let identity = ObjectIdentifier(thread)
        thread.start()
        return identity
    }

    deinit {
        // Without `close` the waiting jobs are still done; the threads end by themselves.
        queue.close()
    }

    // MARK: Reading

    /// Reads one state of the database, on the calling thread. What was answered as written is seen.
    ///
    /// The connection and its rows must not leave `body`. May block for a disk read, never for a writer.
    public func read<Value>(_ body: (Connection) throws -> Value) throws -> Value {
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

    // MARK: Writing

    /// Queues work for the next group and returns at once.
    ///
    /// The body runs in a savepoint on the writer's thread: an error undoes its own changes only. `completion` is
    /// called on the writer's thread when the changes are durable, or with the error; it must be quick, since the
    /// next group waits for it.
    ///
    /// - Throws: `StoreBusy` when the queue is full; `completion` is not called then.
    public func write<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) throws(StoreBusy) {
        let job = WriteJob(
            run: { connection in
                let value = try body(connection)
                return { outcome in
                    switch outcome {
                    case .committed: completion(.success(value))
                    case .failed(let error): completion(.failure(error))
                    }
                }
            },
            fail: { completion(.failure($0)) })
        do {
            try queue.append(job)
        } catch {
            switch error {
            case .full(let busy): throw busy
            case .closed: completion(.failure(Self.closedError(options.access)))
            }
        }
    }

    /// Writes and waits without holding a thread. Cancelling the task does not undo a write that is queued.
    @discardableResult
    public func write<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try write(body) { continuation.resume(with: $0) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Writes and blocks the calling thread until the changes are durable. For threads that may wait: not for a
    /// reactor, not for the cooperative pool, and never for the writer's own.
    @discardableResult
    public func writeAndWait<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value
    ) throws -> Value {
        precondition(ObjectIdentifier(Thread.current) != writerThread, "the writer would wait for itself")
        let answer = BlockingAnswer<Value>()
        try write(body) { answer.set($0) }
        return try answer.wait().get()
    }

    /// Called on the writer's thread after each COMMIT and the actions of `Connection.afterCommit`, before anybody
    /// is answered. It must be quick.
    public var batchCommitted: (@Sendable () -> Void)? {
        get { queue.batchCommitted }
        set { queue.batchCommitted = newValue }
    }

    private static func closedError(_ access: StoreOptions.Access) -> DatabaseError {
        access == .readOnly
            ? DatabaseError(.readOnly, "the store was opened for reading only")
            : DatabaseError(.unavailable, "the store is closed")
    }

    // MARK: Upkeep

    /// Moves everything from the WAL into the database and empties it.
    public func checkpoint() throws {
        readers.releaseSnapshots()
        let connection = try Connection(path: file.path, role: .checkpointer, options: options)
        _ = try connection.checkpoint(.truncate)
    }

    /// What `PRAGMA quick_check` finds wrong; empty for a sound database. Reads the whole file.
    public func integrityCheck() throws -> [String] {
        let found = try read { try $0.rows("PRAGMA quick_check(20)") { try $0.text(0) } }
        return found == ["ok"] ? [] : found
    }

    /// The bytes on disk, the WAL included.
    public var sizeBytes: Int { file.sizeBytes }

    /// The path of the database file.
    public var path: String { file.path }

    public func metrics() -> StoreMetrics { queue.snapshot() }

    /// Does what is queued, then closes. Later writes fail with `.unavailable`. Blocks; may be called twice.
    public func close() {
        precondition(ObjectIdentifier(Thread.current) != writerThread, "the writer would wait for itself")
        queue.close()
        queue.waitUntilFinished()
        readers.close()
    }

    func dropReaders() { readers.drop() }
}

/// Work that is handed to a thread together with what belongs to that thread alone, and let go at its end.
///
/// `@unchecked Sendable`: made before the thread starts, which is then the only one to call `run`, once.
private final class ThreadWork: @unchecked Sendable {
    private var body: (() -> Void)?

    init(_ body: @escaping () -> Void) {
        self.body = body
    }

    func run() {
        let work = body
        body = nil
        work?()
    }
}

/// A result that one thread sets and another waits for.
///
/// `@unchecked Sendable`: `result` is only touched while `condition` is locked.
private final class BlockingAnswer<Value: Sendable>: @unchecked Sendable {
    /// Guards `result`.
    private let condition = NSCondition()
    private var result: Result<Value, any Error>?

    func set(_ result: Result<Value, any Error>) {
        condition.lock()
        defer { condition.unlock() }
        self.result = result
        condition.signal()
    }

    func wait() -> Result<Value, any Error> {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let result { return result }
            condition.wait()
        }
    }
}
