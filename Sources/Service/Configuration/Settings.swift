import Configuration
import Database
import Domain
import Logging
import Push
import Rows
import Values

/// All settings, checked: a service that starts has valid settings.
///
/// Each setting is declared once, in the order of `--help` (``Setting``). A class, so that a transaction that holds the
/// settings holds one reference and not one for each setting.
///
/// `@unchecked Sendable`: every property is set by the initializer and never changes afterwards.
public final class Settings: @unchecked Sendable {
    // MARK: Network
    @Setting(.network, "Address to listen on; 0.0.0.0 for all addresses.", default: "127.0.0.1") public var host: String
    @Setting(.network, "Port to listen on; 0 for any free port, which the log names.", default: 8080, in: 0...65_535)
    public var port: Int
    @Setting(
        .network, "Origins whose pages may call the API, separated by commas; * for all.",
        default: "", part: SettingRule.origin)
    public var corsOrigins: [String]
    @Setting(.network, "Maximum number of open connections, not counting streams.", default: 10_000, in: 16...1_000_000)
    public var connectionsMax: Int
    @Setting(.network, "Seconds of inactivity after which a connection is closed.", default: 30, in: 1...3600)
    public var connectionTimeoutSeconds: Int
    @Setting(
        .network,
        "Address of its own for /metrics, as HOST:PORT; the address of the API then answers 404 there.",
        parse: SettingRule.listenAddress)
    var metricsListen: ListenAddress?
    @Setting(
        .network, "Seconds for which the text of /metrics is reused; 0 to make a new one for each request.",
        default: 1, in: 0...60)
    public var metricsSeconds: Int

    // MARK: Features
    @Setting(
        .features,
        """
        Feature sets that are on, separated by commas: bell, chat, requests, social, shops, challenges, rows, publish; or \
        all (Docs/how-to/features.md).
        """, fallback: FeatureSet.all, parse: SettingRule.featureSets)
    var features: Set<FeatureSet>

    // MARK: Storage
    @Setting(
        .storage,
        "Database URL: sqlite:PATH, sqlite::memory: (lost when the service stops), or postgres://user@host/name.",
        fallback: "sqlite:bellhop.sqlite", isSecret: true, parse: SettingRule.databaseURL)
    public var database: DatabaseURL
    @Setting(.storage, "SQLite: page cache of the writer in MiB.", default: 16, in: 1...4096)
    public var databaseCacheMegabytes: Int
    @Setting(
        .storage,
        """
        Memory for sorted leaderboards in MiB, about 60 bytes per entry. Leaderboards beyond it are read \
        from the database and publish no rank changes.
        """,
        default: 512, in: 0...1_000_000)
    public var leaderboardMegabytes: Int
    /// Where to listen for notifications, if not at `database`.
    @Setting(
        .storage, "PostgreSQL: direct URL for LISTEN, if the database setting points to a pooler.",
        isSecret: true, parse: SettingRule.listenURL)
    public var databaseListen: DatabaseURL?
    @Setting(.storage, "true if PostgreSQL is behind a pooler in transaction mode, such as PgBouncer.")
    public var databasePooled: Bool
    @Setting(.storage, "PostgreSQL: number of connections for reads.", default: 8, in: 1...1000)
    public var databaseConnections: Int
    @Setting(.storage, "PostgreSQL: number of connections for writes.", default: 4, in: 1...64)
    public var databaseWriters: Int
    @Setting(
        .storage, "PostgreSQL: time limit of a statement in seconds; a longer statement fails with 503.",
        default: 5, in: 1...300)
    public var databaseTimeoutSeconds: Int
    @Setting(.storage, "Hours for which events are kept, so that a stream can resume.", default: 24, in: 1...8760)
    public var eventsKeptHours: Int
    @Setting(
        .storage, "Maximum number of events kept for resuming streams.",
        default: 1_000_000, in: 1000...1_000_000_000)
    public var eventsKeptMax: Int
    @Setting(
        .storage, "Maximum number of stored notifications per user; beyond it, the least important is evicted.",
        default: 500, in: EvictionRule.notificationsRange)
    public var notificationsKept: Int
    @Setting(
        .storage, "Days after which notifications are removed; 0 to keep them.", default: 0, in: 0...36_500)
    public var notificationsKeptDays: Int
    @Setting(
        .storage, "Days after which messages of conversations are deleted; 0 to keep them.", default: 0, in: 0...36_500)
    public var messagesKeptDays: Int
    @Setting(
        .storage, "Days after its end after which a booking is deleted; 0 to keep bookings.", default: 0, in: 0...36_500
    )
    public var bookingsKeptDays: Int
    @Setting(.storage, "Days for which entries of the audit log are kept.", default: 365, in: 1...36_500)
    public var auditKeptDays: Int

