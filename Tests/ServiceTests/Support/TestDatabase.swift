import PostgresServer
import TestSupport

@testable import Service

/// The database of one test: a file, or a database on the server if the tests run on PostgreSQL.
struct TestDatabase: Sendable {
    let url: String
    /// The name on the server; nil for a file.
    let name: String?

    /// Uses an existing database.
    init(url: String, name: String?) {
        self.url = url
        self.name = name
    }

    init(in directory: TemporaryDirectory) throws {
        guard PostgresServer.isTheStore else {
            url = "sqlite:\(directory.file("test.sqlite"))"
            name = nil
            return
        }
        self = try TestDatabase(on: PostgresServer.shared())
    }

    /// On a machine that runs hundreds of tests, connecting may take long too.
    static let patience = "?connect_timeout=60"

    /// Creates a database on the server, with the current schema, for the service's own login.
    init(on server: PostgresServer) throws {
        let name = try server.makeDatabase(copying: Self.template.get())
        self.name = name
        url = server.url("bellhop", name, parameters: Self.patience)
    }

    func drop() {
        guard let name else { return }
        try? PostgresServer.shared().drop(name)
    }

    /// Created once: copying it takes a tenth of the time of the migrations.
    private static let template = Result {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        _ = try Operations.migrate(
            TestService.settings(["database": server.url("bellhop_owner", name), "jwtSecret": TestService.secret]))
        try server.makeLogin()
        return name
    }
}
