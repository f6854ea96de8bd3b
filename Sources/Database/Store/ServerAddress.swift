import CPostgreSQL
import Foundation
import Values

/// The parts of a `postgres://` URL, as libpq parses them.
///
/// libpq's own error for an unreadable URL contains the URL or a part of a password, so it is never passed on.
struct ServerAddress {
    let hosts: [String]
    /// The effective mode, including that of the environment. Nil if a service file decides, which only a connection
    /// reads.
    let sslMode: String?

    /// - Throws: `.url`, with a description of the fault that quotes no part of the URL.
    init(parsing text: String) throws(DatabaseError) {
        guard let options = Self.options(of: text) else {
            throw DatabaseError(.url, "the postgres:// URL cannot be read: \(Self.mistake(in: text))")
        }
        // An unescaped "/" or "@" in a password ends the user part early. libpq then takes the rest for a host, a port
        // or a database, and names it in its errors.
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
        // With `sslrootcert=system`, libpq 16 always verifies the host.
        let systemMode = options["sslrootcert"] == "system" ? "verify-full" : nil
        sslMode = options["sslmode"] ?? environment["PGSSLMODE"] ?? systemMode ?? (isOfService ? nil : "prefer")
    }

    /// Hosts other than this machine: traffic to them can be read and changed on the way, unless TLS protects it.
    var remoteHosts: [String] { hosts.filter { !Self.isLocal($0) } }

    private static func isLocal(_ host: String) -> Bool {
        // A path is a socket's folder, and @ begins an abstract socket.
        host.hasPrefix("/") || host.hasPrefix("@") || host.isLoopbackHost
    }

    /// Returns nil if libpq refuses the text.
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
        percent-encode special characters in the user name and the password (% as %25, @ as %40, : as %3A, / as %2F, \
        ? as %3F, # as %23)
        """

    private static func mistake(in text: String) -> String {
        let escapes = text.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
        if escapes.contains(where: { part in part.count < 2 || !part.prefix(2).allSatisfy(\.isHexDigit) }) {
            return "a % is not followed by two hexadecimal digits; \(encoding)"
        }
        if escapes.contains(where: { $0.hasPrefix("00") }) { return "it contains NUL (%00)" }
        if text.count(where: { $0 == "[" }) != text.count(where: { $0 == "]" }) {
            return "an IPv6 address must be between [ and ]"
        }
        return "\(encoding), and use only parameters that libpq supports"
    }
}

extension DatabaseURL {
    /// Returns the hosts other than this machine whose identity is not verified (libpq's `sslmode` below
    /// `verify-full`), and that mode. Nil without such hosts.
    public var unverified: (hosts: [String], sslMode: String)? {
        guard case .server(let address) = location, let server = try? ServerAddress(parsing: address),
            !server.remoteHosts.isEmpty, let mode = server.sslMode, mode != "verify-full"
        else { return nil }
        return (server.remoteHosts, mode)
    }
}
