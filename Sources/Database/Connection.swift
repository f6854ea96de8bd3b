import Foundation

/// The engine under a store. Asked only where one SQL text cannot serve both; each such place says why.
public enum DatabaseEngine: String, Sendable {
    case sqlite = "SQLite"
    case postgreSQL = "PostgreSQL"
}

/// One connection to the database, inside a transaction, with its prepared statements.
///
/// Belongs to one thread at a time: the store hands it to a body and takes it back. It is not `Sendable`, so the
/// compiler confines it. Each engine has its own form.
public class Connection {
    enum Control: Int, CaseIterable {
        case begin, beginImmediate, commit, rollback, savepoint, release, rollbackTo
    }

    /// What to do once the transaction is durable, in the order it was asked for.
    private var commitActions: [@Sendable () -> Void] = []
    /// What is left with the transaction for the last steps of its group, in the order it was left.
    private var items: [(step: any AnyGroupStep, item: any Sendable)] = []
    /// A row was written that its scope may not write. Stays until the enclosing savepoint is undone, so that the row
    /// is undone even if the error is caught.
    private var violation: DatabaseError?

    init() {}

    public var engine: DatabaseEngine { preconditionFailure("each form of a connection says which it is") }

    /// Which database it is, in a word that changes when a server's database is restored from a dump, or the server from an
    /// archive or by the promotion of a standby. Nil for a file, which says nothing of where it comes from, and where the
    /// server does not tell.
    public func origin() throws -> String? { nil }

    // MARK: Statements

    /// Runs a statement to its end and returns how many rows it changed.
    @discardableResult
    public func run(_ sql: SQL) throws -> Int {
        try execute(sql) { _ in true }
    }

    /// Runs several statements, on PostgreSQL in one round trip, and returns how many rows they changed together.
    @discardableResult
    public func run(_ statements: [SQL]) throws -> Int {
        try perform(statements) { _ in true }
    }

