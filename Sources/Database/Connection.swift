import CSQLite
import Foundation

/// One connection to the database with its prepared statements.
///
/// Belongs to one thread at a time: the store hands it to a body and takes it back. It is not `Sendable`, so the
/// compiler keeps it inside.
public final class Connection {
    enum Role {
        case writer, reader, checkpointer
    }

    private let database: OpaquePointer
    private let options: StoreOptions
    private var statements: [String: Statement] = [:]
    private var uses: UInt64 = 0
    /// What to do once the transaction is durable, in the order it was asked for.
    private var commitActions: [@Sendable () -> Void] = []
    /// A row was written that its scope may not write. Kept until the enclosing savepoint is undone, so that nobody
    /// keeps the row by catching the error.
    private var violation: DatabaseError?
    /// The WAL's length in pages after the last commit of this connection.
    private(set) var walPages = 0

    private var controls = [Statement?](repeating: nil, count: Control.allCases.count)

    private enum Control: Int, CaseIterable {
        case begin, beginImmediate, commit, rollback, savepoint, release, rollbackTo

        var text: String {
            switch self {
            case .begin: "BEGIN"
            case .beginImmediate: "BEGIN IMMEDIATE"
            case .commit: "COMMIT"
            case .rollback: "ROLLBACK"
            case .savepoint: "SAVEPOINT step"
            case .release: "RELEASE step"
            case .rollbackTo: "ROLLBACK TO step"
            }
        }
    }

    init(path: String, role: Role, options: StoreOptions) throws(DatabaseError) {
        SQLiteLibrary.initialize()
        var handle: OpaquePointer?
        let create = role == .writer ? SQLITE_OPEN_CREATE : 0
        // No mutex: one owner at a time is what this class promises.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | create
        let result = sqlite3_open_v2(path, &handle, flags, nil)
        guard let handle else { throw DatabaseError(.outOfMemory, "no memory for a connection") }
        guard result == SQLITE_OK else {
            let error = DatabaseError.last(of: handle)
            sqlite3_close_v2(handle)
            throw DatabaseError(error.code, "cannot open \(path): \(error.detail)")
        }
        database = handle
        self.options = options
        do {
            try configure(role)
        } catch {
            throw DatabaseError(error.code, "cannot open \(path): \(error.detail)")
        }
    }

    deinit {
        // Statements first: a connection with open statements would live on, and keep its locks.
        statements.removeAll()
        controls.removeAll()
        sqlite3_wal_hook(database, nil, nil)
        sqlite3_close_v2(database)
    }

    // MARK: Statements

    /// Runs a statement to its end and tells how many rows it changed.
    @discardableResult
    public func run(_ sql: SQL) throws -> Int {
        try execute(sql) { _ in true }
        return Int(sqlite3_changes64(database))
    }

    /// All rows, each turned into a value.
    public func rows<Value>(_ sql: SQL, _ map: (Row) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try execute(sql) { row in
            values.append(try map(row))
            return true
        }
        return values
    }

    /// The first row turned into a value, or nil without one.
    public func row<Value>(_ sql: SQL, _ map: (Row) throws -> Value) throws -> Value? {
        var value: Value?
        try execute(sql) { row in
            if value == nil { value = try map(row) }
            // A writing statement has to run to its end; a reading one is done.
            return false
        }
        return value
    }

    /// Each row in turn, without collecting them; `body` returns false to stop a reading statement early.
    public func forEach(_ sql: SQL, _ body: (Row) throws -> Bool) throws {
        try execute(sql, body)
    }

    /// The whole number in the first column of the first row, such as a `COUNT(*)`; nil without a row or for null.
    public func integer(_ sql: SQL) throws -> Int? {
        try row(sql) { try $0.optionalInteger(0) } ?? nil
    }

    /// Whether the statement has a row.
    public func exists(_ sql: SQL) throws -> Bool {
        try row(sql) { _ in true } ?? false
    }

