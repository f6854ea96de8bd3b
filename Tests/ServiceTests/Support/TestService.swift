import BellhopClient
import Configuration
import Cryptography
import Database
import Domain
import Foundation
import Logging
import MicroHTTP
import PostgresServer
import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// The whole service on a free port, with its own database in a file or on PostgreSQL. A test can do what a user can
/// do.
///
/// `@unchecked Sendable`: `app`, `anyone` and `overrides` change only in `restart`, which a test calls while nothing
/// else uses them.
final class TestService: @unchecked Sendable {
    static let secret = "a secret of the tests, which has more than 32 bytes"
    /// The start time of a service whose test compares times.
    static let morning = "2026-01-10T10:00:00Z"

    let clock: ManualClock
    let directory: TemporaryDirectory
    private(set) var app: App
    /// A client without a token. Clients of all identities share its connections, because a new session costs more
    /// than a call.
    private(set) var anyone: BellhopClient
    private var overrides: [String: String]
    /// The shares of the badges that it hides.
    private var hiddenShares: BadgeShares?
    let database: TestDatabase
    private let logger: Logger
    /// The service whose replica this is, which creates and drops the database; nil for the first service.
    private let original: TestService?

    /// The caller of a request.
    struct Identity: Sendable {
        var subject: String
        var claims: [String: JSON] = [:]
        /// A token that is sent as it is; nil for a new token with the claims.
        var token: String?

        /// The claims that give rights.
        var metadata: [String: JSON] {
            get { claims["app_metadata"]?.object ?? [:] }
            set { claims["app_metadata"] = .object(newValue) }
        }

        init(subject: String, claims: [String: JSON] = [:], metadata: [String: JSON] = [:], token: String? = nil) {
            (self.subject, self.claims, self.token) = (subject, claims, token)
            if !metadata.isEmpty { self.metadata = metadata }
        }

        static func user(_ name: String, tenant: String? = nil) -> Identity {
            Identity(subject: name, metadata: tenant.map { ["tenant": .string($0)] } ?? [:])
        }

        static func service(tenant: String? = nil) -> Identity {
            var identity = user("backend", tenant: tenant)
            identity.metadata["user_role"] = "service_role"
            return identity
        }

        static func staff(of shops: String..., named name: String = "staff") -> Identity {
            Identity(subject: name, metadata: ["user_role": "staff", "shop_ids": .array(shops.map(JSON.string))])
        }

        static let admin = Identity(subject: "admin", metadata: ["user_role": "admin"])

        static func bearer(_ token: String) -> Identity { Identity(subject: "", token: token) }
    }

    private init(
        clock: ManualClock, directory: TemporaryDirectory, overrides: [String: String], database: TestDatabase,
        original: TestService? = nil, logger: Logger = Logger(label: "test"), hiding hiddenShares: BadgeShares? = nil
    ) throws {
        self.hiddenShares = hiddenShares
        self.clock = clock
        self.logger = logger
        self.directory = directory
        self.overrides = overrides
        self.database = database
        self.original = original
        app = try Self.makeApp(clock, database, overrides, logger, hiddenShares)
        anyone = Self.makeClient(of: app)
    }

    deinit {
        let (app, directory, database, original) = (app, directory, database, original)
        Task.detached {
            await app.shutdown()
            if original == nil { database.drop() }
            // The directory is deleted with the last service that uses it.
            withExtendedLifetime(directory) {}
        }
    }

    /// - Parameter overrides: settings that differ from the tests' own, as texts.
    static func start(
        _ overrides: [String: String] = [:], at moment: String? = nil, logger: Logger = Logger(label: "test"),
        hiding hiddenShares: BadgeShares? = nil
    ) throws -> TestService {
        let directory = try TemporaryDirectory()
        let clock = ManualClock(moment.flatMap { Timestamp(rfc3339: $0) })
        return try TestService(
            clock: clock, directory: directory, overrides: overrides,
            database: TestDatabase(in: directory), logger: logger, hiding: hiddenShares)
    }

    /// Starts the service on an existing database.
    static func start(
        on database: TestDatabase, in directory: TemporaryDirectory, _ overrides: [String: String] = [:],
        at moment: String
    ) throws -> TestService {
        try TestService(
            clock: ManualClock(Timestamp(rfc3339: moment)), directory: directory, overrides: overrides,
            database: database)
    }

    /// Starts two replicas on one PostgreSQL database, with one clock.
    ///
    /// - Parameter partition: the proxy through which the second replica reaches the database; nil for a direct
    ///   connection.
    static func startReplicas(
        _ overrides: [String: String] = [:], secondThrough partition: PartitionProxy? = nil
    ) throws -> (TestService, TestService) {
        let clock = ManualClock(nil)
        let first = try TestService(
            clock: clock, directory: TemporaryDirectory(), overrides: overrides,
            database: TestDatabase(on: PostgresServer.shared()))
        var others = overrides
        if let partition {
            // As in production: a connection that does not answer is given up after two seconds.
            others["database"] = first.database.url.replacingOccurrences(
                of: ":\(partition.target)/", with: ":\(partition.port)/"
            ).replacingOccurrences(of: TestDatabase.patience, with: "")
        }
        let second = try TestService(
            clock: clock, directory: first.directory, overrides: others, database: first.database, original: first)
        return (first, second)
    }