    @Setting(
        .storage,
        "SQLite: hour of the day (UTC) in which erasures rewrite a file of more than 256 MiB; writes wait meanwhile.",
        default: 3, in: 0...23)
    public var erasureHour: Int

    // MARK: Tokens
    @Setting(
        .tokens, "Secret that verifies HS256 tokens, at least 32 bytes.",
        isSecret: true, check: SettingRule.requireKeyLength)
    public var jwtSecret: String?
    @Setting(
        .tokens,
        """
        Required iss of tokens; any if not set. Without other keys, they are found by the issuer's OpenID configuration.
        """)
    public var jwtIssuer: String?
    @Setting(
        .tokens, "File or URL of the public keys (JWKS) that verify ES256, ES384, ES512, RS…, PS… and EdDSA tokens.")
    public var jwks: String?
    @Setting(.tokens, "true to fetch keys also over http:// from private networks.") public var jwksPrivate: Bool
    @Setting(
        .tokens, "Values of aud. A token must have one of them; any if not set.", default: "", part: { $0 })
    public var jwtAudience: [String]
    /// Conditions on claims of all tokens.
    @Setting(
        .tokens,
        """
        Claims that a token must have, such as client_id=web,client_id=mobile,token_use=access. Values of the same \
        claim are alternatives.
        """, default: "", part: SettingRule.claimCondition)
    var jwtRequire: [ClaimCondition]
    /// Conditions on claims of a backend's token.
    @Setting(
        .tokens, "Claims that make a token a backend's, such as scope=bellhop or client_id=worker.",
        default: "", part: SettingRule.claimCondition)
    var jwtService: [ClaimCondition]
    /// The tenant of all tokens, whatever they claim.
    @Setting(.tokens, "Tenant of all tokens; then no claim names it.", check: SettingRule.requireTenant)
    var jwtTenant: String?
    @Setting(.tokens, "Maximum bytes of a token.", default: Limits.tokenBytes, in: 1024...Limits.tokenBytesMax)
    public var jwtBytes: Int
    @Setting(.tokens, "File (YAML) with further issuers and their rules (Docs/how-to/tokens.md).", named: "issuers")
    var issuersFile: String?
    @Setting(
        .tokens, "Maximum lifetime of a backend's token in days; 3660 for Supabase's service_role key (ten years).",
        default: Limits.tokenDays, in: 1...36_500)
    public var serviceTokenDays: Int
    @Setting(
        .tokens,
        "Keys of backends as NAME:KEY[:tenant=ID][:can=notify+publish], separated by commas (Docs/how-to/backends.md).",
        isSecret: true, parse: SettingRule.serviceKeys)
    var serviceKeys: [ServiceKey]
    /// How long streams stay open at a replica that is cut off from the database (see `RevocationList.trusted`).
    @Setting(
        .tokens, "PostgreSQL: seconds without the database after which a replica ends its streams.",
        default: 120, in: 5...86_400)
    public var revocationsTrustedSeconds: Int
    @Setting(
        .tokens, "Claims with the user's id; the first present claim is used, as for each meaning below.",
        default: "sub", part: SettingRule.claim)
    var claimUser: [ClaimPath]
    @Setting(
        .tokens, "Claims with the role: a text, a list, an object's names, or words of scope.",
        default: "app_metadata.user_role", part: SettingRule.claim)
    var claimRole: [ClaimPath]
    /// The issuer's names of roles.
    @Setting(
        .tokens,
        "The issuer's names of roles and the roles, such as Lehrkraft=teacher; the first that a token has decides.",
        default: "", part: SettingRule.roleName)
    var roles: [RoleName]
    @Setting(
        .tokens, "Claims with the id of the session.", default: "session_id,sid", part: SettingRule.claim)
    var claimSession: [ClaimPath]
    @Setting(
        .tokens, "Claims with the capabilities of a backend (Docs/how-to/backends.md); without them, it has all.",
        default: "app_metadata.capabilities", part: SettingRule.claim)
    var claimCapabilities: [ClaimPath]
    @Setting(
        .tokens, "Claims with the tenant; without them, the tenant is default.",
        default: "app_metadata.tenant,app_metadata.school_id", part: SettingRule.claim)
    var claimTenant: [ClaimPath]
    @Setting(
        .tokens, "Claims with the student's own id.",
        default: "app_metadata.student_id", part: SettingRule.claim)
    var claimStudent: [ClaimPath]
    @Setting(
        .tokens, "Claims with the ids of classes.",
        default: "app_metadata.class_ids", part: SettingRule.claim)
    var claimClasses: [ClaimPath]
    @Setting(
        .tokens, "Claims with the ids of children.",
        default: "app_metadata.child_ids", part: SettingRule.claim)
    var claimChildren: [ClaimPath]
    @Setting(
        .tokens, "Claims with the shop ids of staff.",
        default: "app_metadata.shop_ids", part: SettingRule.claim)
    var claimShops: [ClaimPath]
    @Setting(.tokens, "Claims with the customer's tier.", default: "app_metadata.tier", part: SettingRule.claim)
    var claimTier: [ClaimPath]