    /// Lets the body's changes stand or fall together: an error undoes them and passes on. May be nested.
    public func savepoint<Value>(_ body: () throws -> Value) throws -> Value {
        try runControl(.savepoint)
        let actionsBefore = commitActions.count
        do {
            let value = try body()
            if let violation { throw violation }
            try runControl(.release)
            return value
        } catch {
            commitActions.removeSubrange(min(actionsBefore, commitActions.count)...)
            violation = nil
            // A full disk or an I/O error has ended the whole transaction already, and the savepoint with it.
            if isInTransaction {
                try runControl(.rollbackTo)
                try runControl(.release)
            }
            throw error
        }
    }

    /// Has an action run on the writer's thread once the transaction is durable, before anybody is answered.
    /// Dropped when the savepoint it was asked for in is undone. It must be quick: the next group waits for it.
    public func afterCommit(_ action: @escaping @Sendable () -> Void) {
        commitActions.append(action)
    }

    /// How the engine would run a statement: the lines of `EXPLAIN QUERY PLAN`, for tests that hold an index to its
    /// purpose.
    public func queryPlan(_ sql: SQL) throws -> [String] {
        let woven = sql.woven()
        let plan = SQL(text: "EXPLAIN QUERY PLAN " + woven.text, binds: woven.binds)
        return try rows(plan) { try $0.text("detail") }
    }

    private func execute(_ sql: SQL, _ body: (Row) throws -> Bool) throws {
        let woven = sql.woven()
        let statement = try checkOut(woven.text)
        defer { checkIn(statement) }
        try statement.bind(woven.binds)
        var goesOn = true
        while try statement.step() {
            if woven.hasCheck, statement.integer(at: statement.columnNames.count - 1) != 1 {
                let error = DatabaseError(.notPermitted, "the scope may not write this row", sql: sql.text)
                violation = error
                throw error
            }
            if goesOn { goesOn = try body(Row(statement, hiddenColumns: woven.hasCheck ? 1 : 0)) }
            // Rows of RETURNING come after all changes are made, but each one still carries its check.
            if !goesOn, !woven.hasCheck { break }
        }
    }

    private func checkOut(_ text: String) throws(DatabaseError) -> Statement {
        uses &+= 1
        if let known = statements[text], !known.isInUse {
            known.isInUse = true
            known.lastUse = uses
            return known
        }
        // The same text inside its own callback: a statement of its own, dropped afterwards.
        let isNested = statements[text] != nil
        let statement = try Statement(text, in: database, isPersistent: !isNested)
        statement.isInUse = true
        statement.lastUse = uses
        if !isNested {
            if statements.count >= options.statementsMax { evictStatement() }
            statements[text] = statement
        }
        return statement
    }

    private func checkIn(_ statement: Statement) {
        statement.reset()
        statement.isInUse = false
    }

    private func evictStatement() {
        let idle = statements.values.lazy.filter { !$0.isInUse }
        guard let oldest = idle.min(by: { $0.lastUse < $1.lastUse }) else { return }
        statements[oldest.text] = nil
    }

    // MARK: Transactions, for the store

    var isInTransaction: Bool { sqlite3_get_autocommit(database) == 0 }

    /// Begins a transaction that reads one state of the database from its first statement on.
    func beginReading() throws { try runControl(.begin) }

    /// Begins a transaction that holds the write lock from the start: a later upgrade could fail with busy after
    /// half the work.
    func beginWriting() throws { try runControl(.beginImmediate) }

    func commit() throws { try runControl(.commit) }

    func rollback() {
        commitActions.removeAll()
        violation = nil
        guard isInTransaction else { return }
        // Fails only where SQLite has rolled back by itself, which is what is wanted.
        try? runControl(.rollback)
    }

    /// The actions of the transaction that was just committed.
    func takeCommitActions() -> [@Sendable () -> Void] {
        let actions = commitActions
        commitActions = []
        return actions
    }

    private func runControl(_ control: Control) throws(DatabaseError) {
        let statement: Statement
        if let known = controls[control.rawValue] {
            statement = known
        } else {
            statement = try Statement(control.text, in: database, isPersistent: true)
            controls[control.rawValue] = statement
        }
        defer { statement.reset() }
        _ = try statement.step()
    }

