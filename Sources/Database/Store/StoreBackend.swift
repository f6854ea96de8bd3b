/// The operations that an engine provides for a store.
protocol StoreBackend: Sendable {
    func read<Value>(isSingle: Bool, isVital: Bool, _ body: (DatabaseConnection) throws -> Value) throws -> Value
    func query(
        _ woven: SQL.Woven, with records: SQL?, as scope: Scope,
        completion: @escaping @Sendable (Result<RowCursor, any Error>) -> Void
    ) throws(StoreBusy)
    /// The queue of its writers.
    var queue: WriteQueue { get }
    /// Whether the current thread is one of its writers.
    var isOnWriter: Bool { get }
    var sizeBytes: Int { get }
    func listen(to channel: String, _ receive: @escaping @Sendable (ChannelSignal) -> Void) -> (@Sendable () -> Void)?
    func rewrite() throws
    func checkpoint() throws
    func integrityCheck() throws -> [String]
    /// The permanent problem that blocks reading and writing; nil for a server.
    var trouble: DatabaseError? { get }
    /// Whether the disk seems to have room; true if only the server knows.
    var hasRoom: Bool { get }
    /// The path of the database file; empty for a server.
    var path: String { get }
    /// Called in the transaction of the migrations, before them.
    func prepareMigrations(in connection: DatabaseConnection) throws
    /// Called in the transaction of the migrations, after them.
    func finishMigrations(of tables: [Table], in connection: DatabaseConnection) throws
    func schemaChanged()
    func close()
}
