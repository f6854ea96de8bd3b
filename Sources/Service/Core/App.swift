import Database
import Domain
import Foundation
import Logging
import MicroHTTP
import Realtime

/// The running service.
///
/// Made in one go: the database is opened and brought up to date first, the listening socket comes last, so that
/// whoever can connect is served.
public final class App: Sendable {
    let store: Store
    let runner: TransactionRunner
    let server: Server<StreamHub>
    private let settings: Settings
    private let workers: WorkerPool
    private let ticker: Ticker
    private let pump: EventPump
    private let directory: StreamDirectory
    let boards: Leaderboards
    private let report: ServiceReport
    private let logger: Logger

    /// - Throws: in one line, what stands in the way.
    public init(settings: Settings, logger: Logger, clock: Clock) throws {
        var logger = logger
        logger.logLevel = Logger.Level(rawValue: settings.logLevel) ?? .info
        self.settings = settings
        self.logger = logger
        let ambiguities = Catalog.ambiguities
        precondition(ambiguities.isEmpty, "the catalog's policies are ambiguous: \(ambiguities)")
        store = try Store.open(settings.database, options: settings.storeOptions, tables: Catalog.tables)
        let foundation = try Foundations(store: store, settings: settings, clock: clock, logger: logger)
        runner = foundation.runner
        workers = WorkerPool(name: "worker", threads: settings.workerThreads, queueMax: Limits.workersQueueMax)
        let boards = foundation.boards(logger)
        self.boards = boards
        let directory = StreamDirectory(
            surroundings: foundation.surroundings(workers: workers, settings: settings, boards: boards),
            revocations: foundation.revocations)
        self.directory = directory
        let tables = foundation.tables
        let replicas = ReplicaMessages(
            directory: directory, runner: runner,
            listeners: [
                "\(ChallengesFeature.movedMessage)": boards.heard,
                "\(TableRegister.event)": { directory.renewScopes(holding: tables.take($0.data)) },
                "\(HeldKeys.event)": { if let change = HeldChange($0) { directory.change(change) } },
            ])
        directory.setReplicas(replicas)
        let revocations = foundation.revocations
        let pump = EventPump(
            runner: runner, log: foundation.log, head: foundation.head, logger: logger,
            replica: .init(
                publish: { replicas.publish($0) }, begin: { directory.closeAll(head: $0) },
                catchUp: [
                    { db in
                        for revocation in try StreamsFeature.revocations(in: db) { revocations.insert(revocation) }
                    },
                    { try tables.reload(in: $0) },
                    { _ in boards.forget() },
                ],
                looked: { replicas.expire() }))
        self.pump = pump
        store.setLastStep { db, items in
            let events = try EventLog.append(items.compactMap { $0 as? PendingEvents }, in: db)
            if !events.isEmpty { db.afterCommit { pump.committed(events) } }
        }
        let routing = Routing(
            dispatcher: Dispatcher(
                runner: runner, authenticator: foundation.authenticator, feeds: FeedCredentials(settings),
                workers: workers,
                cursors: PageCursors(secret: foundation.cursorSecret), logger: logger),
            directory: directory, boards: boards, store: store, authenticator: foundation.authenticator,
            tables: tables)
        report = routing.report
        let head = foundation.head
        server = try Server(
            configuration: routing.configuration(settings, logger: logger), routes: routing.routes
        ) { _, shard in
            directory.makeProgram(on: shard, head: head)
        }
        let server = server
        report.include { text in
            server.write(to: &text)
            boards.write(to: &text)
        }
        tables.setCongestion { server.shards.contains { $0.counters.inboxDepth > Limits.shardInboxMax } }
        report.include(contact: { pump.isInContact })
        ticker = Ticker(
            runner: runner, ticks: Catalog.features().flatMap(\.ticks), limiter: foundation.authenticator.limiter,
            logger: logger)
    }

    /// Starts to listen.
    public func start() throws {
        pump.start()
        let directory = directory
        boards.start(
            telling: .init(
                users: { directory.admission.users(of: $0) }, hasUsers: { directory.admission.hasUsers(of: $0) },
                tell: { directory.tell($0) }))
        try server.start()
        ticker.start()
        logger.info(
            "Bellhop is listening.",
            metadata: ["host": "\(settings.host)", "port": "\(port)", "database": "\(settings.database)"])
    }

    /// The port that is listened on.
    public var port: Int { server.port }

