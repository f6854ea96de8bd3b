import Database
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
    private let parts: ServingParts
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
        let directory = StreamDirectory(
            surroundings: foundation.surroundings(workers: workers, settings: settings, boards: boards),
            revocations: foundation.revocations)
        let tables = foundation.tables
        let report = ServiceReport(
            store: store, authenticator: foundation.authenticator, streams: directory.metrics, changes: tables.metrics)
        parts = ServingParts(
            streams: directory, boards: boards, report: report, tables: tables,
            authenticator: foundation.authenticator)
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
                workers: workers, cursors: PageCursors(secret: foundation.cursorSecret), logger: logger),
            parts: parts)
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
        let directory = parts.streams
        boards.start(
            telling: .init(
                users: { directory.admission.users(of: $0) }, hasUsers: { directory.admission.hasUsers(of: $0) },
                tell: { directory.tell($0) }))
        try server.start()
        ticker.start()
        warnOfLoweredLimits()
        logger.info(
            "Bellhop is listening.",
            metadata: ["host": "\(settings.host)", "port": "\(port)", "database": "\(settings.database)"])
    }

    /// Descriptors that do not suffice would otherwise show under full load only.
    private func warnOfLoweredLimits() {
        let limits = [
            ("streamsMax", settings.streamsMax, server.streamsMax),
            ("connectionsMax", settings.connectionsMax, server.connectionsMax),
        ]
        for (name, asked, allowed) in limits where allowed < asked {
            logger.warning(
                "The limit of descriptors lowers a setting.",
                metadata: [
                    "setting": "\(Settings.Key.variable(name))", "asked": "\(asked)", "holds": "\(allowed)",
                    "RLIMIT_NOFILE": "\(server.descriptorsMax)",
                ])
        }
    }

    var boards: Leaderboards { parts.boards }

    /// The port that is listened on.
    public var port: Int { server.port }

    /// Lets requests finish, tells streams, writes what waits, and closes the database. Returns when all is done.
    public func shutdown() async {
        parts.report.noteStopping()
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
