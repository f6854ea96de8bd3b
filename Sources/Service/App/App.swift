import Database
import Domain
import Foundation
import Logging
import MicroHTTP

/// The running service.
///
/// It is built in one go, from the bottom up, and each part is created once and complete. First the database is opened
/// and migrated. Then come the stream threads, the readers, the delivery of committed events to streams, the writers,
/// and the request handlers. The listening socket comes last, so that every client that can connect is served.
public final class App: Sendable {
    let store: DatabaseStore
    let runner: TransactionRunner
    let shards: StreamShards<StreamHub>
    let boards: Leaderboards
    let rankUpdates: RankUpdates
    private let settings: Settings
    private let logger: Logger
    let workers: WorkerPool
    let bodies: BodyBudgets
    private let pump: EventPump
    private let replicas: ReplicaRequests?
    private let server: Server
    /// The server of `/metrics`; nil if it has no address of its own.
    private let metricsServer: Server?
    private let ticker: Ticker
    let shareWalk: ShareWalk
    private let clockLines: ClockLines
    private let rows: TenantRows
    private let memberships: MembershipRegistry
    let outbox: OutboxSender?
    private let spans: SpanExporter?
    /// The reader of an app's log; nil without a source.
    let source: SourceReader?
    private let report: ServiceReport

    /// - Parameters:
    ///   - patience: How long to wait for a database file and an address that another process holds.
    ///   - hiddenShares: The shares of the badges that are hidden from users; nil for those of sets that are off.
    /// - Throws: An error that describes the obstacle in one line.
    public init(
        settings: Settings, logger: Logger, clock: Clock, patience: Duration = .zero,
        hiding hiddenShares: BadgeShares? = nil
    ) throws {
        Catalog.requireSound()
        let logger = Self.configured(logger, by: settings)
        (self.settings, self.logger) = (settings, logger)
        let metrics = MetricsRegistry()
        ProcessMetrics.register(in: metrics, settings, replica: Self.hostName, startedAt: Clock.system.now())

        // The database, and what a start reads from it.
        var patience = StartRetry(patience, clock: .system, logger: logger)
        let store = try patience.attempt {
            try DatabaseStore.open(settings.database, options: settings.storeOptions, tables: Catalog.tables)
        }
        self.store = store
        // Its threads must not be inside libpq when the process ends: the libraries that libpq uses end first.
        var isComplete = false
        defer { if !isComplete { store.close() } }
        store.register(in: metrics)
        let start = try ServiceStart(
            store, settings: settings, clock: clock, metrics: metrics, logger: logger, hiding: hiddenShares)
        start.revocations.register(in: metrics)
        let tracer: Tracer?
        (spans, tracer) = start.tracing(replica: Self.hostName)

        // The stream threads. Their programs are set once all dependencies exist.
        let shards = try StreamShards<StreamHub>(settings.serverConfiguration)
        self.shards = shards
        workers = start.workers()

        // The callers, and the readers that serve them.
        let authenticator = try start.authenticator()
        let reader = start.reader(authenticator.limiter)
        boards = Leaderboards(bytesMax: settings.leaderboardMegabytes << 20, logger: logger) {
            try reader.read(as: .system(tenant: $0), $1)
        }
        let admission = StreamAdmission()

        // The path from a commit to the streams.
        let pipeline = EventPipeline(start, shards: shards, boards: boards, admission: admission, tracer: tracer)
        (pump, rankUpdates) = (pipeline.pump, pipeline.rankUpdates)
        let runner = start.runner(reader, pipeline)
        (self.runner, memberships) = (runner, start.memberships)
        start.memberships.reportOutdated(in: metrics, logger, isRead: settings.source != nil)

        // The streams.
        let streams = start.streams(reader, workers, authenticator, boards: boards, admission: admission)
        let directory = StreamDirectory(shards: shards, dependencies: streams)
        replicas = start.replicaRequests(pipeline, directory, runner)

        // The path of requests.
        let intake = start.changeIntake(pipeline.pump, admission)
        source = start.source(runner, intake, pipeline)
        report = start.report(authenticator, pipeline.pump, source)
        bodies = BodyBudgets(metrics)
        rows = TenantRows(reader, metrics: metrics, logger: logger)
        let dispatcher = start.dispatcher(runner, authenticator, workers, bodies, tracer)
        let parts = start.dependencies(report, intake, pipeline, streams, requests: replicas ?? directory)
        let features = Catalog.features(on: settings.features, servedBy: parts)
        let http = HTTPMetrics(metrics)
        (server, metricsServer) = try patience.attempt {
            try ServiceRoutes.servers(dispatcher, features, streams, metrics: http, shards: shards)
        }
        start.register(server, pipeline)
        (ticker, clockLines, shareWalk) = (start.ticker(runner, features), start.clockLines, start.shareWalk)
        outbox = start.outbox(reader, admission)
        shards.start { StreamHub(shard: $0, dependencies: streams, head: start.head) }
        isComplete = true
    }

