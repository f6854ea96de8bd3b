/// The part of a connection that differs between the engines. ``DatabaseConnection`` holds the part that they share.
///
/// Like the connection, a driver belongs to one thread at a time.
protocol DatabaseDriver: AnyObject {
    static var engine: DatabaseEngine { get }
    /// The words that turn a statement into a query for its plan.
    static var planPrefix: String { get }

    // MARK: Statements

    /// Runs a statement, passes its rows to the body until it returns false, and returns the number of changed rows. The
    /// number of a query has no meaning.
    func perform(_ woven: SQL.Woven, _ body: (Row) throws -> Bool) throws -> Int

    /// Runs several statements without a check, one after the other, passes each row with the place of its statement,
    /// and returns the number of rows that each has changed.
    func perform(_ statements: [SQL], _ body: (_ place: Int, Row) throws -> Bool) throws -> [Int]

    /// Runs statements without a check whose results are not needed; at the latest with the COMMIT.
    func performWithCommit(_ statements: [SQL]) throws

    /// Runs a statement of a migration. It has no binds and is not cached.
    func performMigration(_ statement: String) throws

    // MARK: The transaction

    var isInTransaction: Bool { get }

    func control(_ control: TransactionControl) throws

    /// Sets the scope under which the following statements run; nil for none.
    func enter(_ scope: Scope?) throws

    /// Acquires the locks of these names until the transaction ends.
    func lock(_ subjects: () -> [String]) throws

    /// Notifies all listeners of the channel once the transaction is committed.
    func notify(_ channel: StaticString, _ payload: String) throws

    /// Called before the last steps of a group, which run without a scope.
    func prepareGroupSteps() throws

    /// Returns a text that identifies the database; see ``DatabaseConnection/origin()``.
    ///
    /// - Parameter db: The connection of this driver, which queries the server.
    func origin(in db: DatabaseConnection) throws -> String?
}

/// The statements that control a transaction.
enum TransactionControl: Int, CaseIterable {
    case begin, beginImmediate, commit, rollback, savepoint, release, rollbackTo
}

/// A connection together with its driver, for the backend of one engine.
final class DrivenConnection<Driver: DatabaseDriver> {
    let driver: Driver
    /// The connection that bodies receive.
    let db: DatabaseConnection

    init(_ driver: Driver) {
        self.driver = driver
        db = DatabaseConnection(driver)
    }
}
