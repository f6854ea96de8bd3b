import CSQLite
import Foundation

/// A connection to an SQLite file.
final class SQLiteConnection: DatabaseDriver {
    enum Role {
        case writer, reader, checkpointer
    }

    let database: OpaquePointer
    private let file: DatabaseFile
    private let options: StoreOptions
    private var statements: [StatementText: Statement] = [:]
    private var uses: UInt64 = 0
    /// The length of the WAL in pages after the last commit of this connection.
    private(set) var walPages = 0
    /// Whether a commit has written anything since this was last set to false.
    var hasWritten = false
    /// The commit count and the time before the open snapshot was taken, for the pool of readers.
    var snapshot: (commits: UInt64, at: ContinuousClock.Instant)?
    /// Whether closing leaves the write-ahead log untouched. A connection that only reads does not checkpoint the log
    /// of a service.
    private let keepsLogFile: Bool
    private var controls = [Statement?](repeating: nil, count: TransactionControl.allCases.count)

    private static func text(of control: TransactionControl) -> String {
        switch control {
        case .begin: "BEGIN"
        // Takes the write lock at the start. A later upgrade could fail with busy after half of the work.
        case .beginImmediate: "BEGIN IMMEDIATE"
        case .commit: "COMMIT"
        case .rollback: "ROLLBACK"
        case .savepoint: "SAVEPOINT step"
        case .release: "RELEASE step"
        case .rollbackTo: "ROLLBACK TO step"
        }
    }

    /// Turns off SQLite's memory statistics for the whole process, before anything else. They lock a mutex at each
    /// allocation, and four readers then run no faster than one.
    private static let library: Void = {
        _ = csqlite_config_memstatus(0)
        _ = sqlite3_initialize()
    }()

    init(_ file: DatabaseFile, role: Role, options: StoreOptions) throws(DatabaseError) {
        _ = Self.library
        let path = file.path
        keepsLogFile = options.access == .readOnly && DatabaseFile.bytes(path + "-wal") > 0
        var handle: OpaquePointer?
        let create = role == .writer ? SQLITE_OPEN_CREATE : 0
        // No mutex: this class guarantees one owner at a time.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | create
        let result = sqlite3_open_v2(path, &handle, flags, nil)
        guard let handle else { throw DatabaseError(.outOfMemory, "out of memory for a connection") }
        guard result == SQLITE_OK else {
            let error = DatabaseError.last(of: handle)
            sqlite3_close_v2(handle)
            throw DatabaseError(error.code, "cannot open \(path): \(error.detail)")
        }
        database = handle
        self.file = file
        self.options = options
        do {
            try configure(role)
        } catch {
            throw DatabaseError(error.code, "cannot open \(path): \(error.detail)")
        }
        // The path may meanwhile lead to another file than the one that the other connections use.
        file.isMoved()
        try file.requireInPlace()
    }

    deinit {
        // Statements first: a connection with open statements would stay alive, with its locks.
        statements.removeAll()
        controls.removeAll()
        sqlite3_wal_hook(database, nil, nil)
        // The last connection checkpoints the log and deletes it by name. The name may belong to another file by now.
        if keepsLogFile || file.isMoved() { _ = csqlite_db_config_flag(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) }
        sqlite3_close_v2(database)
    }

    static let engine = DatabaseEngine.sqlite
    static let planPrefix = "EXPLAIN QUERY PLAN "

    // MARK: Statements

    func perform(_ woven: SQL.Woven, _ body: (Row) throws -> Bool) throws -> Int {
        let statement = try checkOut(woven.text)
        defer { checkIn(statement) }
        try statement.bind(woven.binds)
        while try statement.step() {
            if try !body(Row(statement.source, hiddenColumns: woven.hiddenColumns)) { break }
        }
        return Int(sqlite3_changes64(database))
    }

    func perform(_ statements: [SQL], _ body: (_ place: Int, Row) throws -> Bool) throws -> [Int] {
        try statements.enumerated().map { place, statement in
            try perform(try statement.wovenWithoutCheck()) { try body(place, $0) }
        }
    }

    func performWithCommit(_ statements: [SQL]) throws {
        for statement in statements { _ = try perform(try statement.wovenWithoutCheck()) { _ in true } }
    }

    func performMigration(_ statement: String) throws { try runScript(statement) }

