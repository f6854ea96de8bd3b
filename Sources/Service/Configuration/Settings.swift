import Configuration
import Database
import Domain
import Foundation
import Logging
import Rows
import Values

/// All settings, checked: a service that starts has valid settings.
public struct Settings: Sendable {
    /// One setting, as `--help` lists it.
    public struct Key: Sendable {
        /// In camelCase, as in a settings file. Flags and variables are derived from it.
        public let name: String
        public let help: String
        public let group: String
        /// The default, if any.
        public let fallback: String?
        public let isSecret: Bool

        init(_ name: String, _ group: String, _ help: String, _ fallback: String? = nil, isSecret: Bool = false) {
            self.name = name
            self.group = group
            self.help = help
            self.fallback = fallback
            self.isSecret = isSecret
        }
    }

    /// An invalid setting, described in one line.
    public struct Mistake: Error, CustomStringConvertible, Sendable {
        public let description: String
        /// Nil if no single setting is responsible.
        var setting: String?
    }

    public let host: String
    public let port: Int
    public let database: DatabaseURL
    public let databaseCacheMegabytes: Int
    public let leaderboardMegabytes: Int
    /// Where to listen for notifications, if not at `database`.
    public let databaseListen: DatabaseURL?
    public let databasePooled: Bool
    public let databaseConnections: Int
    public let databaseWriters: Int
    public let databaseTimeoutSeconds: Int
    public let jwtSecret: String?
    public let jwks: String?
    public let jwtIssuer: String?
    public let jwtAudience: String?
    public let serviceTokenDays: Int
    /// How long a replica that is cut off from the database continues to trust tokens.
    public let revocationsTrustedSeconds: Int
    /// The claims that identify a caller. Each has several paths; the first one present is used.
    let claims: [Claim: [[String]]]
    public let reactors: Int
    public let shards: Int
    public let pinsShards: Bool
    public let workers: Int
    public let connectionsMax: Int
    public let connectionTimeoutSeconds: Int
    public let streamsMax: Int
    public let streamsPerUserMax: Int
    /// The limits of descriptors that the operator has set. A default is an upper bound, and not a demand.
    let demandedLimits: Set<String>
    public let heartbeatSeconds: Int
    public let streamCookie: String
    public let rateLimitUser: Int
    public let rateLimitService: Int
    public let eventsKeptHours: Int
    public let eventsKeptMax: Int
    public let notificationsKept: Int
    public let tables: TableCatalog
    /// The secret with which a feed of table changes authenticates.
    let changesSecret: String?
    let changesSigningSecrets: [WebhookSignature.Secret]
    /// Nil if no webhooks are sent.
    let webhook: WebhookSettings?
    /// Nil if nothing is traced.
    let traces: TraceSettings?
    /// The app's database whose log is read, if any.
    let source: DatabaseURL?
    /// The replication slot for reading its log.
    let sourceSlot: String
    /// The name in the notification of `auth.signup`; nil greets without a name.
    public let appName: String?
    public let literalBlackCardFormula: Bool
    /// Whether users themselves report their scores, and choose the black card if no claim decides it.
    public let selfDeclared: Bool
    public let corsOrigins: [String]
    /// Development tokens that the page at `/` offers.
    public let consoleTokens: [String]
    public let logLevel: Logger.Level
    public let logFormat: LogOutput.Format
    public let logRequests: Bool
    public let drainSeconds: Int
    public let shutdownSeconds: Int

    /// The servers of these settings on other machines whose identity is not verified (see ``DatabaseURL/unverified``).
    var unverifiedServers: [(setting: String, hosts: [String], sslMode: String)] {
        [("database", Optional(database)), ("databaseListen", databaseListen), ("source", source)].compactMap {
            setting, url in url?.unverified.map { (setting, $0.hosts, $0.sslMode) }
        }
    }

    /// Reads only the address on which the service listens. A health check needs no more, and so does not read a file
    /// of tables each time.
    public static func address(reader: ConfigReader) throws -> (host: String, port: Int) {
        try address(SettingsReader(reader: reader))
    }

    private static func address(_ values: SettingsReader) throws -> (host: String, port: Int) {
        (values.text("host"), try values.int("port", in: 0...65535))
    }

    /// The settings that name claims.
    enum Claim: String, CaseIterable {
        case role = "claimRole"
        case tenant = "claimTenant"
        case student = "claimStudent"
        case classes = "claimClasses"
        case children = "claimChildren"
        case shops = "claimShops"
        case tier = "claimTier"
    }

