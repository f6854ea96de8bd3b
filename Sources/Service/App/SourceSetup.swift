import Database

/// The setup of an app's database for reading its log.
public struct SourceSetup: Sendable {
    private let page: TablesPage
    private let role: String?

    /// Creates a setup.
    ///
    /// - Parameter role: The role that will read; nil if it is a superuser, or already has its rights.
    public init(of page: TablesPage, role: String?) {
        (self.page, self.role) = (page, role)
    }

    /// What is wrong with the name of a reader: a grant to PUBLIC would open the tables to every login of the server.
    public static func mistake(inRole role: String) -> String? {
        guard ["public", "none"].contains(role.lowercased()) || role.hasPrefix("pg_") || role.isEmpty else {
            return nil
        }
        return
            "\(role.isEmpty ? "an empty name" : role) is no role that can read: make a login for it, such as bellhop_reader"
    }

    /// What would be done.
    public var statements: [String] { SourceStatements.setup(page.tables, role: role) }

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
        _ = try server.ask("BEGIN")
        for statement in statements { _ = try server.ask(statement) }
        _ = try server.ask("COMMIT")
        return remarks
    }
}
