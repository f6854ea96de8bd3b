/// The location of a database: `sqlite:PATH`, `sqlite:///absolute/path`, `sqlite::memory:`, or
/// `postgres://user:password@host:port/database?parameter=value`, which libpq parses (several hosts, a service file,
/// TLS).
public struct DatabaseURL: Sendable, Hashable, CustomStringConvertible {
    public enum Location: Sendable, Hashable {
        case file(path: String)
        /// A private file on a RAM file system. It behaves like a file, and is deleted at the end.
        case memory
        /// A PostgreSQL server, as libpq's connection URI.
        case server(address: String)
    }

    public let location: Location
    /// The URL in a form that is safe to show: without the password of a server's address.
    public let description: String

    /// - Throws: `.url`, with a text that quotes no part of the URL that may contain a password.
    public init(_ text: String) throws(DatabaseError) {
        if text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") {
            location = .server(address: text)
            description = Self.shown(text)
            _ = try ServerAddress(parsing: text)
            return
        }
        description = text
        guard text.hasPrefix("sqlite:") else {
            throw DatabaseError(
                .url,
                """
                '\(Self.scheme(of: text))' is not a known kind of database: use sqlite:PATH, sqlite::memory: or \
                postgres://…
                """)
        }
        var path = text.dropFirst("sqlite:".count)
        if path == ":memory:" {
            location = .memory
            return
        }
        if path.hasPrefix("//") {
            guard path.hasPrefix("///") else {
                throw DatabaseError(.url, "write the path directly after sqlite:, or an absolute path after sqlite://")
            }
            path = path.dropFirst(2)
        }
        guard !path.isEmpty, path != "/", !path.hasSuffix("/"), !path.utf8.contains(0) else {
            throw DatabaseError(.url, "sqlite: must be followed by the path of a file")
        }
        location = .file(path: String(path))
    }

    /// Creates the URL of an SQLite file.
    ///
    /// - Parameter path: The path as written in a shell.
    public init(file path: String) throws(DatabaseError) {
        try self.init("sqlite:" + (path.hasPrefix("/") ? "//" : "./") + path)
    }

    public var engine: DatabaseEngine {
        if case .server = location { .postgreSQL } else { .sqlite }
    }

    /// Returns the part that is safe to show. The rest may contain a password.
    private static func scheme(of text: String) -> String {
        String(text.prefix { $0 != ":" }.prefix(20))
    }

    /// Returns the user, the hosts and the database. A password may stand before the last `@` and among the parameters.
    private static func shown(_ text: String) -> String {
        let body = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
        let parts = body.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let at = parts[2].lastIndex(of: "@") else {
            // A password that is not percent-encoded may have been cut in two, with its first half here.
            return text.contains("@") ? "\(parts[0])//…" : String(body)
        }
        let user = parts[2][..<at].prefix { $0 != ":" }
        return "\(parts[0])//\(user)\(parts[2][at...])"
    }
}