    /// The name of the replica in log lines: the host name of the container or machine.
    private static var hostName: String {
        var bytes = [UInt8](repeating: 0, count: 256)
        let isKnown = bytes.withUnsafeMutableBytes {
            gethostname($0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count - 1) == 0
        }
        return isKnown ? String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) : "-"
    }

    /// Returns the logger of this process. With several replicas, each line names its own.
    private static func configured(_ logger: Logger, by settings: Settings) -> Logger {
        var logger = logger
        logger.logLevel = settings.logLevel
        if settings.database.engine == .postgreSQL { logger[metadataKey: "replica"] = "\(hostName)" }
        return logger
    }

    /// Starts listening.
    public func start() throws {
        try source?.check()
        spans?.start()
        pump.start()
        try memberships.retireUndeclared(runner)
        replicas?.start()
        rankUpdates.start()
        try server.start()
        try metricsServer?.start()
        ticker.start()
        rows.start()
        outbox?.start()
        source?.start()
        warnOfLoweredLimits()
        warnOfUnverifiedServers()
        if settings.tableFile == nil {
            logger.info(
                "No tables are declared, so changes of rows and subscriptions to tables are refused.",
                metadata: ["remedy": "set \(settings.$tableFile.variable) to your table file, if you send rows"])
        }
        logger.info(
            "Bellhop is listening.",
            metadata: [
                "host": "\(settings.host)", "port": .stringConvertible(port), "database": "\(settings.database)",
            ])
        logWhoseTokens()
        logFeatures()
        if let metricsPort, let host = settings.metricsListen?.host {
            logger.info(
                "The metrics have an address of their own.",
                metadata: ["host": "\(host)", "port": .stringConvertible(metricsPort)])
        }
    }

    /// Says which feature sets are on. An address of another set answers 404.
    private func logFeatures() {
        func names(where isListed: (FeatureSet) -> Bool) -> String {
            let names = FeatureSet.allCases.filter(isListed).map(\.rawValue)
            return names.isEmpty ? "none" : names.joined(separator: ",")
        }
        logger.info(
            "Feature sets are on.",
            metadata: [
                "on": "\(names(where: settings.features.contains))",
                "off": "\(names { !settings.features.contains($0) })",
            ])
    }

    /// Says whose tokens are accepted, and what a role in them may do: a wrong setting gives others' administrators rights.
    private func logWhoseTokens() {
        for rules in settings.issuers {
            func claims(_ meaning: ClaimMeaning) -> String {
                (rules.claims[meaning] ?? []).map(\.text).joined(separator: ",")
            }
            logger.info(
                "Tokens are accepted.",
                metadata: [
                    "of": "\(rules.requirements.isEmpty ? "any issuer that has a key" : rules.requirements)",
                    "keys":
                        "\([rules.secret.map { _ in "secret" }, rules.keys?.name].compactMap(\.self).joined(separator: ", "))",
                    "user": "\(claims(.user))", "tenant": "\(rules.tenant ?? claims(.tenant))",
                    "role": "\(claims(.role))",
                ])
        }
        let rights = TokenRole.allCases.map { role in
            let names = Set(settings.issuers.flatMap(\.roles).filter { $0.role == role.rawValue }.map(\.name)).sorted()
            return "\(([role.rawValue] + names).joined(separator: ", ")): \(role.right)"
        }
        logger.info("A role in a token gives rights.", metadata: ["roles": "\(rights.joined(separator: "; "))"])
    }

    /// Warns now about insufficient descriptors, which would otherwise show only under full load.
    private func warnOfLoweredLimits() {
        let limits = [
            (settings.$streamsMax, settings.streamsMax, shards.streamsMax),
            (settings.$connectionsMax, settings.connectionsMax, server.connectionsMax),
        ]
        for (setting, asked, allowed) in limits
        where allowed < asked && settings.demandsLimit(setting, allowed: allowed) {
            logger.warning(
                "A setting was lowered to the limit of file descriptors.",
                metadata: [
                    "setting": "\(setting.variable)", "asked": "\(asked)", "holds": "\(allowed)",
                    "RLIMIT_NOFILE": "\(ServerConfiguration.descriptorsMax)",
                ])
        }
    }

    private func warnOfUnverifiedServers() {
        for (setting, hosts, mode) in settings.unverifiedServers {
            logger.warning(
                "The connection to a PostgreSQL on another machine is not verified: others on the network could read and change data.",
                metadata: [
                    "setting": "\(setting.variable)", "host": "\(hosts.joined(separator: ","))",
                    "sslmode": "\(mode)", "remedy": "sslmode=verify-full&sslrootcert=/path/to/ca.pem",
                ])
        }
    }

    /// The port on which the service listens.
    public var port: Int { server.port }

    /// The port of `/metrics`; nil if it has no address of its own.
    var metricsPort: Int? { metricsServer?.port }

    /// Returns after the clock has advanced by this many seconds.
    private func drain(seconds: Int) async {
        let clock = runner.clock
        let end = clock.uptime() + .seconds(seconds)
        while clock.uptime() < end {
            try? await Task.sleep(for: clock.pause(min(.milliseconds(250), end - clock.uptime())))
        }
    }

    /// Continues to serve for a while as not ready, so that load balancers send requests elsewhere. Then lets requests
    /// finish, ends streams with a notice, completes the queued writes, and closes the database. Returns when all is
    /// done.
    public func shutdown(drainSeconds: Int = 0) async {
        report.noteStopping()
        if drainSeconds > 0 {
            logger.info("Bellhop is draining.", metadata: ["seconds": "\(drainSeconds)"])
            server.drain()
            await drain(seconds: drainSeconds)
        }
        logger.info("Bellhop is stopping.")
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            // On a separate thread, because every step here blocks.
            Thread { [self] in
                let begunAt = ContinuousClock.now
                source?.stop()
                ticker.stop()
                // Without this, the clock would have to be proven again after the start.
                try? clockLines.look(in: store)
                rows.stop()
                // The answers are awaited while requests finish.
                outbox?.drain()
                rankUpdates.stop()
                server.shutdown(
                    deadlineSeconds: Double(settings.shutdownSeconds),
                    idleSeconds: drainSeconds > 0 ? Limits.lastRequestSeconds : 0)
                outbox?.stop(by: begunAt + .seconds(settings.shutdownSeconds))
                // Until then, the end can be watched.
                metricsServer?.shutdown(deadlineSeconds: 1)
                report.metrics.stop()
                workers.shutdown()
                replicas?.stop()
                pump.stop()
                store.close()
                // Last, so that the spans of the earlier steps are sent too.
                spans?.stop()
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

    /// The number of worker threads. Workers wait for a server, one per connection; a file hardly makes them wait.
    var workerThreads: Int { database.engine == .sqlite ? workers : max(workers, databaseConnections) }
}