    /// Stops the service cleanly and starts another on the same database.
    ///
    /// - Parameters:
    ///   - drainSeconds: how long it keeps serving while not ready, by its clock.
    ///   - changes: settings that change with the restart.
    ///   - hidden: the shares of the badges that it hides from now on; nil for the same ones.
    ///   - meanwhile: an action while no service runs.
    func restart(
        drainSeconds: Int = 0, with changes: [String: String] = [:], hiding hidden: BadgeShares? = nil,
        meanwhile: () throws -> Void = {}
    ) async throws {
        await app.shutdown(drainSeconds: drainSeconds)
        try meanwhile()
        overrides.merge(changes) { $1 }
        hiddenShares = hidden ?? hiddenShares
        app = try Self.makeApp(clock, database, overrides, logger, hiddenShares)
        anyone = Self.makeClient(of: app)
    }

    private static func makeClient(of app: App) -> BellhopClient {
        BellhopClient(baseURL: "http://127.0.0.1:\(app.port)", connectionsMax: 256)
    }

    private static func makeApp(
        _ clock: ManualClock, _ database: TestDatabase, _ overrides: [String: String], _ logger: Logger,
        _ hiddenShares: BadgeShares?
    ) throws -> App {
        var values = [
            "port": "0", "database": database.url, "databaseConnections": "3", "databaseWriters": "2",
            // Longer than the default, for machines that run hundreds of tests at once.
            "databaseTimeoutSeconds": "60",
            "jwtSecret": secret, "reactors": "1",
            "shards": "2", "workers": "2", "rateLimitUser": "0", "logLevel": "critical",
            // Tests read a counter right after the act that it counts.
            "metricsSeconds": "0", "tables": "school",
        ]
        values.merge(overrides) { $1 }
        let app = try App(
            settings: Self.settings(values), logger: logger, clock: clock.clock, hiding: hiddenShares)
        try app.start()
        return app
    }

    static func settings(_ values: [String: String]) throws -> Settings {
        let entries = values.map { (AbsoluteConfigKey([$0.key]), ConfigValue(.string($0.value), isSecret: false)) }
        return try Settings(
            reader: ConfigReader(provider: InMemoryProvider(values: Dictionary(uniqueKeysWithValues: entries))))
    }

    var port: Int { app.port }

    /// Ends the windows that collect invalidations and counts.
    func endWindows() { app.shards.post(.endWindows) }

    var baseURL: String { "http://127.0.0.1:\(app.port)" }

    func client(as identity: Identity) -> BellhopClient {
        anyone.with(token: identity.token ?? token(for: identity))
    }

    func token(for identity: Identity, lifetimeSeconds: Int64 = 3600) -> String {
        let now = clock.now.seconds
        var payload = identity.claims
        payload["sub"] = .string(identity.subject)
        payload["iat"] = payload["iat"] ?? .integer(now)
        payload["exp"] = payload["exp"] ?? .integer(now + lifetimeSeconds)
        return Self.sign(payload)
    }

    static func sign(
        _ payload: [String: JSON], header: JSON = ["alg": "HS256", "typ": "JWT"], secret: String = secret
    ) -> String {
        let signed = base64URL(header.data) + "." + base64URL(JSON.object(payload).data)
        return signed + "." + base64URL(Data(AuthenticationKey(secret.utf8).code(for: signed.utf8)))
    }

    static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }

    /// Opens a stream and waits for its first event.
    func listen(
        as identity: Identity, topics: [String] = [], lastEventID: String? = nil
    ) async throws -> StreamListener {
        let listener = StreamListener(client(as: identity).events(topics: topics, lastEventID: lastEventID))
        listener.opener = (self, identity)
        listener.ready = try await listener.next("stream:ready")
        return listener
    }

    /// Opens and closes a stream, and returns its position. A stream that resumes there receives all later events.
    func position(as identity: Identity) async throws -> String {
        let stream = try await listen(as: identity)
        defer { stream.close() }
        return stream.ready.id
    }

    /// Returns the sequence numbers behind the ids of events, which only the service can decode.
    func sequences(_ events: [ServerSentEvent]) -> [Int64] {
        let ids = app.runner.reader.log.ids
        return events.compactMap { Cursor($0.id).flatMap(ids.sequence(of:)) }
    }

    /// Alters the schema behind the service's back: through the service on SQLite, as an administrator on PostgreSQL.
    func alterTable(sqlite: SQL, postgres: String) async throws {
        guard let name = database.name else { return try await app.store.write { _ = try $0.run(sqlite) } }
        try PostgresServer.shared().run([postgres], in: name)
    }

    /// Expects that every stored count equals a recount.
    func expectExactCounts() throws {
        let differences = try audit()
        #expect(differences.isEmpty, "\(differences)")
    }

    /// Runs the service's own recount of all stored data.
    func audit() throws -> [String] {
        try app.store.read { db in try Catalog.audits.flatMap { try $0.run(db) } }
    }

    /// Returns whether a periodic job has work to do.
    func isDue(_ tick: Tick) throws -> Bool {
        guard let now = tick.time(by: app.runner.clock) else { return false }
        guard let due = tick.due?(now) else { return true }
        return try app.store.read(isSingle: true) { try $0.exists(due) }
    }

    /// Runs a periodic job immediately if it has work to do.
    func run(_ tick: Tick) async throws {
        guard try isDue(tick) else { return }
        let runner = app.runner
        try await app.store.write { db in
            try runner.write(as: .system(tenant: "default"), in: db) { try tick.body($0) }
        }
    }
}