    private func checkOut(_ text: String) throws(DatabaseError) -> Statement {
        uses &+= 1
        let key = StatementText(text: text)
        let stored = statements[key]
        if let known = stored, !known.isInUse {
            known.isInUse = true
            known.lastUse = uses
            return known
        }
        // The same text is used inside its own callback. It gets a separate statement, which is dropped afterwards.
        let isNested = stored != nil
        let statement = try Statement(text, in: database, isPersistent: !isNested)
        statement.isInUse = true
        statement.lastUse = uses
        if !isNested {
            if statements.count >= options.statementsMax { evictStatement() }
            statements[key] = statement
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
        statements[StatementText(text: oldest.source.text)] = nil
    }

    // MARK: The transaction

    var isInTransaction: Bool { sqlite3_get_autocommit(database) == 0 }

    func control(_ control: TransactionControl) throws {
        let statement: Statement
        if let known = controls[control.rawValue] {
            statement = known
        } else {
            statement = try Statement(Self.text(of: control), in: database, isPersistent: true)
            controls[control.rawValue] = statement
        }
        defer { statement.reset() }
        _ = try statement.step()
    }

    // Statements carry their policy. There is one writer in one process, so nothing is locked or notified, and the
    // origin of a file cannot be determined.
    func enter(_: Scope?) throws {}
    func lock(_: () -> [String]) throws {}
    func notify(_: StaticString, _: String) throws {}
    func prepareGroupSteps() throws {}
    func origin(in _: DatabaseConnection) throws -> String? { nil }

    // MARK: Upkeep, for the store

    enum CheckpointMode {
        /// Moves as many pages as possible without blocking anything.
        case passive
        /// Moves all pages and truncates the file; waits for readers up to the busy timeout.
        case truncate
    }

    /// The WAL after a checkpoint, in pages.
    struct CheckpointedLog {
        let pages: Int
        /// Pages that a reader still needs in the WAL, or that were added meanwhile.
        let remaining: Int
    }

    /// Moves pages from the WAL into the database.
    func checkpoint(_ mode: CheckpointMode) throws(DatabaseError) -> CheckpointedLog {
        var walPages: Int32 = 0
        var movedPages: Int32 = 0
        let how = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        let result = sqlite3_wal_checkpoint_v2(database, nil, how, &walPages, &movedPages)
        guard result == SQLITE_OK else { throw DatabaseError.last(of: database) }
        return CheckpointedLog(pages: Int(max(0, walPages)), remaining: Int(max(0, walPages) - max(0, movedPages)))
    }

    /// Runs a text with any number of statements, for migrations.
    func runScript(_ text: String) throws(DatabaseError) {
        guard sqlite3_exec(database, text, nil, nil, nil) == SQLITE_OK else {
            throw DatabaseError.last(of: database, sql: text)
        }
    }

    private func configure(_ role: Role) throws(DatabaseError) {
        sqlite3_busy_timeout(database, Int32(clamping: options.busyTimeout.milliseconds))
        // SQL in the schema cannot call functions with side effects. The schema cannot be edited as data. A misspelt
        // column in double quotes is an error and not a string.
        for (option, enabled) in [
            (SQLITE_DBCONFIG_TRUSTED_SCHEMA, Int32(0)), (SQLITE_DBCONFIG_DEFENSIVE, 1),
            (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_DQS_DDL, 0),
        ] {
            _ = csqlite_db_config_flag(database, option, enabled)
        }
        switch role {
        case .writer:
            try enterWAL()
            // FULL: the WAL is synced at each commit, so that a 201 means durable.
            try runScript("PRAGMA synchronous = FULL; PRAGMA cache_size = -\(options.writerCacheKiB)")
            try runScript("PRAGMA journal_size_limit = \(options.journalBytesMax)")
            // Deleted content is overwritten. Otherwise erased persons would stay readable in free pages.
            try runScript("PRAGMA secure_delete = ON")
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

    /// Switches to WAL mode. SQLite returns the resulting mode, and raises no error if WAL is impossible. On a file
    /// system without shared memory, every read would then wait for the writer.
    private func enterWAL() throws(DatabaseError) {
        let statement = try Statement("PRAGMA journal_mode = WAL", in: database, isPersistent: false)
        defer { statement.reset() }
        guard try statement.step() else { throw DatabaseError(.cannotOpen, "the journal mode is missing") }
        let mode = String(decoding: statement.source.columns.bytes(at: 0, isText: true), as: UTF8.self)
        guard mode == "wal" else {
            throw DatabaseError(.cannotOpen, "the file system supports only the journal mode \(mode), not wal")
        }
    }

    /// Replaces SQLite's own checkpoint, which would run inside COMMIT while callers wait for their answers.
    private func countWALPages() {
        // Unretained: `deinit` removes the hook before the connection is gone.
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_wal_hook(
            database,
            { context, _, _, pages in
                let connection = Unmanaged<SQLiteConnection>.fromOpaque(context!).takeUnretainedValue()
                (connection.walPages, connection.hasWritten) = (Int(pages), true)
                return SQLITE_OK
            }, context)
    }
}
