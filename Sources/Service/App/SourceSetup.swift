import Database

/// Prepares an app's database for its log to be read.
public struct SourceSetup: Sendable {
    private let page: TablesPage
    private let role: String?

    /// - Parameter role: who will read; nil where it is a superuser or has its rights already.
    public init(of page: TablesPage, role: String?) {
        (self.page, self.role) = (page, role)
    }

    /// What would be done.
    public var statements: [String] { SourceStatements.setup(page.tables, role: role) }

    /// Does it, all or nothing.
    ///
    /// - Returns: what the operator should know or change.
    /// - Throws: in one line, what stands in the way.
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