    // MARK: Streams
    @Setting(
        .streams, "Name of the cookie that can open streams (and has no other use).", default: "bellhop_token",
        check: SettingRule.requireCookieName)
    public var streamCookie: String
    @Setting(
        .streams, "Maximum number of open streams; lowered to the limit of file descriptors.",
        default: 100_000, in: 1...1_000_000)
    public var streamsMax: Int
    @Setting(
        .streams, "Maximum number of open streams per user (six tabs on each of three devices).",
        default: 20, in: 1...1_000_000)
    public var streamsPerUserMax: Int
    @Setting(
        .streams, "Maximum number of open streams of all users of a tenant; 0 for no limit.", default: 0,
        in: 0...1_000_000)
    public var streamsPerTenantMax: Int
    @Setting(.streams, "Seconds between heartbeats (comments) that keep a stream open.", default: 15, in: 1...3600)
    public var heartbeatSeconds: Int

    // MARK: Limits
    @Setting(.limits, "Requests per minute and user; 0 for no limit.", default: 300, in: 0...1_000_000_000)
    public var rateLimitUser: Int
    @Setting(.limits, "Requests per minute and backend; 0 for no limit.", default: 0, in: 0...1_000_000_000)
    public var rateLimitService: Int
    @Setting(
        .limits, "Requests per minute of all users and backends of a tenant; 0 for no limit.", default: 0,
        in: 0...1_000_000_000)
    public var rateLimitTenant: Int
    @Setting(
        .limits,
        "Webhooks per minute of a tenant on each replica, including retries; more wait. 0 for no limit.", default: 0,
        in: 0...1_000_000_000)
    public var webhookLimitTenant: Int
    @Setting(
        .limits,
        "Push messages per minute of a tenant on each replica, including retries; more wait. 0 for no limit.",
        default: 0, in: 0...1_000_000_000)
    public var pushLimitTenant: Int
    @Setting(
        .limits, "Stored rows of a tenant, counted once a minute; 0 for no limit.", default: 0,
        in: 0...1_000_000_000)
    public var rowsPerTenantMax: Int
    @Setting(
        .limits, "Other limits for single tenants, such as school-7:requests=6000:streams=500.",
        part: SettingRule.tenantShare)
    var tenantShares: [TenantShare]
    /// Whether users themselves report their scores, and choose the black card if no claim decides it.
    @Setting(
        .limits, "true if users may post their own scores and use the black-card lane without a claim in the token.")
    public var selfDeclared: Bool

