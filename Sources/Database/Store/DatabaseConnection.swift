/// The engine of a store. Code asks for it only where one SQL text cannot serve both engines; each such place gives the
/// reason.
public enum DatabaseEngine: String, Sendable {
    case sqlite = "SQLite"
    case postgreSQL = "PostgreSQL"
}

/// A connection to the database inside a transaction, with its prepared statements.
///
/// It belongs to one thread at a time: the store hands it to a body and takes it back. It is not `Sendable`, so the
/// compiler confines it. Its driver speaks to the engine.
public final class DatabaseConnection {
    private let driver: any DatabaseDriver
    /// Actions to run once the transaction is durable, in the order in which they were added.
    private var commitActions: [@Sendable () -> Void] = []
    /// Items for the last steps of the group, in the order in which they were added.
    private var items: [(step: any AnyGroupStep, item: any Sendable)] = []
    /// A write outside the scope's write policy. It stays set until the enclosing savepoint is rolled back, so that the
    /// row is undone even if the error is caught.
    private var violation: DatabaseError?

    /// The record of what the present caller does to rows of other users; nil if it is not recorded.
    private var accesses: RowAccesses?

    /// Examines the values of each statement that stores something, and refuses it with an error; nil examines nothing.
    private var examination: (([SQLValue]) throws -> Void)?

    /// The rows that statements add; nil counts none.
    private var tally: RowTally?

    /// The number of rows that statements have changed since the connection was opened, except those that travel with
    /// the COMMIT.
    public private(set) var changedRowCount = 0

    /// The number of statements run since the connection was opened, except statements that control transactions. Tests
    /// use it to bound the cost of operations.
    public private(set) var statementCount = 0

    init(_ driver: any DatabaseDriver) { self.driver = driver }

    public var engine: DatabaseEngine { type(of: driver).engine }

    /// Returns a text that identifies the database. It changes when a server's database is restored from a dump, or the
    /// server from an archive or by the promotion of a standby. Nil for a file, whose origin cannot be determined, and
    /// for a server that does not reveal it.
    public func origin() throws -> String? { try driver.origin(in: self) }

    // MARK: Statements

    /// Runs a statement to its end and returns the number of changed rows.
    @discardableResult
    public func run(_ sql: SQL) throws -> Int {
        try execute(sql) { _ in true }
    }

    /// Runs several statements and returns the total number of changed rows. On PostgreSQL this takes one round trip.
    @discardableResult
    public func run(_ statements: [SQL]) throws -> Int {
        try perform(statements) { _, _ in true }
    }

    /// Runs several statements, and passes each row with the place of its statement.
    @discardableResult
    func perform(_ statements: [SQL], _ body: (_ place: Int, Row) throws -> Bool) throws -> Int {
        statementCount &+= statements.count
        for statement in statements { try examine(statement) }
        let changed = try driver.perform(statements, body)
        return zip(statements, changed).reduce(0) { $0 + count($1.1, of: $1.0) }
    }

    /// Counts the rows that a statement has changed, and returns their number. A query changes none, whatever its engine
    /// counts.
    private func count(_ changed: Int, of sql: SQL) -> Int {
        guard !sql.isQuery else { return 0 }
        changedRowCount &+= changed
        tally?.note(sql, changed: changed)
        return changed
    }

    /// Runs statements whose results are not needed, and which fail only if the whole group must: on PostgreSQL they
    /// travel with the next statement, or with the COMMIT. In the last step of a group (``GroupStep``), their locks are
    /// then held as briefly as possible.
    public func runWithCommit(_ statements: [SQL]) throws {
        statementCount &+= statements.count
        for statement in statements { try examine(statement) }
        try driver.performWithCommit(statements)
    }

    /// Returns all rows, each mapped to a value.
    public func rows<Value>(_ sql: SQL, _ map: (Row) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try execute(sql) { row in
            values.append(try map(row))
            return true
        }
        return values
    }

    /// Returns the rows of several statements, in order. On PostgreSQL this takes one round trip.
    public func rows<Value>(of statements: [SQL], _ map: (Row) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try perform(statements) { _, row in
            values.append(try map(row))
            return true
        }
        return values
    }

