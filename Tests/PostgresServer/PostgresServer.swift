import CPostgreSQL
import Foundation

/// The PostgreSQL server of the tests. `.ci/postgres start` starts it; `TEST_POSTGRES` holds its URL.
public struct PostgresServer: Sendable {
    public struct Unusable: Error, CustomStringConvertible {
        public let description: String
    }

    /// Whether the tests of the whole service run on PostgreSQL instead of SQLite.
    public static let isTheStore = ProcessInfo.processInfo.environment["TEST_STORE"] == "postgres"

    public let port: Int

    /// - Parameter port: the port of the server, or of a proxy in front of it.
    public init(port: Int) {
        self.port = port
    }

    /// - Throws: if no server is configured. A test that needs one then fails instead of being skipped.
    public static func shared() throws -> PostgresServer {
        guard let text = ProcessInfo.processInfo.environment["TEST_POSTGRES"], let url = URL(string: text),
            let port = url.port
        else {
            throw Unusable(description: "set TEST_POSTGRES to the URL that `.ci/postgres start DIRECTORY` prints")
        }
        return PostgresServer(port: port)
    }

    public func url(_ user: String, _ database: String, parameters: String = "") -> String {
        "postgres://\(user)@127.0.0.1:\(port)/\(database)\(parameters)"
    }

    /// Runs statements in order, each in its own transaction. Returns the first value of the last one.
    @discardableResult
    public func run(_ statements: [String], as user: String = "postgres", in database: String = "postgres") throws
        -> String
    {
        let connection = PQconnectdb(url(user, database))
        defer { PQfinish(connection) }
        var value = ""
        for statement in statements {
            let result = PQexec(connection, statement)
            defer { PQclear(result) }
            let status = PQresultStatus(result)
            guard status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK else {
                throw Unusable(description: String(cString: PQerrorMessage(connection)))
            }
            value = PQntuples(result) > 0 ? String(cString: PQgetvalue(result, 0, 0)) : ""
        }
        return value
    }

    /// Creates a database owned by the role `bellhop_owner`, either empty or as a copy of a template.
    public func makeDatabase(copying template: String? = nil) throws -> String {
        let name = "t_" + UUID().uuidString.lowercased().replacingOccurrences(of: "-", with: "")
        try run([
            """
            DO $$ BEGIN CREATE ROLE bellhop_owner LOGIN CREATEROLE;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$
            """,
            "CREATE DATABASE \(name) OWNER bellhop_owner" + (template.map { " TEMPLATE \($0)" } ?? ""),
        ])
        return name
    }

    /// Creates the service's login, as an administrator does once the role exists.
    public func makeLogin() throws {
        try run([
            """
            DO $$ BEGIN CREATE ROLE bellhop LOGIN IN ROLE bellhop_service;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$
            """
        ])
    }

    public func drop(_ database: String) {
        _ = try? run(["DROP DATABASE IF EXISTS \(database) WITH (FORCE)"])
    }
}