    /// Runs statements whose results nobody needs, for the last step of a group (``GroupStep``). On PostgreSQL
    /// they travel with the COMMIT, so that what they lock is locked no longer than it must be.
    public func runWithCommit(_ statements: [SQL]) throws {
        try run(statements)
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

    /// The rows of several statements, in their order; on PostgreSQL by one round trip.
    public func rows<Value>(of statements: [SQL], _ map: (Row) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try perform(statements) { row in
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

    /// The rows of a query, for a body that turns them into something.
    ///
    /// - Parameter position: asked before it in the same transaction; see ``RowCursor/position``.
    public func withRows<Value>(
        _ sql: SQL, at position: SQL? = nil, _ body: (RowCursor) throws -> Value
    ) throws -> Value {
        try body(RowCursor(position: try position.flatMap(integer)) { rows in try self.execute(sql, rows) })
    }

    /// The whole number in the first column of the first row, such as a `COUNT(*)`; nil without a row or for null.
    public func integer(_ sql: SQL) throws -> Int? {
        try row(sql) { try $0.optionalInteger(0) } ?? nil
    }

    /// Whether the statement has a row.
    public func exists(_ sql: SQL) throws -> Bool {
        try row(sql) { _ in true } ?? false
    }

    /// How the engine would run a statement, for tests that an index serves its purpose.
    public func queryPlan(_ sql: SQL) throws -> [String] {
        var plan = sql.woven()
        plan.text = planPrefix + plan.text
        plan.hasCheck = false
        var lines: [String] = []
        _ = try perform(plan) { row in
            lines.append(try row.text(row.count - 1))
            return true
        }
        return lines
    }

    @discardableResult
    private func execute(_ sql: SQL, _ body: (Row) throws -> Bool) throws -> Int {
        let woven = sql.woven()
        guard woven.hasCheck else { return try perform(woven, body) }
        var goesOn = true
        // Rows of RETURNING come after all changes are made, but each one still carries its check.
        return try perform(woven) { row in
            if try !row.isWithinPolicy() {
                let error = DatabaseError(.notPermitted, "the scope may not write this row", sql: sql.text)
                violation = error
                throw error
            }
            if goesOn { goesOn = try body(row) }
            return true
        }
    }

    /// Runs a statement, gives its rows to the body until that returns false, and returns how many rows it changed.
    func perform(_ woven: SQL.Woven, _ body: (Row) throws -> Bool) throws -> Int {
        preconditionFailure("each form of a connection runs its statements")
    }

    /// The same for several statements, one after the other. None has a check.
    @discardableResult
    func perform(_ statements: [SQL], _ body: (Row) throws -> Bool) throws -> Int {
        try statements.reduce(0) { try $0 + perform(Self.withoutCheck($1), body) }
    }

    static func withoutCheck(_ statement: SQL) -> SQL.Woven {
        let woven = statement.woven()
        precondition(!woven.hasCheck, "a statement with a check is run by itself")
        return woven
    }

    /// Runs a statement of a migration, which has no binds and is prepared for this once.
    func runMigration(_ statement: String) throws { try run(SQL(unchecked: statement)) }

    var planPrefix: String { preconditionFailure("each form of a connection explains") }

    // MARK: Who asks

    /// Names the scope that the following statements run under. On SQLite statements carry their policy and nothing
    /// else is needed; on PostgreSQL row-level security checks it once more.
    public func enter(_ scope: Scope?) throws {}

    /// Takes the locks of these names until the transaction ends; waits for transactions that have them.
    ///
    /// What a transaction reads in order to decide what it writes must be locked first: on PostgreSQL others write at the
    /// same time. On SQLite there is one writer, and nothing to do: the names are not even made.
    public func lock(_ subjects: @autoclosure () -> [String]) throws {}

    /// Notifies whoever listens on the channel, on any replica, once the transaction is committed. On SQLite there is
    /// one process, and nothing to do.
    public func notify(_ channel: StaticString, _ payload: String) throws {}

    // MARK: The transaction

    /// Lets the body's changes stand or fall together: an error undoes them and passes on. May be nested.
    public func savepoint<Value>(_ body: () throws -> Value) throws -> Value {
        try control(.savepoint)
        let (actionsBefore, itemsBefore) = (commitActions.count, items.count)
        do {
            let value = try body()
            if let violation { throw violation }
            try control(.release)
            return value
        } catch {
            commitActions.removeSubrange(min(actionsBefore, commitActions.count)...)
            items.removeSubrange(min(itemsBefore, items.count)...)
            violation = nil
            // A full disk, an I/O error or a lost server has ended the whole transaction already, and the savepoint
            // with it.
            if isInTransaction {
                try control(.rollbackTo)
                try control(.release)
            }
            throw error
        }
    }

    /// Has an action run on the writer's thread once the transaction is durable, before anybody is answered.
    /// Dropped when the savepoint it was asked for in is undone. It must be quick: the next group waits for it.
    public func afterCommit(_ action: @escaping @Sendable () -> Void) {
        commitActions.append(action)
    }

    /// Leaves an item for a last step of the group. Dropped when the savepoint it was left in is undone.
    public func leave<Item>(_ item: Item, for step: GroupStep<Item>) {
        items.append((step, item))
    }

    /// Runs the last steps of the group that was written on this connection: each once, with what was left for it.
    func runGroupSteps() throws {
        guard !items.isEmpty else { return }
        try prepareGroupSteps()
        while let step = items.first?.step {
            let own = items.filter { $0.step === step }.map(\.item)
            items.removeAll { $0.step === step }
            try step.run(own, in: self)
        }
    }

    /// Called before the last steps of a group, which run under no scope.
    func prepareGroupSteps() throws {}

    var isInTransaction: Bool { preconditionFailure("each form of a connection knows its transaction") }

    func control(_ control: Control) throws { preconditionFailure("each form of a connection controls") }

    func commit() throws { try control(.commit) }

    func rollback() {
        commitActions.removeAll()
        items.removeAll()
        violation = nil
        guard isInTransaction else { return }
        // Fails only where the engine has rolled back by itself, which is what is wanted.
        try? control(.rollback)
    }

    /// The actions of the transaction that was just committed.
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
