import Cryptography
import Database
import MicroHTTP
import Push
import Values

/// The operations of commands that do not run the service.
public enum Operations {
    /// A line of `bellhop routes`.
    public struct RouteLine: Sendable {
        public let method: String
        public let pattern: String
        public let access: String
        /// What the operation requires of a backend with limits; nil if it needs no caller.
        public let capability: String?
        public let feature: String
        /// The set that must be on; nil if it is always on.
        public let set: FeatureSet?
    }

    /// The lines of `bellhop routes`, of all sets.
    public static var routes: [RouteLine] {
        var routes = [
            RouteLine(
                method: "GET", pattern: StreamRoute.pattern, access: Access.bearer.rawValue,
                capability: Authenticator.streamCapability.rawValue, feature: "streams", set: nil)
        ]
        for feature in Catalog.features() {
            routes += feature.endpoints.map {
                RouteLine(
                    method: $0.method.rawValue, pattern: $0.pattern, access: $0.access.rawValue,
                    capability: $0.capability?.rawValue, feature: feature.name, set: feature.set)
            }
        }
        return routes.sorted { ($0.pattern, $0.method) < ($1.pattern, $1.method) }
    }

    /// The lines of `bellhop policies`: the read and write policies of each table, and how long its rows
    /// are kept, and how a person leaves it.
    public static var policies: [(table: String, read: [String], write: [String], kept: String, person: String)] {
        Catalog.tables.map { table in
            (
                table.name, table.read.entries.map(\.description), table.write.entries.map(\.description),
                table.kept ?? "", table.person?.summary ?? ""
            )
        }
    }

    /// The policies as PostgreSQL's row-level security.
    public static var policyStatements: [String] { RowLevelSecurity.statements(for: Catalog.tables) }

    /// Migrates the database, and returns the applied migrations. On PostgreSQL, the URL must be of a role that may
    /// create tables, which the service's role must not be.
    public static func migrate(_ settings: Settings) throws -> [String] {
        do {
            return try withStore(settings, settings.database.engine == .postgreSQL ? .owner : .exclusive) { store in
                try store.migrate(Catalog.migrations, tables: Catalog.tables)
            }
        } catch let error as DatabaseError where error.code == .notPermitted {
            throw DatabaseError(
                .notPermitted,
                """
                \(settings.database) may not change the tables: use the login that owns them, such as bellhop_owner of \
                Deploy/postgres/roles.sql (\(error.detail))
                """)
        }
    }

    /// Returns the migrations that ``migrate(_:)`` would apply, each with its statements. It changes nothing, and
    /// creates no file.
    public static func pendingMigrations(_ settings: Settings) throws -> [(id: String, statements: [String])] {
        let engine = settings.database.engine
        var pending = Set(Catalog.migrations.map(\.id))
        do {
            pending = try withStore(settings, .readOnly) { Set(try $0.pendingMigrations(Catalog.migrations)) }
        } catch let error as DatabaseError where engine == .sqlite && error.code == .cannotOpen {
            // The file does not exist yet.
        }
        return Catalog.migrations.filter { pending.contains($0.id) }.map { ($0.id, $0.statements(for: engine)) }
    }

    /// Opens the database for the work of a command. If root runs it, the files are opened with the rights of their
    /// owner. Otherwise the owner could make root write to files of root.
    ///
    /// - Parameter direct: Another address of the database, without a pooler; nil for its usual address.
    static func withStore<Value>(
        _ settings: Settings, _ access: StoreOptions.Access, at direct: DatabaseURL? = nil,
        _ work: (DatabaseStore) throws -> Value
    ) throws -> Value {
        var options = settings.storeOptions
        options.access = access
        if direct != nil { options.isPooled = false }
        let address = direct ?? settings.database
        return try DatabaseStore.asOwner(of: address) { [options] in
            let store = try DatabaseStore.open(address, options: options, tables: Catalog.tables)
            defer { store.close() }
            return try work(store)
        }
    }

    /// Copies the database into a file while the service is running. The copy contains every write that was answered
    /// before the call.
    public static func backUp(_ settings: Settings, to path: String) throws {
        try requireFile(settings, "use pg_dump (see Docs/operations.md)")
        try DatabaseStore.copy(settings.database, to: path, prepare: prepareCopy)
    }

    /// Replaces the database of a stopped service with a copy.
    ///
    /// - Returns: The new path of the old database, if there was one.
    public static func restore(_ settings: Settings, from path: String) throws -> String? {
        try requireFile(settings, "use pg_restore (see Docs/operations.md)")
        let moment = Clock.system.now().rfc3339.prefix(19).filter { $0.isLetter || $0.isNumber }
        return try DatabaseStore.replace(settings.database, by: path, keepingAs: ".before-\(moment)") { copy in
            // A foreign file, or one of a later version, is refused because of its migrations.
            let pending = try copy.pendingMigrations(Catalog.migrations)
            guard pending.count < Catalog.migrations.count else {
                throw DatabaseError(.schema, "\(path) is not a Bellhop database")
            }
            try requireOwnSchema(copy, path, without: Set(pending))
            try prepareCopy(copy)
        }
    }

    /// Refuses a copy whose schema differs from what its migrations create. A foreign trigger would run with the writes
    /// of the service, and a changed constraint would refuse or admit them.
    private static func requireOwnSchema(_ copy: DatabaseStore, _ path: String, without pending: Set<String>) throws {
        let model = try DatabaseStore.open(DatabaseURL("sqlite::memory:"))
        defer { model.close() }
        _ = try model.migrate(Catalog.migrations.filter { !pending.contains($0.id) }, tables: Catalog.tables)
        let (own, found) = (try schema(of: model), try schema(of: copy))
        let names = Set(own.keys).union(found.keys).filter { own[$0] != found[$0] }.sorted()
        guard let name = names.first else { return }
        let fault = own[name] == nil ? "is not part of Bellhop" : found[name] == nil ? "is missing" : "was changed"
        throw DatabaseError(.schema, "\(path) is not a backup of Bellhop: the \(name) \(fault)")
    }