    // MARK: Tables
    @Setting(
        .tables, "Table file (YAML), or the name of a bundled one: school, posts or todo; not set: no tables.",
        named: "tables")
    var tableFile: String?
    /// The app's database whose log is read, if any.
    @Setting(
        .tables, "URL of the app's PostgreSQL, postgres://user@host/name; its log is read instead of webhooks.",
        isSecret: true, parse: SettingRule.sourceURL)
    var source: DatabaseURL?
    /// The replication slot for reading its log.
    @Setting(
        .tables, "Replication slot in the app's PostgreSQL; must differ for each Bellhop on a server.",
        default: "bellhop", check: SettingRule.requireSlotName)
    var sourceSlot: String
    /// The secret with which a feed of table changes authenticates.
    @Setting(
        .tables, "Secret that incoming webhooks send as X-Webhook-Secret instead of a token.",
        isSecret: true, check: SettingRule.requireFeedLength)
    var changesSecret: String?
    @Setting(
        .tables, "Secrets (whsec_…) that verify incoming webhooks (Standard Webhooks); two during a key rotation.",
        isSecret: true, part: SettingRule.webhookSecret)
    var changesSigningSecrets: [WebhookSignature.Secret]

    // MARK: Webhooks
    @Setting(
        .webhooks, "URL that receives unseen notifications and changes of bookings (Docs/webhooks.md).",
        isSecret: true)
    var webhookURL: String?
    @Setting(
        .webhooks, "Secrets (whsec_…) that sign outgoing webhooks; two during a key rotation.",
        isSecret: true, part: SettingRule.webhookSecret)
    var webhookSecrets: [WebhookSignature.Secret]
    @Setting(
        .webhooks, "Priorities of notifications that are sent as webhooks.",
        default: "URGENT,HIGH", part: SettingRule.priority)
    var webhookPriorities: [Priority]
    @Setting(.webhooks, "true to send unread messages of conversations as webhooks, too.", default: true)
    var webhookMessages: Bool
    @Setting(
        .webhooks, "Seconds for which a notification or message must stay unseen before it is sent.",
        default: 30, in: 0...86_400)
    var webhookAfterSeconds: Int
    @Setting(.webhooks, "true to send without this delay if the user has no open stream.", default: true)
    var webhookAtOnce: Bool
    @Setting(.webhooks, "true to allow receivers on private networks, also over http://.") var webhookPrivate: Bool
    @Setting(.webhooks, "Seconds that the receiver may take to answer.", default: 10, in: 1...60)
    var webhookTimeoutSeconds: Int

    // MARK: Push
    /// The keys that encrypt the tokens of devices.
    @Setting(
        .push,
        "Keys that encrypt device tokens, 32 bytes in base64; the first encrypts, all decrypt. Not set: no push.",
        isSecret: true, part: PushSettings.encryptionKey)
    var pushKeys: [[UInt8]]
    @Setting(
        .push, "Priorities of notifications that are sent to devices.",
        default: "URGENT,HIGH", part: SettingRule.priority)
    var pushPriorities: [Priority]
    @Setting(
        .push, "Types of notifications that are sent to devices whatever their priority.",
        default: "BOOKING,REQUEST", part: SettingRule.notificationType)
    var pushTypes: [NotificationType]
    @Setting(
        .push,
        "Seconds for which a notification or message must stay unseen before it is sent; at once without a stream.",
        default: 10, in: 0...86_400)
    var pushAfterSeconds: Int
    @Setting(.push, "generic sends the text for locked screens; full sends title and text.", default: .generic)
    var pushContent: PushSettings.Content
    /// The settings of the providers, as each declares its own.
    let pushProviders = PushProviders.all.flatMap { $0.settings }.map {
        Setting<String?>(.push, $0.help, named: $0.name, isSecret: $0.isSecret)
    }
    @Setting(.push, "true to allow providers on private networks, also over http://.") var pushPrivate: Bool
    @Setting(.push, "File of certificates (PEM) to trust instead of the system's.") var pushCertificates: String?
    @Setting(.push, "Seconds that a provider may take to answer.", default: 10, in: 1...60)
    var pushTimeoutSeconds: Int

