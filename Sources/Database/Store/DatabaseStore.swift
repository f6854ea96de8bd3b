import Threads

/// An open database. It reads on the calling thread, and writes in groups on the store's own threads.
///
/// Reads never wait for a writer, nor writers for reads. A write is answered after its COMMIT is on disk.
public final class DatabaseStore: Sendable {
    public let url: DatabaseURL
    public let options: StoreOptions
    let backend: any StoreBackend

    init(_ url: DatabaseURL, options: StoreOptions, backend: any StoreBackend) {
        self.url = url
        self.options = options
        self.backend = backend
    }

    deinit {
        // Without `close`, the waiting jobs are still done; the threads end by themselves.
        backend.queue.close()
    }

    public var engine: DatabaseEngine { url.engine }

    // MARK: Reading

    /// Reads one snapshot of the database, on the calling thread. It sees every write that was acknowledged before.
    ///
    /// The connection and its rows must not leave `body`. On SQLite it may block for a disk read, never for a writer.
    /// On PostgreSQL it waits for the network.
    ///
    /// - Parameters:
    ///   - isSingle: Whether the body runs one statement. On PostgreSQL it then costs one round trip, without a
    ///     transaction around it.
    ///   - isVital: On PostgreSQL a connection is reserved for such reads, so that they do not wait behind others.
    public func read<Value>(
        isSingle: Bool = false, isVital: Bool = false, _ body: (DatabaseConnection) throws -> Value
    ) throws -> Value {
        try backend.read(isSingle: isSingle, isVital: isVital, body)
    }

    /// Runs one reading statement, and passes its rows to `completion`. For a file, this happens at once on the calling
    /// thread; for a server, later on a thread of the store. `completion` handles its own errors.
    ///
    /// - Parameter records: A query for the service's own records in the same snapshot; see ``RowCursor/records``. Its
    ///   result may be that of another caller's query with the same text and other values.
    /// - Throws: `StoreBusy` if too many queries wait. Then `completion` is not called.
    public func query(
        _ sql: SQL, with records: SQL? = nil, as scope: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy) {
        try backend.query(sql.woven(), with: records, as: scope, completion: completion)
    }

    // MARK: Writing

    /// Queues work for the next group and returns at once.
    ///
    /// The body runs in a savepoint on a writer's thread: an error undoes only its own changes. On PostgreSQL it runs
    /// again if its group was rolled back for a temporary reason (a lost connection, a deadlock), so its only effects
    /// must be on the database. `completion` is called on the writer's thread when the changes are durable, or with the
    /// error. It must be quick, because the next group waits for it.
    ///
    /// - Throws: `StoreBusy` if the queue is full. Then `completion` is not called.
    public func write<Value: Sendable>(
        lane: WriteLane = .service, _ body: @escaping @Sendable (DatabaseConnection) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) throws(StoreBusy) {
        try queue(
            WriteJob(
                lane: lane,
                run: { connection in
                    let value = try body(connection)
                    return { outcome in completion(outcome.map { value }) }
                },
                fail: { completion(.failure($0)) }))
    }

    /// Queues an item of a batched write. It works like ``write(lane:_:completion:)``, but many items are written
    /// together.
    @inlinable
    public func write<Item: Sendable, Value: Sendable>(
        lane: WriteLane = .service, _ item: Item, in batch: BatchedWrite<Item, Value>,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) throws(StoreBusy) {
        let share = BatchShare(item, of: batch, completion: completion)
        try queue(WriteJob(lane: lane, share: share, fail: { completion(.failure($0)) }))
    }

    @usableFromInline
    func queue(_ job: WriteJob) throws(StoreBusy) {
        if try backend.queue.append(job) { return }
        let error =
            options.access == .readOnly
            ? DatabaseError(.readOnly, "the store is open read-only")
            : DatabaseError(.unavailable, "the store is closed")
        job.fail(error)
    }