    /// Returns the statement of each table, index, view and trigger by its kind and name, without SQLite's own.
    private static func schema(of store: DatabaseStore) throws -> [String: String] {
        let objects = try store.read { db in
            try db.rows("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'")
            {
                (try $0.text(0), try $0.optionalText(1) ?? "")
            }
        }
        return Dictionary(uniqueKeysWithValues: objects)
    }

    /// Returns new keys for the settings of push messages: the key that encrypts device tokens, and the key pair of
    /// Web Push.
    public static func newPushKeys() -> (encryption: String, vapid: String, vapidPublic: String) {
        let pair = PrivateKey()
        return (
            RFC4648.encode(AESGCM.randomBytes(PushKeyRing.keyBytes)), RFC4648.encodeURL(pair.scalar ?? []),
            RFC4648.encodeURL(pair.publicPoint)
        )
    }

    /// Encrypts the tokens of all devices with the first key.
    ///
    /// - Returns: The number of devices that were changed, and of the ones that no key decrypts.
    public static func rotatePushKeys(_ settings: Settings) throws -> (changed: Int, unreadable: Int) {
        guard let push = settings.push else {
            throw settings.$pushKeys.mistake("is not set: there is no key to encrypt with")
        }
        // Opening it to write would create a missing file.
        try withStore(settings, .readOnly) { try requireMigrations($0) }
        return try withStore(settings, .exclusive) { store in
            try store.writeAndWait { db in
                let (changed, unreadable) = try PushFeature.rotate(push.keys, in: db)
                let act = PrivilegedAct(
                    privilege: .operator, actor: "bellhop", action: "bellhop push rotate", requestId: nil,
                    isAlwaysNoted: true, isCounted: false)
                let notes = changed.map { tenant, count in
                    AuditNotes(
                        tenant: tenant, at: Clock.system.now(),
                        .each(act, [.init(outcome: .changed, table: PushFeature.devices.name, count: count)]))
                }
                try AuditLog(backends: Backends(), gate: .open).append(notes, in: db)
                return (changed.values.reduce(0, +), unreadable)
            }
        }
    }

    /// Verifies the audit log of each tenant. It also works while the service is running.
    ///
    /// - Parameter known: Lines of earlier verifications (``AuditVerification/line``).
    public static func verifyAudit(_ settings: Settings, known: String = "") throws -> [AuditVerification] {
        try withStore(settings, .readOnly) { store in
            try requireMigrations(store)
            return try store.read {
                try AuditFeature.verify(
                    known: AuditVerification.entries(in: known), keptDays: settings.auditKeptDays, in: $0)
            }
        }
    }

    private static func requireMigrations(_ store: DatabaseStore) throws {
        let pending = try store.pendingMigrations(Catalog.migrations)
        guard pending.isEmpty else {
            throw DatabaseError(.schema, "\(pending.count) migrations have not been applied: run bellhop migrate")
        }
    }

    /// Checks a copy, and makes its log take a new epoch at its first start.
    private static func prepareCopy(_ copy: DatabaseStore) throws {
        let damage = try copy.integrityCheck()
        guard damage.isEmpty else {
            throw DatabaseError(.corrupt, "the copy is damaged: \(damage.joined(separator: "; "))")
        }
        try copy.writeAndWait { try EventLog.forgetEpoch(in: $0) }
    }

    private static func requireFile(_ settings: Settings, _ remedy: String) throws {
        guard settings.database.engine == .postgreSQL else { return }
        throw DatabaseError(.url, "\(settings.database) is a PostgreSQL server: \(remedy)")
    }

    /// Whether a start that has failed may succeed later without a change by the operator.
    public static func isTemporary(_ error: any Error) -> Bool {
        if StartRetry.isHeldByAnother(error) { return true }
        guard let error = error as? DatabaseError else { return false }
        return error.isTransient && error.cause?.isTransient ?? true
    }

    /// Returns what an administrator of PostgreSQL must do before the service can log in; nil if it is enough to wait.
    public static func loginRemedy(_ settings: Settings) -> String? {
        guard let refusal = LoginRefusal(of: settings.database), refusal.isLasting else { return nil }
        return ServerCheck.remedy(of: refusal, group: "bellhop_service")
    }

    /// Returns the reason of a failure for a person at the terminal, without the code for programs.
    public static func reason(of error: any Error) -> String {
        (error as? DatabaseError).map { "database: \($0.reason)" } ?? "\(error)"
    }

    /// Recounts every stored number, and returns all differences. It also works while the service is running.
    public static func check(_ settings: Settings) throws -> [String] {
        try withStore(settings, .readOnly) { try differences(in: $0) }
    }

    private static func differences(in store: DatabaseStore) throws -> [String] {
        let pending = try store.pendingMigrations(Catalog.migrations)
        guard pending.isEmpty else {
            return pending.map { "migration \($0) has not been applied: run bellhop migrate" }
        }
        let damage = try store.integrityCheck().map { "the file is damaged: \($0)" }
        // One read, so that all audits see one snapshot of the database.
        return try damage
            + store.read { db in
                try Catalog.audits.flatMap { audit in
                    try audit.run(db).map { "\(audit.name): \($0)" }
                }
            }
    }
}
