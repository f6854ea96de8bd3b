import Database
import Domain
import Foundation
import OutboundHTTP
import Rows
import Values

/// The rules of settings whose text is not simply a number, a word or a Boolean. Each throws a ``Settings/Fault``.
enum SettingRule {
    /// The number of cores decides the number of threads (`Docs/architecture.md`). Most are for streams, because these
    /// fan out.
    static let cores = max(1, ProcessInfo.processInfo.activeProcessorCount)
    static let reactors = max(1, min(2, cores / 2))

    /// Returns the parts of a text that commas separate, without empty ones.
    static func parts(of text: String?) -> [String] {
        (text ?? "").split(separator: ",").map { String($0.trimmed) }.filter { !$0.isEmpty }
    }

    // MARK: Addresses

    static func databaseURL(_ text: String?) throws -> DatabaseURL {
        do {
            return try DatabaseURL(text ?? "")
        } catch {
            throw Settings.Fault(error.detail)
        }
    }

    static let listenProblem = "must be a postgres:// URL, and requires a postgres:// URL in database"

    static func listenURL(_ text: String?) throws -> DatabaseURL? {
        try text.map { try postgresURL($0, or: listenProblem) }
    }

    static func sourceURL(_ text: String?) throws -> DatabaseURL? {
        try text.map {
            try postgresURL($0, or: "must be the URL of the app's database, such as postgres://user@host/name")
        }
    }

    private static func postgresURL(_ text: String, or problem: String) throws -> DatabaseURL {
        guard let url = try? DatabaseURL(text), url.engine == .postgreSQL else { throw Settings.Fault(problem) }
        return url
    }

    static func listenAddress(_ text: String?) throws -> ListenAddress? {
        guard let text else { return nil }
        guard let address = ListenAddress(text) else {
            throw Settings.Fault("\(text) is not HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464")
        }
        return address
    }

    /// Reads the address of a server to which the service sends requests.
    ///
    /// - Parameter example: An address of the kind that the setting needs.
    static func outboundURL(_ text: String, suchAs example: String) throws -> OutboundURL {
        do {
            return try OutboundURL(text)
        } catch {
            throw Settings.Fault("\(error): use a URL such as \(example)")
        }
    }

    /// Reads an origin, and returns it in the one form in which browsers send it (WHATWG URL, "origin"): in lower case,
    /// without the port of its scheme. Any other form would match no page.
    static func origin(_ text: String) throws -> String {
        if text == "*" { return text }
        guard text != "null" else {
            throw Settings.Fault(
                "null is the origin of every page in a sandbox and of every local file, also of foreign ones")
        }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Settings.Fault("\(text) is not ASCII: write the host in punycode, such as xn--mnchen-3ya.example")
        }
        let example = "use https://app.example or *"
        guard !text.contains("*") else {
            throw Settings.Fault("\(text) is not an origin: a pattern matches no page. List each origin, or \(example)")
        }
        guard let end = text.range(of: "://") else {
            throw Settings.Fault("\(text) is not an origin: \(proposal(for: "https://\(text)") ?? example)")
        }
        // Apps in a web view have schemes of their own, such as capacitor://localhost.
        guard ["http", "https"].contains(text[..<end.lowerBound].lowercased()) else {
            return try appOrigin(text, example)
        }
        guard let url = try? OutboundURL(text), url.path == "/", url.query == nil, !isMapped(url) else {
            throw Settings.Fault("\(text) is not an origin: \(proposal(for: text) ?? example)")
        }
        return url.origin
    }

    /// Returns the question whether an address without its path was meant; nil if that is no origin either.
    private static func proposal(for text: String) -> String? {
        let scheme = text.range(of: "://")?.upperBound ?? text.startIndex
        let host = text[scheme...].prefix { !"/?#".contains($0) }
        guard let url = try? OutboundURL("\(text[..<scheme])\(host)"), !isMapped(url) else { return nil }
        return "did you mean \(url.origin)?"
    }

    /// Whether the host is an IPv4 address within IPv6, which browsers write in another form than DNS.
    private static func isMapped(_ url: OutboundURL) -> Bool { url.host.hasPrefix("[") && url.host.contains(".") }

    /// Reads an origin of a scheme that is not one of the web.
    private static func appOrigin(_ text: String, _ example: String) throws -> String {
        let lowered = text.lowercased()
        let origin = lowered.hasSuffix("/") ? String(lowered.dropLast()) : lowered
        let parts = origin.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        let isScheme = parts[0].utf8.allSatisfy { $0.isAlphanumeric || "+-.".utf8.contains($0) }
        guard isScheme, !["ws", "wss", "ftp", "file", ""].contains(parts[0]), !parts[1].isEmpty,
            !parts[1].contains(where: { "/?#@".contains($0) })
        else { throw Settings.Fault("\(text) is not an origin: \(example)") }
        return origin
    }

