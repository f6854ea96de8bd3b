import Database

/// The setup of an app's database for reading its log.
public struct SourceSetup: Sendable {
    private let page: TablesPage
    private let role: String?
    private let senders: [SourceSender]

    /// - Parameters:
    ///   - role: The reader's role; nil for a superuser, or for a role that already has its rights.
    ///   - senders: The roles that may send events in their transactions.
    public init(of page: TablesPage, role: String?, senders: [SourceSender] = []) {
        (self.page, self.role, self.senders) = (page, role, senders)
    }

    /// Returns the mistake in the name of a reader's role, or nil. A grant to PUBLIC would open the tables to every
    /// login of the server.
    public static func mistake(inRole role: String) -> String? {
        guard ["public", "none"].contains(role.lowercased()) || role.hasPrefix("pg_") || role.isEmpty else {
            return nil
        }
        let name = role.isEmpty ? "an empty name" : role
        return "\(name) cannot be used as the reader: create a login such as bellhop_reader"
    }

    /// The statements of the setup, as one transaction.
    public var statements: [String] {
        ["BEGIN"] + SourceStatements.setup(page.tables, role: role, senders: senders) + ["COMMIT"]
    }

    /// Executes the statements in one transaction.
    ///
    /// - Returns: Remarks that the operator should know or act on.
    /// - Throws: An error that describes the obstacle in one line.
    public func run(at url: String) throws -> [String] {
        let location: DatabaseURL
        do {
            location = try DatabaseURL(url)
        } catch {
            throw SourceProblem("\(error.detail)")
        }
        guard location.engine == .postgreSQL else { throw SourceProblem("--database must be a postgres:// URL") }
        let server = try SourceServer.open(location) { false }
        let remarks = try server.remarks(of: page.tables)
        for statement in statements { _ = try server.ask(statement) }
        return remarks
    }
}