    /// Returns the first row mapped to a value, or nil without a row.
    public func row<Value>(_ sql: SQL, _ map: (Row) throws -> Value) throws -> Value? {
        var value: Value?
        try execute(sql) { row in
            if value == nil { value = try map(row) }
            // A writing statement has to run to its end; a reading one is done.
            return false
        }
        return value
    }

    /// Calls `body` with each row, without collecting the rows. `body` returns false to stop a reading statement early.
    public func forEach(_ sql: SQL, _ body: (Row) throws -> Bool) throws {
        try execute(sql, body)
    }

    /// Calls `body` with a cursor over the rows of a query.
    ///
    /// - Parameter records: A query that runs before it in the same transaction; see ``RowCursor/records``.
    public func withRows<Value>(
        _ sql: SQL, with records: SQL? = nil, _ body: (RowCursor) throws -> Value
    ) throws -> Value {
        let found = try records.map { try self.records($0) } ?? []
        return try body(RowCursor(records: found) { rows in try self.execute(sql, rows) })
    }

    /// Returns the integer in the first column of the first row, such as a `COUNT(*)`; nil if there is no row or it is
    /// null.
    public func integer(_ sql: SQL) throws -> Int? {
        try row(sql) { try $0.optionalInteger(0) } ?? nil
    }

    /// Returns whether the statement has a row.
    public func exists(_ sql: SQL) throws -> Bool {
        try row(sql) { _ in true } ?? false
    }

    /// Returns the engine's plan for a statement, for tests that a query uses its index.
    public func queryPlan(_ sql: SQL) throws -> [String] {
        var plan = sql.woven()
        plan.text = type(of: driver).planPrefix + plan.text
        plan.hasCheck = false
        var lines: [String] = []
        _ = try driver.perform(plan) { row in
            lines.append(try row.text(row.count - 1))
            return true
        }
        return lines
    }

    @discardableResult
    private func execute(_ sql: SQL, _ body: (Row) throws -> Bool) throws -> Int {
        statementCount &+= 1
        try examine(sql)
        return count(try perform(sql, body), of: sql)
    }

    private func perform(_ sql: SQL, _ body: (Row) throws -> Bool) throws -> Int {
        let woven = sql.woven(showingUsers: accesses != nil)
        try woven.requireInside()
        accesses?.noteReads(of: woven.scoped)
        guard woven.hiddenColumns > 0 else { return try driver.perform(woven, body) }
        var continues = true
        // Rows of RETURNING arrive after all changes are made, but each still carries its check.
        return try driver.perform(woven) { row in
            if woven.hasCheck, try !row.isWithinPolicy() {
                let error = DatabaseError(
                    .notPermitted, "the caller's scope does not permit writing this row", sql: sql.text)
                violation = error
                throw error
            }
            if woven.users > 0, let target = sql.target {
                try accesses?.noteWrite(target.verb, of: target.table, users: row.users(woven.users))
            }
            if continues { continues = try body(row) }
            return true
        }
    }

    /// Runs a statement of a migration. It has no binds and is not cached.
    func runMigration(_ statement: String) throws { try driver.performMigration(statement) }

    // MARK: Scope

    /// Sets the scope under which the following statements run. On SQLite, statements carry their policy and nothing
    /// else is needed. On PostgreSQL, row-level security checks the policy once more.
    public func enter(_ scope: Scope?) throws { try driver.enter(scope) }

    /// Runs a body and records its accesses to rows of other users; without a record, only runs it.
    public func recording<Value>(into accesses: RowAccesses?, _ body: () throws -> Value) rethrows -> Value {
        let former = self.accesses
        self.accesses = accesses
        defer { self.accesses = former }
        return try body()
    }

    /// Runs a body, and passes the values of each statement that stores something to an examination first. A deletion
    /// stores nothing.
    public func examining<Value>(
        by examination: (([SQLValue]) throws -> Void)?, _ body: () throws -> Value
    ) rethrows -> Value {
        let former = self.examination
        self.examination = examination
        defer { self.examination = former }
        return try body()
    }

