/// Where the database is: `sqlite:PATH`, `sqlite:///absolute/path`, or `sqlite::memory:`.
public struct DatabaseURL: Sendable, Hashable, CustomStringConvertible {
    public enum Location: Sendable, Hashable {
        case file(path: String)
        /// A private file on a RAM file system: everything works as with a file, and is gone at the end.
        case memory
    }

    public let location: Location
    public let description: String

    public init(_ text: String) throws(DatabaseError) {
        description = text
        guard text.hasPrefix("sqlite:") else {
            throw DatabaseError(
                .url,
                "'\(Self.scheme(of: text))' is not a known kind of database: use sqlite:PATH or sqlite::memory:")
        }
        var path = text.dropFirst("sqlite:".count)
        if path == ":memory:" {
            location = .memory
            return
        }
        if path.hasPrefix("//") {
            guard path.hasPrefix("///") else {
                throw DatabaseError(.url, "a path follows sqlite: directly, or sqlite:// if it is absolute")
            }
            path = path.dropFirst(2)
        }
        guard !path.isEmpty, path != "/", !path.hasSuffix("/"), !path.utf8.contains(0) else {
            throw DatabaseError(.url, "sqlite: needs the path of a file")
        }
        location = .file(path: String(path))
    }

    public static let memory = DatabaseURL(location: .memory, description: "sqlite::memory:")

    public static func file(_ path: String) -> DatabaseURL {
        DatabaseURL(location: .file(path: path), description: "sqlite:" + path)
    }

    private init(location: Location, description: String) {
        self.location = location
        self.description = description
    }

    /// The part that is safe to show: what follows may hold a password.
    private static func scheme(of text: String) -> String {
        String(text.prefix { $0 != ":" }.prefix(20))
    }
}