    // MARK: Texts
    /// The name in the notification of `auth.signup`; nil greets without a name.
    @Setting(.texts, "Name of the app in the welcome notification; without it, the greeting has no name.")
    public var appName: String?
    @Setting(
        .texts, "true to compute the black-card wait with the literal formula, not capped at the standard wait (R-3).")
    public var literalBlackCardFormula: Bool

    // MARK: Threads
    @Setting(.threads, "Number of threads for HTTP connections.", default: SettingRule.reactors, in: 1...64)
    public var reactors: Int
    @Setting(
        .threads, "Number of threads for streams.",
        default: max(1, SettingRule.cores - SettingRule.reactors), in: 1...64)
    public var shards: Int
    @Setting(.threads, "true to pin each stream thread to a core, on a dedicated machine.") public var pinShards: Bool
    @Setting(.threads, "Number of threads for blocking requests.", default: max(4, SettingRule.cores), in: 1...256)
    public var workers: Int

    // MARK: Operation
    /// Development tokens that the page at `/` offers.
    @Setting(
        .operation,
        "Development tokens that the page at / offers, separated by commas; only if host is a loopback address.",
        isSecret: true, part: { $0 })
    public var consoleTokens: [String]
    @Setting(.operation, "Log level: trace, debug, info, notice, warning, error or critical.", default: .info)
    public var logLevel: Logger.Level
    @Setting(.operation, "Log format: text, or json with one object per line.", default: .text)
    public var logFormat: LogOutput.Format
    @Setting(.operation, "true to log a line for each request.") public var logRequests: Bool
    @Setting(
        .operation, "true to note in the audit log also that backends, administrators and staff read data of others.")
    public var auditReads: Bool
    @Setting(
        .operation, "URL for spans by OTLP/HTTP, such as http://collector:4318/v1/traces; not set: no tracing.",
        isSecret: true, check: TraceSettings.checkEndpoint)
    var tracesEndpoint: String?
    @Setting(
        .operation, "Headers for the collector as Name=value, separated by commas.",
        isSecret: true, part: TraceSettings.header)
    var tracesHeaders: [TraceSettings.Header]
    @Setting(.operation, "Percentage of requests without a traceparent that are traced.", default: 100, in: 0...100)
    var tracesPercent: Int
    @Setting(
        .operation, "Seconds to continue serving after SIGTERM, while /readyz answers 503; 0 to stop at once.",
        default: 5, in: 0...300)
    public var drainSeconds: Int
    @Setting(
        .operation, "Seconds that running requests may take to finish when the service stops.",
        default: 10, in: 1...600)
    public var shutdownSeconds: Int

    // MARK: Settings that follow from others

    /// The tables of the table file.
    public private(set) var tables = TableCatalog.empty
    /// Whose tokens are accepted: those of the issuer of the settings, if there is one, then those of the file.
    private(set) var issuers: [IssuerRules] = []
    /// Nil if no webhooks are sent.
    private(set) var webhook: WebhookSettings?
    /// Nil if no push messages are sent.
    private(set) var push: PushSettings?
    /// Nil if nothing is traced.
    private(set) var traces: TraceSettings?

    // MARK: Reading

    /// Settings without values.
    init() { _ = Self.named(self) }

    private static let declared = Settings()

