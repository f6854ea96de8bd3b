import Threads

/// An open database: reads on the calling thread, writes in groups on the store's own threads.
///
/// Reads never wait for a writer, nor writers for reads. A write is answered after the COMMIT that it belongs to is on
/// disk.
public final class Store: Sendable {
    public let url: DatabaseURL
    public let options: StoreOptions
    let backend: any StoreBackend

    init(_ url: DatabaseURL, options: StoreOptions, backend: any StoreBackend) {
        self.url = url
        self.options = options
        self.backend = backend
    }

    deinit {
        // Without `close` the waiting jobs are still done; the threads end by themselves.
        backend.closeQueues()
    }

    public var engine: DatabaseEngine { url.engine }

    // MARK: Reading

    /// Reads one state of the database, on the calling thread. What was answered as written is seen.
    ///
    /// The connection and its rows must not leave `body`. On SQLite it may block for a disk read, never for a writer;
    /// on PostgreSQL it waits for the network.
    ///
    /// - Parameters:
    ///   - isSingle: the body runs one statement; on PostgreSQL it then costs one round trip and no transaction around
    ///     it.
    ///   - isVital: on PostgreSQL a connection is reserved for such reads, so that they do not wait behind others.
    public func read<Value>(
        isSingle: Bool = false, isVital: Bool = false, _ body: (Connection) throws -> Value
    ) throws -> Value {
        try backend.read(isSingle: isSingle, isVital: isVital, body)
    }

    /// Runs one statement that reads, and gives its rows to `completion`: at once, on the calling thread, where the
    /// database is a file; later, on a thread of the store, where it is a server. Errors of `completion` are its own.
    ///
    /// - Parameter position: asked in the same transaction, of records of the service's own; see ``RowCursor/position``.
    /// - Throws: `StoreBusy` when too many wait; `completion` is not called then.
    public func query(
        _ sql: SQL, at position: SQL? = nil, as scope: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy) {
        try backend.query(sql.woven(), at: position, as: scope, completion: completion)
    }

    // MARK: Writing

    /// Queues work for the next group and returns at once.
    ///
    /// The body runs in a savepoint on a writer's thread: an error undoes its own changes only. On PostgreSQL it runs
    /// again when its group was undone for a reason that has passed (a lost connection, a deadlock): it must have no
    /// effects but those on the database. `completion` is called on the writer's thread when the changes are durable,
    /// or with the error; it must be quick, since the next group waits for it.
    ///
    /// - Parameter lane: work of one lane is done by one writer, in its order; for what would wait for each other.
    /// - Throws: `StoreBusy` when the queue is full; `completion` is not called then.
    public func write<Value: Sendable>(
        lane: Int = 0, _ body: @escaping @Sendable (Connection) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) throws(StoreBusy) {
        try queue(
            WriteJob(
                run: { connection in
                    let value = try body(connection)
                    return { outcome in completion(outcome.map { value }) }
                },
                fail: { completion(.failure($0)) }), lane: lane)
    }

    /// Queues an item of a batched write: like ``write(lane:_:completion:)``, but done together with other items.
    @inlinable
    public func write<Item: Sendable, Value: Sendable>(
        lane: Int = 0, _ item: Item, in batch: BatchedWrite<Item, Value>,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) throws(StoreBusy) {
        let share = BatchShare(item, of: batch, completion: completion)
        try queue(WriteJob(share: share, fail: { completion(.failure($0)) }), lane: lane)
    }

    @usableFromInline
    func queue(_ job: WriteJob, lane: Int) throws(StoreBusy) {
        if try backend.queue(lane: lane).append(job) { return }
        let error =
            options.access == .readOnly
            ? DatabaseError(.readOnly, "the store was opened for reading only")
            : DatabaseError(.unavailable, "the store is closed")
        job.fail(error)
    }

    /// Writes and waits without blocking a thread. Cancelling the task does not undo a write that is queued.
    @discardableResult
    public func write<Value: Sendable>(
        lane: Int = 0, _ body: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try write(lane: lane, body) { continuation.resume(with: $0) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Writes and blocks the calling thread until the changes are durable. For threads that may wait: not for a
    /// reactor, not for the cooperative pool, and never for a writer's own.
    @discardableResult
    public func writeAndWait<Value: Sendable>(
        lane: Int = 0, _ body: @escaping @Sendable (Connection) throws -> Value
    ) throws -> Value {
        precondition(!backend.isOnWriter, "the writer would wait for itself")
        let answer = Monitor<Result<Value, any Error>?>(nil)
        try write(lane: lane, body) { result in
            answer.withLock { $0 = result }
            answer.signal()
        }
        return try answer.wait { $0 }.get()
    }

    // MARK: Other replicas

    /// Calls `wake` with the payload whenever a committed transaction has notified the channel, on any replica, and
    /// with nil when notifications may have been missed. Returns what ends it; nil on SQLite, where nobody else
    /// writes.
    public func listen(
        to channel: String, _ wake: @escaping @Sendable (String?) -> Void
    ) -> (@Sendable () -> Void)? {
        backend.listen(to: channel, wake)
    }

    // MARK: Trouble

    /// What stands in the way: `.moved` files serve nothing any more; where a disk is `.full`, reads go on, and the last
    /// writes found no room. Nil if nothing does.
    public var trouble: DatabaseError? {
        if let trouble = backend.trouble { return trouble }
        return backend.queues.contains(where: \.isFull)
            ? DatabaseError(.full, "the disk, or what the database may take of it, is full") : nil
    }

    /// Finds out by a small write whether there is room again. Blocks.
    public func probe() throws {
        guard backend.hasRoom else { throw DatabaseError(.full, "the disk is full") }
        // Each of them writes, though it changes nothing. Every writer had its own last time.
        for lane in backend.queues.indices {
            try writeAndWait(lane: lane) {
                try $0.run($0.engine == .sqlite ? "PRAGMA user_version = 0" : "SELECT txid_current()")
            }
        }
    }

    // MARK: Upkeep

    /// Moves everything from SQLite's WAL into the database and empties it.
    public func checkpoint() throws { try backend.checkpoint() }

    /// What the engine's own check of its files finds wrong; empty for a sound database. Reads the whole SQLite file;
    /// a server looks after its files itself.
    public func integrityCheck() throws -> [String] { try backend.integrityCheck() }

    /// The bytes on disk, the WAL included; those of a server are as of the last time it was asked.
    public var sizeBytes: Int { backend.sizeBytes }

    public func metrics() -> StoreMetrics {
        backend.queues.dropFirst().reduce(backend.queues[0].snapshot()) { $0.adding($1.snapshot()) }
    }

    /// Does what is queued, then closes. Later writes fail with `.unavailable`. Blocks; may be called twice.
    public func close() {
        precondition(!backend.isOnWriter, "the writer would wait for itself")
        backend.close()
    }

    /// The path of an SQLite database; empty for a server.
    var path: String { backend.path }
}
