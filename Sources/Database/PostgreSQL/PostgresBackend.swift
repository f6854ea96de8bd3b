import Synchronization
import Threads

/// A PostgreSQL server: a bounded pool of connections that read on the calling threads, and some threads that write.
final class PostgresBackend: StoreBackend {
    let queues: [WriteQueue]
    private let address: String
    private let options: StoreOptions
    private let health = PostgresHealth()
    private let pool: PostgresPool
    /// For what must not wait behind requests.
    private let vital: PostgresPool
    private let queries: PostgresQueries
    /// Not started for a store that only reads.
    private let writers: [LoopThread]
    private let size = Atomic<Int>(0)

    /// - Throws: `.unavailable` when the server cannot be reached, `.role` when the login could pass by the policies.
    init(_ address: String, options: StoreOptions, vocabulary: ScopeVocabulary) throws(DatabaseError) {
        self.address = address
        self.options = options
        let health = health
        let connect: @Sendable () throws(DatabaseError) -> PostgresConnection = { () throws(DatabaseError) in
            try health.connect { () throws(DatabaseError) in
                try PostgresConnection(address, options: options, vocabulary: vocabulary)
            }
        }
        pool = PostgresPool(countMax: max(1, options.readersMax - options.queryConnections), connect: connect)
        vital = PostgresPool(countMax: 1, connect: connect)
        let (first, _) = try pool.take()
        try PostgresRole.check(first.link, access: options.access)
        pool.give(first)
        queries = PostgresQueries(
            threads: options.access == .exclusive ? options.queryConnections : 0, options: options,
            vocabulary: vocabulary
        ) { () throws(DatabaseError) in
            try health.connect { () throws(DatabaseError) in try PostgresLink(address, options: options) }
        }
        // A store that only reads has a queue that takes nothing.
        let count = options.access == .exclusive ? options.writers : 1
        queues = (0..<count).map { _ in WriteQueue(depthMax: max(1, options.queueDepthMax / count)) }
        writers = queues.map { _ in LoopThread("postgres-writer") }
        guard options.access != .readOnly else {
            closeQueues()
            return
        }
        let turn = CommitTurn()
        for (thread, queue) in zip(writers, queues) {
            thread.start { [pool, vital] in
                var writer = PostgresWriter(queue: queue, turn: turn, options: options) { () throws(DatabaseError) in
                    // Whatever made a writer's connection unusable may have happened to the readers', who would not
                    // notice a server that has become a standby.
                    pool.clear()
                    vital.clear()
                    return try connect()
                }
                writer.run()
            }
        }
    }

    // MARK: Reading

    func read<Value>(isSingle: Bool, isVital: Bool, _ body: (Connection) throws -> Value) throws -> Value {
        let pool = isVital ? vital : pool
        let (connection, wasIdle) = try pool.take()
        do {
            return try read(on: connection, of: pool, isSingle: isSingle, body)
        } catch {
            // The server may have closed a connection that nobody used; the first question finds out, and is asked
            // once more.
            let isLate = (error as? DatabaseError)?.cause == .interrupted
            guard wasIdle, !isLate, !connection.isUsable, connection.exchanges <= 1 else { throw error }
            pool.clear()
            return try read(on: try pool.take().0, of: pool, isSingle: isSingle, body)
        }
    }

    private func read<Value>(
        on connection: PostgresConnection, of pool: PostgresPool, isSingle: Bool, _ body: (Connection) throws -> Value
    ) throws -> Value {
        defer { pool.give(connection) }
        connection.begin(isSingle ? .single : .reading)
        do {
            let value = try body(connection)
            connection.end()
            return value
        } catch {
            connection.end(with: "ROLLBACK")
            throw error
        }
    }

    func query(
        _ woven: SQL.Woven, at position: SQL?, as scope: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy) {
        let position = position?.woven()
        let kind = woven.text.hashValue ^ (position?.text.hashValue ?? 0)
        try queries.append(
            .init(woven: woven, position: position, kind: kind, scope: scope, complete: completion))
    }

    var isOnWriter: Bool { writers.contains(where: \.isCurrent) }

    // MARK: Listening

    func listen(to channel: String, _ wake: @escaping @Sendable (String?) -> Void) -> (@Sendable () -> Void)? {
        var options = options
        // A direct connection, whatever stands before the others.
        options.isPooled = false
        let listener = PostgresListener(
            address: options.listenURL?.serverAddress ?? address, channel: channel, options: options, wake: wake
        ) { [weak self] bytes in self?.size.store(bytes, ordering: .relaxed) }
        let thread = LoopThread("postgres-listener")
        thread.start { [thread] in listener.run(on: thread) }
        // Does not wait for the thread, which may be in the middle of an attempt to connect.
        return { thread.requestStop() }
    }

    // MARK: Upkeep

    var trouble: DatabaseError? { nil }
    var hasRoom: Bool { true }
    var sizeBytes: Int { size.load(ordering: .relaxed) }
    func checkpoint() throws {}
    func integrityCheck() throws -> [String] { [] }
    var path: String { "" }
    func schemaChanged() { pool.clear() }

    func prepareMigrations(in connection: Connection) throws { try PostgresSchema.prepare(connection) }

    func finishMigrations(of tables: [Table], in connection: Connection) throws {
        try PostgresSchema.installPolicies(of: tables, connection)
    }

    func close() {
        closeQueues()
        for writer in writers { writer.join() }
        queries.close()
        pool.close()
        vital.close()
    }
}

extension DatabaseURL {
    fileprivate var serverAddress: String? {
        if case .server(let address) = location { address } else { nil }
    }
}

/// One connection of its own that receives what committed transactions notify.
private struct PostgresListener: Sendable {
    /// How often the thread looks whether it should stop, in milliseconds.
    private static let pause: Int32 = 250
    /// How often the server is asked for its size, in seconds; a look at every file of the database.
    private static let sizePauseSeconds = 60

    let address: String
    let channel: String
    let options: StoreOptions
    let wake: @Sendable (String?) -> Void
    /// Receives the bytes of the database.
    let measured: @Sendable (Int) -> Void

    func run(on thread: LoopThread) {
        while !thread.isStopping {
            do {
                let link = try PostgresLink(address, options: options)
                _ = try link.ask("LISTEN \(channel)")
                // Before this nobody listened.
                wake(nil)
                try listen(on: link, thread)
            } catch {
                // Whoever listens asks the server itself then, and reports what it answers.
                wake(nil)
                _ = thread.pause(for: .milliseconds(.random(in: 200...500)))
            }
        }
    }

    private func listen(on link: PostgresLink, _ thread: LoopThread) throws(DatabaseError) {
        var measuredAt = ContinuousClock.now - .seconds(Self.sizePauseSeconds)
        while !thread.isStopping {
            for payload in try link.notifications(within: Self.pause) { wake(payload) }
            if ContinuousClock.now - measuredAt >= .seconds(Self.sizePauseSeconds) {
                // A connection that is lost shows at the next look for notifications.
                let found = try? link.ask("SELECT pg_database_size(current_database())")
                if let text = found?.first?.first ?? nil, let bytes = Int(text) { measured(bytes) }
                measuredAt = ContinuousClock.now
            }
        }
    }
}
