import CPostgreSQL
import Foundation

/// The PostgreSQL that tests run on: `.ci/postgres start` makes one, and its URL is in `TEST_POSTGRES`.
public struct PostgresServer: Sendable {
    public struct Unusable: Error, CustomStringConvertible {
        public let description: String
    }

    /// Whether the tests of the whole service run on it, and not on SQLite.
    public static let isTheStore = ProcessInfo.processInfo.environment["TEST_STORE"] == "postgres"

    public let port: Int

    /// - Parameter port: where the server is reached; in front of it may be something else.
    public init(port: Int) {
        self.port = port
    }

    /// - Throws: when there is none. A test that needs one fails then; it does not pass by.
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

    /// Runs statements one after the other, each its own transaction, and gives the first value of the last one.
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

    /// Makes a database of its own, owned by the role `bellhop_owner`; empty, or a copy.
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

    /// A login of the service, as an administrator makes it once the role is there.
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
