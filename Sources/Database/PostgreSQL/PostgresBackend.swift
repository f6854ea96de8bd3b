import Threads

/// A PostgreSQL server, with a bounded pool of connections for reads on the calling threads, and several writing
/// threads.
final class PostgresBackend: StoreBackend {
    let queue: WriteQueue
    private let address: String
    private let options: StoreOptions
    private let health = PostgresHealth()
    private let pool: PostgresPool
    /// The connections for reads that must not wait behind requests.
    private let vital: PostgresPool
    private let queries: PostgresQueries
    /// Not started for a read-only store.
    private let writers: [LoopThread]
    private let listener: PostgresListener

    /// Connects to the server.
    ///
    /// - Throws: `.unavailable` if the server cannot be reached, `.role` if the login could bypass the policies.
    init(_ address: String, options: StoreOptions, vocabulary: ScopeVocabulary) throws(DatabaseError) {
        self.address = address
        self.options = options
        listener = PostgresListener(options.listenURL?.serverAddress ?? address, options: options)
        let health = health
        let connect = { @Sendable () throws(DatabaseError) in
            try health.connect { () throws(DatabaseError) in
                DrivenConnection(try PostgresConnection(address, options: options, vocabulary: vocabulary))
            }
        }
        pool = PostgresPool(countMax: max(1, options.readersMax - options.queryConnections), connect: connect)
        vital = PostgresPool(countMax: 1, connect: connect)
        let (first, _) = try pool.take()
        try PostgresRole.check(first.driver.link, access: options.access)
        pool.give(first)
        queries = PostgresQueries(
            threads: options.access == .exclusive ? options.queryConnections : 0, options: options,
            vocabulary: vocabulary
        ) { () throws(DatabaseError) in
            try health.connect { () throws(DatabaseError) in try PostgresLink(address, options: options) }
        }
        // A read-only store has a queue that accepts nothing.
        let count = options.access == .exclusive ? options.writers : 1
        queue = WriteQueue(depthMax: options.queueDepthMax, sharing: WriteSharing(writers: count))
        writers = (0..<count).map { _ in LoopThread("postgres-writer") }
        guard options.access != .readOnly else {
            queue.close()
            return
        }
        let turn = CommitTurn()
        for (number, thread) in writers.enumerated() {
            thread.start { [pool, vital, queue] in
                var writer = PostgresWriter(queue: queue, number: number, turn: turn, options: options) {
                    () throws(DatabaseError) in
                    // Whatever made a writer's connection unusable may also have happened to the readers' connections.
                    // They would not notice a server that has become a standby.
                    pool.clear()
                    vital.clear()
                    return try connect()
                }
                writer.run()
            }
        }
    }

    // MARK: Reading

    func read<Value>(isSingle: Bool, isVital: Bool, _ body: (DatabaseConnection) throws -> Value) throws -> Value {
        let pool = isVital ? vital : pool
        let (connection, wasIdle) = try pool.take()
        do {
            return try read(on: connection, of: pool, isSingle: isSingle, body)
        } catch {
            // The server may have closed an idle connection. The first query detects it, and is repeated once.
            let isLate = (error as? DatabaseError)?.cause == .interrupted
            guard wasIdle, !isLate, !connection.driver.isUsable, connection.driver.exchanges <= 1 else { throw error }
            pool.clear()
            return try read(on: try pool.take().0, of: pool, isSingle: isSingle, body)
        }
    }

    private func read<Value>(
        on connection: DrivenConnection<PostgresConnection>, of pool: PostgresPool, isSingle: Bool,
        _ body: (DatabaseConnection) throws -> Value
    ) throws -> Value {
        defer { pool.give(connection) }
        connection.driver.begin(isSingle ? .single : .reading)
        do {
            let value = try body(connection.db)
            connection.driver.end()
            return value
        } catch {
            connection.driver.end(with: "ROLLBACK")
            throw error
        }
    }

    func query(
        _ woven: SQL.Woven, with records: SQL?, as scope: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy) {
        let records = records?.woven()
        let kind = woven.text.hashValue ^ (records?.text.hashValue ?? 0)
        try queries.append(
            .init(woven: woven, records: records, kind: kind, scope: scope, complete: completion))
    }

    var isOnWriter: Bool { writers.contains(where: \.isCurrent) }

    // MARK: Listening

    func listen(to channel: String, _ receive: @escaping @Sendable (ChannelSignal) -> Void) -> (@Sendable () -> Void)? {
        listener.add(channel, receive)
    }

    // MARK: Upkeep

    var trouble: DatabaseError? { nil }
    var hasRoom: Bool { true }
    var sizeBytes: Int { listener.sizeBytes }
    func rewrite() throws {}
    func checkpoint() throws {}
    func integrityCheck() throws -> [String] { [] }
    var path: String { "" }
    func schemaChanged() { pool.clear() }

    func prepareMigrations(in connection: DatabaseConnection) throws { try PostgresSchema.prepare(connection) }

    func finishMigrations(of tables: [Table], in connection: DatabaseConnection) throws {
        try PostgresSchema.installPolicies(of: tables, connection)
    }

    func close() {
        queue.close()
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