    /// Reads and checks the settings.
    ///
    /// - Parameters:
    ///   - reserved: The names that the file of tables cannot declare.
    ///   - verifiesTokens: False for work on the database alone, which needs no keys.
    ///   - ignored: Settings that are treated as not set.
    init(reader: ConfigReader, reserved: ReservedNames, verifiesTokens: Bool, ignored: Set<String> = []) throws {
        let values = SettingsReader(reader: reader, ignored: ignored)
        (host, port) = try Self.address(values)
        do {
            database = try DatabaseURL(values.text("database"))
        } catch {
            throw Mistake("database", error.detail)
        }
        databaseCacheMegabytes = try values.int("databaseCacheMegabytes", in: 1...4096)
        leaderboardMegabytes = try values.int("leaderboardMegabytes", in: 0...1_000_000)
        databaseListen = try Self.listenURL(values, beside: database)
        databasePooled = try values.bool("databasePooled")
        databaseConnections = try values.int("databaseConnections", in: 1...1000)
        databaseWriters = try values.int("databaseWriters", in: 1...64)
        databaseTimeoutSeconds = try values.int("databaseTimeoutSeconds", in: 1...300)
        jwtSecret = values.optionalText("jwtSecret")
        jwks = values.optionalText("jwks")
        if verifiesTokens { try Self.requireKeys(jwtSecret, jwks) }
        try Self.requireLength(jwtSecret)
        (jwtIssuer, jwtAudience) = (values.optionalText("jwtIssuer"), values.optionalText("jwtAudience"))
        serviceTokenDays = try values.int("serviceTokenDays", in: 1...36_500)
        revocationsTrustedSeconds = try values.int("revocationsTrustedSeconds", in: 5...86_400)
        claims = Dictionary(
            uniqueKeysWithValues: Claim.allCases.map { claim in
                (claim, values.list(claim.rawValue).map { $0.split(separator: ".").map(String.init) })
            })
        reactors = try values.int("reactors", in: 1...64)
        shards = try values.int("shards", in: 1...64)
        pinsShards = try values.bool("pinShards")
        workers = try values.int("workers", in: 1...256)
        connectionsMax = try values.int("connectionsMax", in: 16...1_000_000)
        connectionTimeoutSeconds = try values.int("connectionTimeoutSeconds", in: 1...3600)
        streamsMax = try values.int("streamsMax", in: 1...1_000_000)
        demandedLimits = Set(["connectionsMax", "streamsMax"].filter(values.isSet))
        streamsPerUserMax = try values.int("streamsPerUserMax", in: 1...1_000_000)
        heartbeatSeconds = try values.int("heartbeatSeconds", in: 1...3600)
        streamCookie = values.text("streamCookie")
        rateLimitUser = try values.int("rateLimitUser", in: 0...1_000_000_000)
        rateLimitService = try values.int("rateLimitService", in: 0...1_000_000_000)
        eventsKeptHours = try values.int("eventsKeptHours", in: 1...8760)
        eventsKeptMax = try values.int("eventsKeptMax", in: 1000...1_000_000_000)
        notificationsKept = try values.int("notificationsKept", in: EvictionRule.notificationsRange)
        tables = try Self.tables(values.text("tables"), reserved: reserved)
        changesSecret = values.optionalText("changesSecret")
        if let changesSecret, changesSecret.utf8.count < 16 {
            throw Mistake("changesSecret", "must have at least 16 bytes, because it gives access to all tenants")
        }
        changesSigningSecrets = try values.secrets("changesSigningSecrets")
        webhook = try WebhookSettings(values)
        traces = try TraceSettings(values)
        (source, sourceSlot) = try Self.source(values)
        appName = values.optionalText("appName")
        literalBlackCardFormula = try values.bool("literalBlackCardFormula")
        selfDeclared = try values.bool("selfDeclared")
        corsOrigins = values.list("corsOrigins")
        consoleTokens = values.list("consoleTokens")
        if !consoleTokens.isEmpty, !Self.isLoopback(host) {
            throw Mistake("consoleTokens", "are only for development: host must be a loopback address, not \(host)")
        }
        logLevel = try values.word("logLevel")
        logFormat = try values.word("logFormat")
        logRequests = try values.bool("logRequests")
        drainSeconds = try values.int("drainSeconds", in: 0...300)
        shutdownSeconds = try values.int("shutdownSeconds", in: 1...600)
        for origin in corsOrigins where origin != "*" && !origin.contains("://") {
            throw Mistake("corsOrigins", "\(origin) is not an origin: use https://app.example or *")
        }
    }
}

