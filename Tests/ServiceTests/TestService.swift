import BellhopClient
import Configuration
import Crypto
import Database
import Domain
import Foundation
import Logging
import PostgresServer
import Testing

@testable import Service

/// The whole service on a free port with a database of its own, a file or on PostgreSQL: what a test does, a user could
/// do.
///
/// `@unchecked Sendable`: `app` changes only in `restart`, which a test calls while nothing else runs.
final class TestService: @unchecked Sendable {
    static let secret = "a secret of the tests, which has more than 32 bytes"

    let clock: ManualClock
    let directory: URL
    private(set) var app: App
    private let overrides: [String: String]
    private let database: TestDatabase
    /// Nil for a replica of another one, which makes the database and drops it.
    private let original: TestService?

    /// Who asks.
    struct Identity: Sendable {
        var subject: String
        var claims: [String: JSON] = [:]

        static func user(_ name: String, tenant: String? = nil) -> Identity {
            Identity(subject: name, claims: tenant.map { ["tenant": .string($0)] } ?? [:])
        }

        static func service(tenant: String? = nil) -> Identity {
            var identity = user("backend", tenant: tenant)
            identity.claims["role"] = "service_role"
            return identity
        }

        static func staff(of shops: String..., named name: String = "staff") -> Identity {
            Identity(
                subject: name, claims: ["role": "staff", "shop_ids": .array(shops.map(JSON.string))])
        }

        static let admin = Identity(subject: "admin", claims: ["role": "admin"])
    }

    private init(
        clock: ManualClock, directory: URL, overrides: [String: String], database: TestDatabase,
        original: TestService? = nil
    ) throws {
        self.clock = clock
        self.directory = directory
        self.overrides = overrides
        self.database = database
        self.original = original
        app = try Self.makeApp(clock, database, overrides)
    }

    deinit {
        let (app, directory, database, original) = (app, directory, database, original)
        Task.detached {
            await app.shutdown()
            guard original == nil else { return }
            database.drop()
            try? FileManager.default.removeItem(at: directory)
        }
    }

    /// - Parameter overrides: settings that differ from the tests' own, as texts.
    static func start(_ overrides: [String: String] = [:], at moment: String? = nil) throws -> TestService {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("bellhop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let clock = ManualClock(moment.flatMap { Timestamp(rfc3339: $0) })
        return try TestService(
            clock: clock, directory: directory, overrides: overrides, database: TestDatabase(in: directory))
    }

    /// Two replicas on one database of PostgreSQL, with one clock.
    static func startReplicas(_ overrides: [String: String] = [:]) throws -> (TestService, TestService) {
        let clock = ManualClock(nil)
        let first = try TestService(
            clock: clock, directory: FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString),
            overrides: overrides, database: TestDatabase(on: PostgresServer.shared()))
        let second = try TestService(
            clock: clock, directory: first.directory, overrides: overrides, database: first.database, original: first)
        return (first, second)
    }

    /// Stops the service cleanly and starts another on the same database.
    func restart() async throws {
        await app.shutdown()
        app = try Self.makeApp(clock, database, overrides)
    }

    private static func makeApp(_ clock: ManualClock, _ database: TestDatabase, _ overrides: [String: String]) throws
        -> App
    {
        var values = [
            "port": "0", "database": database.url, "databaseConnections": "3", "databaseWriters": "2",
            // Longer than a service's, for machines on which hundreds of tests run at once.
            "databaseTimeoutSeconds": "60",
            "jwtSecret": secret, "reactors": "1",
            "shards": "2", "workers": "2", "rateLimitUser": "0", "logLevel": "critical",
        ]
        values.merge(overrides) { $1 }
        let app = try App(
            settings: Self.settings(values), logger: Logger(label: "test"), clock: clock.clock)
        try app.start()
        return app
    }

    static func settings(_ values: [String: String]) throws -> Settings {
        let entries = values.map { (AbsoluteConfigKey([$0.key]), ConfigValue(.string($0.value), isSecret: false)) }
        return try Settings(
            reader: ConfigReader(provider: InMemoryProvider(values: Dictionary(uniqueKeysWithValues: entries))))
    }

    var port: Int { app.port }
    var baseURL: String { "http://127.0.0.1:\(app.port)" }

    func client(as identity: Identity) -> BellhopClient {
        BellhopClient(baseURL: baseURL).with(token: token(for: identity))
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
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(signed.utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return signed + "." + base64URL(Data(code))
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
        listener.ready = try await listener.next("stream:ready")
        return listener
    }

    /// Changes the schema, as nobody should: as the service itself on SQLite, as an administrator on PostgreSQL.
    func alterTable(sqlite: SQL, postgres: String) async throws {
        guard let name = database.name else { return try await app.store.write { _ = try $0.run(sqlite) } }
        try PostgresServer.shared().run([postgres], in: name)
    }

    /// Nothing that is kept as a number differs from what is there.
    func expectExactCounts() throws {
        let differences = try app.store.read { db in
            try Catalog.features().flatMap(\.audits).flatMap { try $0.run(db) }
        }
        #expect(differences.isEmpty, "\(differences)")
    }
}

/// A clock that stands until a test moves it.
///
/// `@unchecked Sendable`: `moment` is only touched while `lock` is held.
final class ManualClock: @unchecked Sendable {
    /// Guards `moment`.
    private let lock = NSLock()
    private var moment: Timestamp

    /// - Parameter moment: nil starts at the present, so that tokens of other tools are valid too.
    init(_ moment: Timestamp?) {
        self.moment = moment ?? Clock.system.now()
    }

    var now: Timestamp { lock.withLock { moment } }

    var clock: Clock { Clock { [self] in now } }

    func set(_ moment: Timestamp) { lock.withLock { self.moment = moment } }

    func advance(seconds: Int64) { lock.withLock { moment = moment.adding(seconds: seconds) } }
}

/// One open stream, read as it comes.
///
/// `@unchecked Sendable`: a test's task is the only one that asks.
final class StreamListener: @unchecked Sendable {
    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    fileprivate(set) var ready = ServerSentEvent(id: "", name: "", data: "")
    /// Everything received, in order.
    private(set) var received: [ServerSentEvent] = []
    private let events: AsyncThrowingStream<ServerSentEvent, any Error>
    private var iterator: AsyncThrowingStream<ServerSentEvent, any Error>.Iterator
    private let reading: Task<Void, Never>

    init(_ stream: BellhopStream) {
        let (events, continuation) = AsyncThrowingStream<ServerSentEvent, any Error>.makeStream()
        self.events = events
        iterator = events.makeAsyncIterator()
        reading = Task {
            do {
                for try await event in stream { continuation.yield(event) }
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
    }

    deinit { reading.cancel() }

    func close() { reading.cancel() }

    /// The next event of a name; others are passed over and remembered. The deadline only bounds a failure.
    @discardableResult
    func next(_ name: String? = nil, within seconds: Int = 30) async throws -> ServerSentEvent {
        let deadline = Task { [reading] in
            try await Task.sleep(for: .seconds(seconds))
            reading.cancel()
        }
        defer { deadline.cancel() }
        while let event = try await iterator.next() {
            received.append(event)
            if name == nil || event.name == name { return event }
        }
        let names = received.map(\.name)
        throw TimedOut(description: "no \(name ?? "event") came; there were \(names)")
    }

    var lastEventID: String { received.last { !$0.id.isEmpty }?.id ?? "" }
}