    /// Writes and waits without blocking a thread. Cancelling the task does not undo a queued write.
    @discardableResult
    public func write<Value: Sendable>(
        lane: WriteLane = .service, _ body: @escaping @Sendable (DatabaseConnection) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try write(lane: lane, body) { continuation.resume(with: $0) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Writes, and blocks the calling thread until the changes are durable. It must not be called on a reactor, on the
    /// cooperative pool, or on a writer's own thread.
    @discardableResult
    public func writeAndWait<Value: Sendable>(
        lane: WriteLane = .service, _ body: @escaping @Sendable (DatabaseConnection) throws -> Value
    ) throws -> Value {
        precondition(!backend.isOnWriter, "the writer must not wait for itself")
        let answer = Locked<Result<Value, any Error>?>(nil)
        try write(lane: lane, body) { result in
            answer.withLock { $0 = result }
            answer.signal()
        }
        return try answer.wait { $0 }.get()
    }

    // MARK: Other replicas

    /// Calls `receive` whenever a committed transaction has notified the channel, on any replica, and when listening begins
    /// or ends. Returns a function that ends this; nil on SQLite, where no other process writes.
    public func listen(
        to channel: String, _ receive: @escaping @Sendable (ChannelSignal) -> Void
    ) -> (@Sendable () -> Void)? {
        backend.listen(to: channel, receive)
    }

    // MARK: Trouble

    /// The problem that blocks the store, if any. After `.moved` the files serve nothing any more. With `.full`, reads
    /// continue, and the last writes found no room. With `.unavailable`, several groups of writes have failed in a row.
    public var trouble: DatabaseError? {
        if let trouble = backend.trouble { return trouble }
        if backend.queue.isFull {
            return DatabaseError(.full, "the disk is full, or the database has reached its size limit")
        }
        return backend.queue.isBlocked
            ? DatabaseError(.unavailable, "the database accepts none of them") : nil
    }

    /// Whether the last group of writes failed, or no job of it could be done. A trial shows whether the store is
    /// blocked.
    public var isInDoubt: Bool { backend.queue.isInDoubt }

    /// Records that a trial failed: the store counts as blocked until a write succeeds.
    public func noteFailedTrial() { backend.queue.noteFailedTrial() }

    /// Checks with a small write whether there is room again. Blocks.
    public func probe() throws {
        guard backend.hasRoom else { throw DatabaseError(.full, "the disk is full") }
        // It writes, though it changes nothing.
        try writeAndWait { try $0.run($0.engine == .sqlite ? "PRAGMA user_version = 0" : "SELECT txid_current()") }
    }

    // MARK: Upkeep

    /// Rewrites an SQLite file without the bytes that deleted rows have left between the rows of a page. Writes wait
    /// meanwhile, and the disk needs room for two copies. Must be followed by ``checkpoint()``. It does nothing on a
    /// server.
    public func rewrite() throws {
        precondition(!backend.isOnWriter, "the writer must not wait for itself")
        let outcome = Locked<Result<Void, any Error>?>(nil)
        // Completions run on the writer's thread, between two transactions.
        try write({ _ in }) { [backend] result in
            outcome.withLock { $0 = result.flatMap { Result(catching: backend.rewrite) } }
            outcome.signal()
        }
        try outcome.wait { $0 }.get()
    }

    /// Moves all pages from SQLite's WAL into the database and truncates the WAL.
    ///
    /// - Throws: `.busy` while a read still uses the WAL.
    public func checkpoint() throws { try backend.checkpoint() }

    /// Returns the problems that the engine's own file check finds; empty for a sound database. It reads the whole
    /// SQLite file. A server checks its files itself.
    public func integrityCheck() throws -> [String] { try backend.integrityCheck() }

    /// The bytes on disk, including the WAL. For a server it is the last known value.
    public var sizeBytes: Int { backend.sizeBytes }

    public func metrics() -> StoreMetrics { backend.queue.snapshot() }

    /// Does the queued work, then closes. Later writes fail with `.unavailable`. Blocks; may be called twice.
    public func close() {
        precondition(!backend.isOnWriter, "the writer must not wait for itself")
        backend.close()
    }

    /// The path of an SQLite database; empty for a server.
    var path: String { backend.path }
}

/// What a listener learns about its channel.
public enum ChannelSignal: Sendable, Equatable {
    /// Notifications arrive from now on. Earlier ones were missed.
    case began
    /// The server is out of reach. Notifications are missed until listening begins again.
    case ended
    /// A committed transaction has notified the channel.
    case notified(String)
}
