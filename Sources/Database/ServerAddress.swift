import CPostgreSQL
import Foundation

/// What libpq reads in a `postgres://` URL.
///
/// libpq's own words about a URL that it cannot read hold the URL, or the half of a password. They are never passed on.
struct ServerAddress {
    let hosts: [String]
    /// As it is in effect, with the environment's; nil where a service file decides, which only a connection reads.
    let sslMode: String?

    /// - Throws: `.url`, with what is wrong in words that quote nothing.
    init(parsing text: String) throws(DatabaseError) {
        guard let options = Self.options(of: text) else {
            throw DatabaseError(.url, "the postgres:// URL cannot be read: \(Self.mistake(in: text))")
        }
        // A password with a "/" or "@" in it ends the user's part early, and libpq takes the rest for a host, a port or a
        // database, which it names in its errors.
        let isCut =
            text.prefix { $0 != "?" }.contains("@") && options["user"] == nil
            || ["host", "port", "dbname"].contains { options[$0]?.contains("@") == true }
        let ports = (options["port"] ?? "").split(separator: ",", omittingEmptySubsequences: true)
        guard !isCut, ports.allSatisfy({ UInt16($0) != nil }) else {
            throw DatabaseError(.url, "the postgres:// URL cannot be read: \(Self.encoding)")
        }
        let environment = ProcessInfo.processInfo.environment
        hosts = (options["hostaddr"] ?? options["host"] ?? environment["PGHOSTADDR"] ?? environment["PGHOST"] ?? "")
            .split(separator: ",").map(String.init)
        let isOfService = options["service"] != nil || environment["PGSERVICE"] != nil
        // libpq 16 verifies whoever it checks by the system's certificates.
        let systemMode = options["sslrootcert"] == "system" ? "verify-full" : nil
        sslMode = options["sslmode"] ?? environment["PGSSLMODE"] ?? systemMode ?? (isOfService ? nil : "prefer")
    }

    /// Hosts that are not this machine: what travels to them can be read and changed on the way, unless TLS protects it.
    var remoteHosts: [String] { hosts.filter { !Self.isLocal($0) } }

    private static func isLocal(_ host: String) -> Bool {
        // A path is a socket's folder, and @ begins an abstract one.
        host.hasPrefix("/") || host.hasPrefix("@") || host == "localhost" || host == "::1"
            || host.split(separator: ".").count == 4 && host.hasPrefix("127.")
    }

    /// Nil where libpq refuses the text.
    private static func options(of text: String) -> [String: String]? {
        var message: UnsafeMutablePointer<CChar>?
        defer { PQfreemem(message) }
        guard let first = PQconninfoParse(text, &message) else { return nil }
        defer { PQconninfoFree(first) }
        var found: [String: String] = [:]
        var option = first
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { found[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return found
    }

    private static let encoding = """
        percent-encode what is special in the user's name and the password (% as %25, @ as %40, : as %3A, / as %2F, \
        ? as %3F, # as %23)
        """

    private static func mistake(in text: String) -> String {
        let escapes = text.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
        if escapes.contains(where: { part in part.count < 2 || !part.prefix(2).allSatisfy(\.isHexDigit) }) {
            return "a % is not followed by two hexadecimal digits; \(encoding)"
        }
        if escapes.contains(where: { $0.hasPrefix("00") }) { return "it has a NUL in it (%00)" }
        if text.count(where: { $0 == "[" }) != text.count(where: { $0 == "]" }) {
            return "an IPv6 address is not between [ and ]"
        }
        return "\(encoding), and name only parameters that libpq knows"
    }
}

extension DatabaseURL {
    /// Hosts other than this machine that are connected to without verifying who they are (libpq's `sslmode` below
    /// `verify-full`), and that mode. Nil where there are none.
    public var unverified: (hosts: [String], sslMode: String)? {
        guard case .server(let address) = location, let server = try? ServerAddress(parsing: address),
            !server.remoteHosts.isEmpty, let mode = server.sslMode, mode != "verify-full"
        else { return nil }
        return (server.remoteHosts, mode)
    }
}