    // MARK: Names and secrets

    /// A cookie's name is a token (RFC 6265 §4.1.1). No browser could send another one.
    static func requireCookieName(_ text: String) throws {
        let isName = text.utf8.allSatisfy { $0.isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains($0) }
        guard isName, !text.isEmpty else {
            throw Settings.Fault("\(text) is not a cookie's name: use letters, digits, - and _")
        }
    }

    static func requireSlotName(_ text: String) throws {
        let isName = text.utf8.allSatisfy { "_".utf8.contains($0) || $0.isAlphanumeric && !(65...90).contains($0) }
        guard isName, (1...63).contains(text.utf8.count) else {
            throw Settings.Fault("\(text) is not a slot name: use up to 63 lower-case letters, digits and _")
        }
    }

    static func requireKeyLength(_ secret: String) throws {
        guard secret.utf8.count >= 32 else { throw Settings.Fault("must have at least 32 bytes for HS256 (RFC 7518)") }
    }

    static func requireFeedLength(_ secret: String) throws {
        guard secret.utf8.count >= 16 else {
            throw Settings.Fault("must have at least 16 bytes, because it gives access to all tenants")
        }
    }

    /// Reads a secret of webhooks, `whsec_…`.
    static func webhookSecret(_ text: String) throws -> WebhookSignature.Secret {
        do throws(Failure) {
            return try WebhookSignature.Secret(text)
        } catch {
            throw Settings.Fault(error.detail)
        }
    }

    static func claim(_ text: String) throws -> ClaimPath {
        guard let path = ClaimPath(text) else {
            throw Settings.Fault("\(text) is not a claim: a name between dots is empty")
        }
        return path
    }

    /// Reads a condition on a claim, such as `client_id=cl1`.
    static func claimCondition(_ text: String) throws -> ClaimCondition {
        let (name, value) = try pair(text, at: text.firstIndex(of: "="), suchAs: "client_id=mobile")
        return ClaimCondition(path: try claim(name), value: value)
    }

    /// Reads an issuer's name of a role and the role, such as `Teacher=teacher`.
    static func roleName(_ text: String) throws -> RoleName {
        let (name, role) = try pair(text, at: text.lastIndex(of: "="), suchAs: "Lehrkraft=teacher")
        return RoleName(name: name, role: role)
    }

    private static func pair(
        _ text: String, at equals: String.Index?, suchAs example: String
    ) throws -> (String, String) {
        guard let equals, equals > text.startIndex, equals < text.index(before: text.endIndex)
        else { throw Settings.Fault("\(text) is not name=value, such as \(example)") }
        return (String(text[..<equals]), String(text[text.index(after: equals)...]))
    }

    static func requireTenant(_ text: String) throws {
        guard Fields.isIdentifier(text) else {
            throw Settings.Fault("must have 1 to \(Fields.idBytesMax) bytes and no control characters")
        }
    }

    /// Reads the limits of a tenant, such as `school-7:requests=6000:streams=500`.
    static func tenantShare(_ text: String) throws -> TenantShare {
        // A tenant's id may have colons too.
        var names = text.split(separator: ":", omittingEmptySubsequences: false)
        var limits: [Substring] = []
        while let last = names.last, last.contains("=") { limits.append(names.removeLast()) }
        var share = TenantShare(tenant: ID(names.joined(separator: ":")))
        guard !share.tenant.text.isEmpty, !limits.isEmpty else {
            throw Settings.Fault("\(text) is not TENANT:requests=NUMBER:streams=NUMBER")
        }
        for limit in limits {
            guard let number = Int(limit.drop { $0 != "=" }.dropFirst()), (0...1_000_000_000).contains(number) else {
                throw Settings.Fault("\(limit) of \(share.tenant) is not a whole number between 0 and 1000000000")
            }
            switch limit.prefix(while: { $0 != "=" }) {
            case "requests": share.requests = number
            case "streams": share.streams = number
            case "webhooks": share.webhooks = number
            case "push": share.push = number
            case "rows": share.rows = number
            case let name:
                throw Settings.Fault(
                    "\(name) of \(share.tenant) is not one of requests, streams, webhooks, push, rows")
            }
        }
        return share
    }

    static func priority(_ text: String) throws -> Priority {
        guard let priority = Priority(rawValue: text) else {
            throw Settings.Fault("\(text) is not one of \(Priority.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return priority
    }

    static func notificationType(_ text: String) throws -> NotificationType {
        guard let type = NotificationType(rawValue: text) else {
            throw Settings.Fault("\(text) is not a type of notifications, such as BOOKING")
        }
        return type
    }
}