    /// Runs a body, and counts the rows that its statements add; without a tally, only runs it.
    public func counting<Value>(into tally: RowTally?, _ body: () throws -> Value) rethrows -> Value {
        let former = self.tally
        self.tally = tally
        defer { self.tally = former }
        return try body()
    }

    private func examine(_ sql: SQL) throws {
        guard let examination, sql.isStoring else { return }
        try examination(sql.binds)
    }

    /// Records that a statement without a scope inserted a row of a user.
    public func noteInsertion(into table: Table, of user: String) {
        accesses?.noteWrite(.insert, of: table, users: [user])
    }

    /// Acquires the locks of these names until the transaction ends, and waits for transactions that hold them.
    ///
    /// A transaction must first lock the data on which it bases its writes, because other transactions write at the
    /// same time on PostgreSQL. On SQLite there is one writer and nothing to do; the names are not even created.
    public func lock(_ subjects: @autoclosure () -> [String]) throws { try driver.lock(subjects) }

    /// Notifies all listeners of the channel, on every replica, once the transaction is committed. On SQLite there is
    /// one process, and nothing to do.
    public func notify(_ channel: StaticString, _ payload: String) throws { try driver.notify(channel, payload) }

    // MARK: The transaction

    /// Makes the body's changes atomic: an error undoes them and is rethrown. Savepoints may be nested.
    public func savepoint<Value>(_ body: () throws -> Value) throws -> Value {
        try driver.control(.savepoint)
        let (actionsBefore, itemsBefore, accessesBefore) = (commitActions.count, items.count, accesses?.mark)
        do {
            let value = try body()
            if let violation { throw violation }
            try driver.control(.release)
            return value
        } catch {
            commitActions.removeSubrange(min(actionsBefore, commitActions.count)...)
            items.removeSubrange(min(itemsBefore, items.count)...)
            if let accessesBefore { accesses?.returnTo(accessesBefore) }
            violation = nil
            // After a full disk, an I/O error or a lost server, the whole transaction has already ended, and the
            // savepoint with it.
            if driver.isInTransaction {
                try driver.control(.rollbackTo)
                try driver.control(.release)
            }
            throw error
        }
    }

    /// Runs an action on the writer's thread once the transaction is durable, before any caller is answered. The action
    /// is dropped if the enclosing savepoint is rolled back. It must be quick, because the next group waits for it.
    public func afterCommit(_ action: @escaping @Sendable () -> Void) {
        commitActions.append(action)
    }

    /// Adds an item for a last step of the group. It is dropped if the enclosing savepoint is rolled back.
    public func leave<Item>(_ item: Item, for step: GroupStep<Item>) {
        items.append((step, item))
    }

    /// Runs the last steps of the group that was written on this connection: each once, with all of its items, in the
    /// same order in every group. So the locks of the steps cannot deadlock.
    func runGroupSteps() throws {
        guard !items.isEmpty else { return }
        try driver.prepareGroupSteps()
        while let step = items.min(by: { $0.step.order < $1.step.order })?.step {
            let own = items.filter { $0.step === step }.map(\.item)
            items.removeAll { $0.step === step }
            try step.run(own, in: self)
        }
    }

    func commit() throws { try driver.control(.commit) }

    func rollback() {
        commitActions.removeAll()
        items.removeAll()
        violation = nil
        guard driver.isInTransaction else { return }
        // Fails only if the engine has already rolled back by itself, which is the desired result.
        try? driver.control(.rollback)
    }

    /// Returns the actions of the transaction that was just committed.
    func takeCommitActions() -> [@Sendable () -> Void] {
        defer { commitActions = [] }
        return commitActions
    }
}

extension Duration {
    var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}

extension SQL.Woven {
    /// Requires that each inserted row is within the statement's fence.
    func requireInside() throws(DatabaseError) {
        guard isOutside else { return }
        throw DatabaseError(.notPermitted, "the statement must not insert a row outside its tenant or user", sql: text)
    }
}