extension Settings {
    /// Whether an address can be reached only from this machine.
    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }

    private static func tables(_ name: String, reserved: ReservedNames) throws -> TableCatalog {
        var file: TableFile?
        do throws(Failure) {
            let found = try TableFile(named: name)
            file = found
            return try found.read(reserved: reserved)
        } catch {
            let mistakes = error.fields.map {
                "\n  \($0.pointer): \($0.detail) (line \(file?.line(of: $0.pointer) ?? 1))"
            }
            throw Mistake("tables", "\(name): \(error.detail)\(mistakes.joined())")
        }
    }

    private static func requireKeys(_ secret: String?, _ jwks: String?) throws {
        guard secret == nil, jwks == nil else { return }
        throw Mistake(
            description: """
                there is no key to verify tokens: set \(Key.variable("jwtSecret")) (at least 32 bytes) or \
                \(Key.variable("jwks")) (a file or URL of public keys). For development, `make run` creates a secret
                """)
    }

    private static func requireLength(_ secret: String?) throws {
        guard let secret, secret.utf8.count < 32 else { return }
        throw Mistake("jwtSecret", "must have at least 32 bytes for HS256 (RFC 7518)")
    }

    private static func listenURL(_ values: SettingsReader, beside database: DatabaseURL) throws -> DatabaseURL? {
        guard let text = values.optionalText("databaseListen") else { return nil }
        guard database.engine == .postgreSQL, let url = try? DatabaseURL(text), url.engine == .postgreSQL else {
            throw Mistake("databaseListen", "must be a postgres:// URL, and requires a postgres:// URL in database")
        }
        return url
    }

    private static func source(_ values: SettingsReader) throws -> (DatabaseURL?, slot: String) {
        let slot = values.text("sourceSlot")
        let isName = slot.utf8.allSatisfy { "_".utf8.contains($0) || $0.isAlphanumeric && !(65...90).contains($0) }
        guard isName, (1...63).contains(slot.utf8.count) else {
            throw Mistake("sourceSlot", "\(slot) is not a slot name: use up to 63 lower-case letters, digits and _")
        }
        guard let text = values.optionalText("source") else { return (nil, slot) }
        guard let url = try? DatabaseURL(text), url.engine == .postgreSQL else {
            throw Mistake("source", "must be the URL of the app's database, such as postgres://user@host/name")
        }
        return (url, slot)
    }

    /// The number of cores decides the number of threads (`Docs/architecture.md`). Most are for streams, because these
    /// fan out.
    private static let cores = max(1, ProcessInfo.processInfo.activeProcessorCount)
    private static let reactorsDefault = max(1, min(2, cores / 2))

    /// All settings, in the order of `--help`.
    public static let catalog: [Key] = [
        Key("host", "Network", "Address to listen on; 0.0.0.0 for all addresses.", "127.0.0.1"),
        Key("port", "Network", "Port to listen on; 0 for any free port, which the log names.", "8080"),
        Key("corsOrigins", "Network", "Origins whose pages may call the API, separated by commas; * for all.", ""),
        Key("connectionsMax", "Network", "Maximum number of open connections, not counting streams.", "10000"),
        Key("connectionTimeoutSeconds", "Network", "Seconds of inactivity after which a connection is closed.", "30"),
        Key(
            "database", "Storage",
            "Database URL: sqlite:PATH, sqlite::memory: (lost when the service stops), or postgres://user@host/name.",
            "sqlite:bellhop.sqlite", isSecret: true),
        Key("databaseCacheMegabytes", "Storage", "SQLite: page cache of the writer in MiB.", "16"),
        Key(
            "leaderboardMegabytes", "Storage",
            """
            Memory for sorted leaderboards in MiB, about 60 bytes per entry. Leaderboards beyond it are read from the \
            database and publish no rank changes.
            """,
            "512"),
        Key(
            "databaseListen", "Storage",
            "PostgreSQL: direct URL for LISTEN, if the database setting points to a pooler.", isSecret: true),
        Key(
            "databasePooled", "Storage",
            "true if PostgreSQL is behind a pooler in transaction mode, such as PgBouncer.", "false"),
        Key("databaseConnections", "Storage", "PostgreSQL: number of connections for reads.", "8"),
        Key("databaseWriters", "Storage", "PostgreSQL: number of connections for writes.", "4"),
        Key(
            "databaseTimeoutSeconds", "Storage",
            "PostgreSQL: time limit of a statement in seconds; a longer statement fails with 503.",
            "5"),
        Key("eventsKeptHours", "Storage", "Hours for which events are kept, so that a stream can resume.", "24"),
        Key("eventsKeptMax", "Storage", "Maximum number of events kept for resuming streams.", "1000000"),
        Key(
            "notificationsKept", "Storage",
            "Maximum number of stored notifications per user; beyond it, the least important is evicted.", "500"),
        Key("jwtSecret", "Tokens", "Secret that verifies HS256 tokens, at least 32 bytes.", isSecret: true),
        Key("jwks", "Tokens", "File or URL of the public keys (JWKS) that verify ES256, RS256 and EdDSA tokens."),
        Key("jwtIssuer", "Tokens", "Required iss of tokens; any if not set."),
        Key("jwtAudience", "Tokens", "Required aud of tokens; any if not set."),
        Key(
            "serviceTokenDays", "Tokens",
            "Maximum lifetime of a backend's token in days; 3660 for Supabase's service_role key (ten years).",
            "\(Limits.tokenDays)"),
        Key(
            "revocationsTrustedSeconds", "Tokens",
            "PostgreSQL: seconds without the database after which a replica rejects all tokens.", "120"),
        Key(
            "claimRole", "Tokens", "Claims with the role; the first present claim is used.",
            "app_metadata.user_role,role"),
        Key(
            "claimTenant", "Tokens", "Claims with the tenant; without them, the tenant is default.",
            "app_metadata.tenant,app_metadata.school_id,tenant"),
        Key("claimStudent", "Tokens", "Claims with the student's own id.", "app_metadata.student_id,student_id"),
        Key("claimClasses", "Tokens", "Claims with the ids of classes.", "app_metadata.class_ids,class_ids"),
        Key("claimChildren", "Tokens", "Claims with the ids of children.", "app_metadata.child_ids,child_ids"),
        Key("claimShops", "Tokens", "Claims with the shop ids of staff.", "app_metadata.shop_ids,shop_ids"),
        Key("claimTier", "Tokens", "Claims with the customer's tier.", "app_metadata.tier,tier"),
        Key(
            "streamCookie", "Streams", "Name of the cookie that can open streams (and has no other use).",
            "bellhop_token"),
        Key(
            "streamsMax", "Streams", "Maximum number of open streams; lowered to the limit of file descriptors.",
            "100000"),
        Key(
            "streamsPerUserMax", "Streams",
            "Maximum number of open streams per user (six tabs on each of three devices).", "20"),
        Key("heartbeatSeconds", "Streams", "Seconds between heartbeats (comments) that keep a stream open.", "15"),
        Key("rateLimitUser", "Limits", "Requests per minute and user; 0 for no limit.", "300"),
        Key("rateLimitService", "Limits", "Requests per minute and backend; 0 for no limit.", "0"),
        Key(
            "selfDeclared", "Limits",
            "true if users may post their own scores and use the black-card lane without a claim in the token.",
            "false"),
        Key("tables", "Tables", "Table file (YAML), or the name of a bundled one: school, posts or todo.", "school"),
        Key(
            "source", "Tables",
            "URL of the app's PostgreSQL, postgres://user@host/name; its log is read instead of webhooks.",
            isSecret: true),
        Key(
            "sourceSlot", "Tables",
            "Replication slot in the app's PostgreSQL; must differ for each Bellhop on a server.", "bellhop"),
        Key(
            "changesSecret", "Tables", "Secret that incoming webhooks send as X-Webhook-Secret instead of a token.",
            isSecret: true),
        Key(
            "changesSigningSecrets", "Tables",
            "Secrets (whsec_…) that verify incoming webhooks (Standard Webhooks); two during a key rotation.",
            isSecret: true),
        Key(
            "webhookURL", "Webhooks",
            "URL that receives unseen notifications and changes of bookings (Docs/webhooks.md).",
            isSecret: true),
        Key(
            "webhookSecrets", "Webhooks", "Secrets (whsec_…) that sign outgoing webhooks; two during a key rotation.",
            isSecret: true),
        Key("webhookPriorities", "Webhooks", "Priorities of notifications that are sent as webhooks.", "URGENT,HIGH"),
        Key(
            "webhookAfterSeconds", "Webhooks", "Seconds for which a notification must stay unseen before it is sent.",
            "30"),
        Key(
            "webhookAtOnce", "Webhooks",
            "true to send without this delay if the user has no open stream (SQLite only).", "true"),
        Key("webhookPrivate", "Webhooks", "true to allow receivers on private networks, also over http://.", "false"),
        Key("webhookTimeoutSeconds", "Webhooks", "Seconds that the receiver may take to answer.", "10"),
        Key("appName", "Texts", "Name of the app in the welcome notification; without it, the greeting has no name."),
        Key(
            "literalBlackCardFormula", "Texts",
            "true to compute the black-card wait with the literal formula, not capped at the standard wait (R-3).",
            "false"),
        Key("reactors", "Threads", "Number of threads for HTTP connections.", "\(reactorsDefault)"),
        Key("shards", "Threads", "Number of threads for streams.", "\(max(1, cores - reactorsDefault))"),
        Key("pinShards", "Threads", "true to pin each stream thread to a core, on a dedicated machine.", "false"),
        Key("workers", "Threads", "Number of threads for blocking requests.", "\(max(4, cores))"),
        Key(
            "consoleTokens", "Operation",
            "Development tokens that the page at / offers, separated by commas; only if host is a loopback address.",
            isSecret: true),
        Key("logLevel", "Operation", "Log level: trace, debug, info, notice, warning, error or critical.", "info"),
        Key("logFormat", "Operation", "Log format: text, or json with one object per line.", "text"),
        Key("logRequests", "Operation", "true to log a line for each request.", "false"),
        Key(
            "tracesEndpoint", "Operation",
            "URL for spans by OTLP/HTTP, such as http://collector:4318/v1/traces; not set: no tracing.",
            isSecret: true),
        Key(
            "tracesHeaders", "Operation", "Headers for the collector as Name=value, separated by commas.",
            isSecret: true),
        Key(
            "tracesPercent", "Operation", "Percentage of requests without a traceparent that are traced.",
            "100"),
        Key(
            "drainSeconds", "Operation",
            "Seconds to continue serving after SIGTERM, while /readyz answers 503; 0 to stop at once.", "5"),
        Key(
            "shutdownSeconds", "Operation", "Seconds that running requests may take to finish when the service stops.",
            "10"),
    ]
}