    // MARK: Upkeep, for the store

    enum CheckpointMode {
        /// Moves what it can without making anybody wait.
        case passive
        /// Moves everything and empties the file, waiting for readers up to the busy timeout.
        case truncate
    }

    /// Moves pages from the WAL into the database. Returns the pages that are left.
    func checkpoint(_ mode: CheckpointMode) throws(DatabaseError) -> Int {
        var walPages: Int32 = 0
        var movedPages: Int32 = 0
        let how = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        let result = sqlite3_wal_checkpoint_v2(database, nil, how, &walPages, &movedPages)
        guard result == SQLITE_OK else { throw DatabaseError.last(of: database) }
        return Int(max(0, walPages) - max(0, movedPages))
    }

    /// Runs text that holds any number of statements; for migrations.
    func runScript(_ text: String) throws(DatabaseError) {
        guard sqlite3_exec(database, text, nil, nil, nil) == SQLITE_OK else {
            throw DatabaseError.last(of: database, sql: text)
        }
    }

    private func configure(_ role: Role) throws(DatabaseError) {
        sqlite3_busy_timeout(database, Int32(clamping: options.busyTimeout.milliseconds))
        // Text of the schema cannot call functions with side effects, the schema cannot be edited as data, and a
        // misspelt column in double quotes is an error and not a string.
        for (option, enabled) in [
            (SQLITE_DBCONFIG_TRUSTED_SCHEMA, Int32(0)), (SQLITE_DBCONFIG_DEFENSIVE, 1),
            (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_DQS_DDL, 0),
        ] {
            _ = csqlite_db_config_flag(database, option, enabled)
        }
        switch role {
        case .writer:
            try enterWAL()
            // FULL: the WAL is synced at each commit, so that 201 means durable.
            try runScript("PRAGMA synchronous = FULL; PRAGMA cache_size = -\(options.writerCacheKiB)")
            try runScript("PRAGMA journal_size_limit = \(options.journalBytesMax)")
            if options.pagesMax > 0 { try runScript("PRAGMA max_page_count = \(options.pagesMax)") }
            countWALPages()
        case .reader:
            try runScript("PRAGMA query_only = ON; PRAGMA cache_size = -\(options.readerCacheKiB)")
            try runScript("PRAGMA mmap_size = \(options.readerMapBytes)")
        case .checkpointer:
            try runScript("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")
        }
        try runScript("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY")
    }

    /// SQLite answers with the mode it could set, and raises no error where it could not: on a file system without
    /// shared memory, every read would then wait for the writer.
    private func enterWAL() throws(DatabaseError) {
        let statement = try Statement("PRAGMA journal_mode = WAL", in: database, isPersistent: false)
        guard try statement.step() else { throw DatabaseError(.cannotOpen, "no journal mode") }
        let mode = statement.withBytes(at: 0, isText: true) { String(decoding: $0, as: UTF8.self) }
        guard mode == "wal" else {
            throw DatabaseError(.cannotOpen, "the file system offers journal mode \(mode), not wal")
        }
    }

    /// Replaces SQLite's own checkpoint, which would run inside COMMIT while callers wait for their answer.
    private func countWALPages() {
        // Unretained: `deinit` takes the hook away before the connection is gone.
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_wal_hook(
            database,
            { context, _, _, pages in
                Unmanaged<Connection>.fromOpaque(context!).takeUnretainedValue().walPages = Int(pages)
                return SQLITE_OK
            }, context)
    }
}

/// Settings of the library that hold for the whole process.
enum SQLiteLibrary {
    /// Turns SQLite's memory statistics off, before anything else: they take one process-wide mutex at each
    /// allocation, and four readers then run no faster than one.
    static func initialize() { _ = once }

    private static let once: Void = {
        _ = csqlite_config_memstatus(0)
        _ = sqlite3_initialize()
    }()
}

extension Duration {
    var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }

    var nanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