    /// Lets requests finish, tells streams, writes what waits, and closes the database. Returns when all is done.
    public func shutdown() async {
        report.noteStopping()
        logger.info("Bellhop is stopping.")
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            // On a thread of its own: everything here waits.
            Thread { [self] in
                ticker.stop()
                boards.stop()
                server.shutdown(deadlineSeconds: Double(settings.shutdownSeconds))
                workers.shutdown()
                pump.stop()
                store.close()
                done.resume()
            }.start()
        }
        logger.info("Bellhop has stopped.")
    }
}

extension Settings {
    var storeOptions: StoreOptions {
        var options = StoreOptions()
        options.writerCacheKiB = databaseCacheMegabytes * 1024
        options.readersMax = databaseConnections
        options.writers = databaseWriters
        options.isPooled = databasePooled
        options.statementTimeout = .seconds(databaseTimeoutSeconds)
        options.listenURL = databaseListen
        return options
    }

    /// Workers wait for a server, one for each connection; a file hardly makes them wait.
    var workerThreads: Int { database.engine == .sqlite ? workers : max(workers, databaseConnections) }
}

/// What requests and streams stand on, read from the database at start.
private struct Foundations {
    let store: Store
    let runner: TransactionRunner
    let authenticator: Authenticator
    let revocations: RevocationList
    let tables: TableRegister
    let log: LogIdentity
    let head: Int64
    /// Signs the cursors of lists.
    let cursorSecret: [UInt8]

    init(store: Store, settings: Settings, clock: Clock, logger: Logger) throws {
        self.store = store
        try Self.prepare(store, logger)
        let (epoch, secret) = try store.writeAndWait { db in
            // Made once, whichever replica is first.
            try db.lock(["bellhop:start"])
            return (
                try EventLog.epoch(at: clock.now(), in: db),
                try ServiceSecrets.secret(named: "page-cursors", in: db)
            )
        }
        log = LogIdentity(epoch)
        cursorSecret = secret
        let tables = TableRegister(settings.tables)
        self.tables = tables
        let (head, revoked, tenants) = try store.read { db in
            try tables.reload(in: db)
            return (
                try EventLog.newestSequence(in: db), try StreamsFeature.revocations(in: db), try Tenants(in: db)
            )
        }
        self.head = head
        revocations = RevocationList(revoked)
        authenticator = Authenticator(
            settings: settings, clock: clock, revocations: revocations, tables: tables, logger: logger)
        runner = TransactionRunner(
            store: store, clock: clock,
            workshop: Transaction.Workshop(
                settings: settings, reactions: Catalog.features().flatMap(\.reactions),
                badgeVersions: BadgeVersions(isAlone: store.engine == .sqlite), ids: IdentifierSource()),
            tenants: tenants)
    }

    /// A file is brought up to date; of a server, whose tables the service must not own, it is asked.
    private static func prepare(_ store: Store, _ logger: Logger) throws {
        guard store.engine == .sqlite else {
            let pending = try store.pendingMigrations(Catalog.migrations)
            guard pending.isEmpty else {
                throw DatabaseError(
                    .schema, "\(pending.count) migrations are not applied: run bellhop migrate as the tables' owner")
            }
            return
        }
        let applied = try store.migrate(Catalog.migrations)
        if !applied.isEmpty {
            logger.info("The database was brought up to date.", metadata: ["migrations": "\(applied.count)"])
        }
    }

    func boards(_ logger: Logger) -> Leaderboards {
        let runner = runner
        return Leaderboards(
            Leaderboards.Surroundings(
                now: runner.clock.now,
                read: { tenant, body in try runner.read(as: .system(tenant: tenant), body) },
                bytesMax: runner.workshop.settings.leaderboardMegabytes << 20, logger: logger))
    }

    func surroundings(workers: WorkerPool, settings: Settings, boards: Leaderboards) -> StreamSurroundings {
        let (runner, authenticator) = (runner, authenticator)
        return StreamSurroundings(
            store: store, workers: workers, log: log, tables: tables, now: runner.clock.now,
            authenticate: { authenticator.verdict(on: $0) },
            read: { caller, body in try runner.read(as: caller, body) },
            topicKinds: Catalog.features().flatMap(\.topics), live: Catalog.features().flatMap(\.live),
            watched: Set(Catalog.features().flatMap(\.watched)),
            ownStates: { try ChallengesFeature.ownRanks(boards, $0) },
            settings: StreamSettings(
                cookieName: settings.streamCookie, streamsPerUserMax: settings.streamsPerUserMax,
                shards: settings.shards))
    }
}