/// A reader of settings. It reads all values as texts, whatever their type in a file, and parses them here, so that a
/// mistake is reported and not replaced by the default.
struct SettingsReader {
    let reader: ConfigReader
    /// Settings that are treated as not set.
    var ignored: Set<String> = []

    func text(_ name: String) -> String { optionalText(name) ?? "" }

    /// Whether a flag, a variable or the file has a value for a setting.
    func isSet(_ name: String) -> Bool {
        let path = ConfigKey(name)
        guard !ignored.contains(name) else { return false }
        if let text = reader.string(forKey: path) { return !text.isEmpty }
        return reader.int(forKey: path) != nil
    }

    func optionalText(_ name: String) -> String? {
        guard let key = Settings.catalog.first(where: { $0.name == name }) else {
            preconditionFailure("unknown setting \(name)")
        }
        if ignored.contains(name) { return key.fallback }
        let path = ConfigKey(name)
        if let text = reader.string(forKey: path, isSecret: key.isSecret) {
            return text.isEmpty ? key.fallback : text
        }
        if let number = reader.int(forKey: path) { return "\(number)" }
        if let flag = reader.bool(forKey: path) { return "\(flag)" }
        if let texts = reader.stringArray(forKey: path) { return texts.joined(separator: ",") }
        return key.fallback
    }

    func int(_ name: String, in range: ClosedRange<Int>) throws -> Int {
        let text = text(name)
        guard let number = Int(text), range.contains(number) else {
            throw Settings.Mistake(
                name, "\(text) is not a whole number between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }

    func bool(_ name: String) throws -> Bool {
        switch text(name).lowercased() {
        case "true", "yes", "1", "on": true
        case "false", "no", "0", "off": false
        default: throw Settings.Mistake(name, "\(text(name)) is not true or false")
        }
    }

    /// Reads a word of an enumeration.
    func word<Word: RawRepresentable<String> & CaseIterable>(_ name: String) throws -> Word {
        guard let word = Word(rawValue: text(name)) else {
            throw Settings.Mistake(
                name, "\(text(name)) is not one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return word
    }

    func list(_ name: String) -> [String] {
        text(name).split(separator: ",").map { $0.filter { $0 != " " } }.filter { !$0.isEmpty }
    }
}
