import PostgresServer
import TestSupport

@testable import Service

/// A database of one test: a file, or one on the server where the tests run on PostgreSQL.
struct TestDatabase: Sendable {
    let url: String
    /// Nil for a file.
    let name: String?

    /// One that is there already.
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

    /// A machine on which hundreds of tests run at once is late with a connection, too.
    static let patience = "?connect_timeout=60"

    /// One on the server, brought up to date, for the service's own login.
    init(on server: PostgresServer) throws {
        let name = try server.makeDatabase(copying: Self.template.get())
        self.name = name
        url = server.url("bellhop", name, parameters: Self.patience)
    }

    func drop() {
        guard let name else { return }
        try? PostgresServer.shared().drop(name)
    }

    /// Made once: a copy takes a tenth of the time of the migrations.
    private static let template = Result {
        let server = try PostgresServer.shared()
        let name = try server.makeDatabase()
        _ = try Operations.migrate(
            TestService.settings(["database": server.url("bellhop_owner", name), "jwtSecret": TestService.secret]))
        try server.makeLogin()
        return name
    }
}