    /// All settings, in the order of `--help`.
    public static let catalog = named(declared)

    /// Returns the declaration of a setting, for messages that name it.
    static func key<Value>(_ setting: KeyPath<Settings, Setting<Value>>) -> Key { declared[keyPath: setting] }

    static func variable<Value>(_ setting: KeyPath<Settings, Setting<Value>>) -> String { key(setting).variable }

    /// Reads only the address on which the service listens. A health check needs no more, and so does not read a file
    /// of tables each time.
    public static func address(reader: ConfigReader) throws -> (host: String, port: Int) {
        let (settings, values) = (Settings(), SettingsReader(reader: reader))
        try settings.$host.read(values)
        try settings.$port.read(values)
        return (settings.host, settings.port)
    }

    /// Reads only the feature sets that are on, for commands that need nothing else.
    public static func features(reader: ConfigReader) throws -> Set<FeatureSet> {
        let settings = Settings()
        try settings.$features.read(SettingsReader(reader: reader))
        return settings.features
    }

    /// Reads and checks the settings.
    ///
    /// - Parameters:
    ///   - reserved: The names that the file of tables cannot declare.
    ///   - verifiesTokens: False for work on the database alone, which needs no keys.
    ///   - ignored: Settings that are treated as not set.
    init(reader: ConfigReader, reserved: ReservedNames, verifiesTokens: Bool, ignored: Set<String> = []) throws {
        let values = SettingsReader(reader: reader, ignored: ignored)
        for key in Self.named(self) { try key.read(values) }
        if databaseListen != nil, database.engine != .postgreSQL {
            throw $databaseListen.mistake(SettingRule.listenProblem)
        }
        if source != nil, !features.contains(.rows) {
            throw $source.mistake("needs the feature set rows, which is off (\($features.variable))")
        }
        for secrets in [$webhookSecrets, $changesSigningSecrets]
        where Set(secrets.wrappedValue).count < secrets.wrappedValue.count {
            throw secrets.mistake("has the same secret twice: a rotation needs the old and the new one")
        }
        if !consoleTokens.isEmpty, !host.isLoopbackHost {
            throw $consoleTokens.mistake("are only for development: host must be a loopback address, not \(host)")
        }
        try requireOwnServiceKeys()
        webhook = try WebhookSettings(self)
        push = try PushSettings(self)
        traces = TraceSettings(self)
        tables = try Self.catalog(of: $tableFile, reserved: reserved)
        try requireSetsOfContacts()
        issuers = try readIssuers()
        if verifiesTokens, issuers.isEmpty { throw Self.missingKeys }
    }

    private static var missingKeys: Mistake {
        Mistake(
            description: """
                there is no key to verify tokens: set \(variable(\.$jwtIssuer)) (the URL of your identity provider), \
                \(variable(\.$jwks)) (a file or URL of public keys) or \(variable(\.$jwtSecret)) (at least 32 bytes). \
                For development, `make run` creates a secret
                """)
    }

    private static func catalog(of setting: Setting<String?>, reserved: ReservedNames) throws -> TableCatalog {
        guard let name = setting.wrappedValue else { return .empty }
        var file: TableFile?
        do throws(Failure) {
            let found = try TableFile(named: name)
            file = found
            return try found.read(reserved: reserved)
        } catch {
            let mistakes = error.fields.map {
                "\n  \($0.pointer): \($0.detail) (line \(file?.line(of: $0.pointer) ?? 1))"
            }
            throw setting.mistake("\(name): \(error.detail)\(mistakes.joined())")
        }
    }
}

extension Settings {
    /// The servers of these settings on other machines whose identity is not verified (see ``DatabaseURL/unverified``).
    var unverifiedServers: [(setting: Key, hosts: [String], sslMode: String)] {
        [($database as Key, Optional(database)), ($databaseListen, databaseListen), ($source, source)].compactMap {
            setting, url in url?.unverified.map { (setting, $0.hosts, $0.sslMode) }
        }
    }
}
