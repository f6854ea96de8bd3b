import Database
import Foundation
import Logging
import MicroHTTP
import Rows
import Synchronization

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
    private let workers: WorkerPool
    let bodies: BodyBudgets
    private let pump: EventPump
    private let replicas: ReplicaRequests?
    private let server: Server
    private let ticker: Ticker
    private let webhooks: WebhookSender?
    let push: PushSender?
    private let spans: SpanExporter?
    /// The reader of an app's log; nil without a source.
    let source: SourceReader?
    private let report: ServiceReport

    /// - Parameter patience: How long to wait for a database file and an address that another process holds.
    /// - Throws: An error that describes the obstacle in one line.
    public init(settings: Settings, logger: Logger, clock: Clock, patience: Duration = .zero) throws {
        precondition(Catalog.ambiguities.isEmpty, "the catalog is ambiguous: \(Catalog.ambiguities)")
        let logger = Self.configured(logger, by: settings)
        (self.settings, self.logger) = (settings, logger)
        let features = Catalog.features()
        let metrics = MetricsRegistry()
        ProcessMetrics.register(in: metrics, settings, replica: Self.hostName, startedAt: Clock.system.now())
        let tracer: Tracer?
        (spans, tracer) = Self.tracing(settings, clock, metrics, logger)

        // The database, and what a start reads from it.
        var patience = StartRetry(patience, clock: .system, logger: logger)
        let store = try patience.attempt {
            try DatabaseStore.open(settings.database, options: settings.storeOptions, tables: Catalog.tables)
        }
        self.store = store
        // Its threads must not be inside libpq while the process ends, because the libraries that libpq depends on are
        // torn down first.
        var isComplete = false
        defer { if !isComplete { store.close() } }
        store.register(in: metrics)
        let start = try ServiceStart(store, settings: settings, clock: clock, logger: logger)

        // The stream threads. Their programs are set once all dependencies exist.
        let shards = try StreamShards<StreamHub>(settings.serverConfiguration)
        self.shards = shards
        workers = Self.workers(settings)

        // The callers, and the readers that serve them.
        let authenticator = try Self.authenticator(settings, start, clock, metrics, logger)
        let reader = Self.reader(store, start, features, authenticator.limiter, clock, settings)
        let boards = Self.leaderboards(reader, logger: logger)
        self.boards = boards
        let admission = StreamAdmission()

        // The path from a commit to the streams.
        let pipeline = EventPipeline(
            store, start, clock: clock, shards: shards, boards: boards, admission: admission, settings: settings,
            tracer: tracer, logger: logger)
        start.revocations.register(in: metrics)
        (pump, rankUpdates) = (pipeline.pump, pipeline.rankUpdates)
        runner = TransactionRunner(reader: reader, tenants: start.tenants, appendEvents: pipeline.appendEvents)

        // The streams.
        let streams = Self.streams(
            start, reader, workers, authenticator, boards, admission, features, metrics, logger: logger)
        let directory = StreamDirectory(shards: shards, dependencies: streams)
        replicas = Self.replicas(pipeline, directory, runner, streams.failures)

        // The path of requests.
        report = ServiceReport(metrics, checks: Self.checks(store, authenticator, start.revocations, pipeline.pump))
        bodies = BodyBudgets(metrics)
        let dispatcher = Dispatcher(
            runner: runner, authenticator: authenticator, feeds: FeedCredentials(settings), bodies: bodies,
            workers: workers, cursors: PageCursors(secret: start.cursorSecret), tracer: tracer, logger: logger)
        let servedFeatures = Catalog.features(
            servedBy: Self.dependencies(
                start, report, pipeline, streams, replicas ?? directory, shards, boards, authenticator, metrics))
        let http = HTTPMetrics(metrics)
        server = try patience.attempt {
            try ServiceRoutes.server(
                settings.serverConfiguration, dispatcher, servedFeatures, streams, http, shards, logger: logger)
        }
        Self.register(server, shards, boards, in: metrics)
        ticker = Self.ticker(runner, features, authenticator.limiter, logger: logger)
        (webhooks, push) = Self.senders(reader, admission, metrics, logger: logger)
        source = Self.source(start, runner, pipeline.pump, shards, metrics, logger: logger)
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

    private static func tracing(
        _ settings: Settings, _ clock: Clock, _ metrics: MetricsRegistry, _ logger: Logger
    ) -> (spans: SpanExporter?, tracer: Tracer?) {
        guard let traces = settings.traces else { return (nil, nil) }
        let spans = SpanExporter(traces, replica: hostName, clock: clock, metrics: metrics, logger: logger)
        return (spans, Tracer(share: traces.share, clock: clock, exporter: spans))
    }

    private static func workers(_ settings: Settings) -> WorkerPool {
        WorkerPool(
            name: "worker", threads: settings.workerThreads, queueMax: Limits.workersQueueMax,
            ownerMax: Limits.workersQueueOfUserMax)
    }

    private static func authenticator(
        _ settings: Settings, _ start: ServiceStart, _ clock: Clock, _ metrics: MetricsRegistry, _ logger: Logger
    ) throws -> Authenticator {
        let memberships = start.memberships
        return try Authenticator(
            settings: settings, clock: clock, revocations: start.revocations,
            generation: { memberships.generation.load(ordering: .acquiring) }, scoped: { memberships.scoped($0) },
            metrics: metrics, logger: logger)
    }

    private static func reader(
        _ store: DatabaseStore, _ start: ServiceStart, _ features: [Feature], _ limiter: RateLimiter, _ clock: Clock,
        _ settings: Settings
    ) -> TransactionReader {
        TransactionReader(
            store: store, clock: clock, settings: settings, log: start.log, positions: start.positions,
            reactions: features.compactMap(\.reaction), limiter: limiter)
    }

    private static func leaderboards(_ reader: TransactionReader, logger: Logger) -> Leaderboards {
        Leaderboards(bytesMax: reader.settings.leaderboardMegabytes << 20, logger: logger) {
            try reader.read(as: .system(tenant: $0), $1)
        }
    }

    /// Returns the parts of the service that features use beyond transactions.
    private static func dependencies(
        _ start: ServiceStart, _ report: ServiceReport, _ pipeline: EventPipeline, _ streams: StreamDependencies,
        _ requests: any StreamRequests, _ shards: StreamShards<StreamHub>, _ boards: Leaderboards,
        _ authenticator: Authenticator, _ metrics: MetricsRegistry
    ) -> Dependencies {
        Dependencies(
            report: report, boards: boards,
            streams: .init(dependencies: streams, requests: requests, router: pipeline.router),
            changes: .init(
                intake: changeIntake(start, pipeline.pump), metrics: ChangeMetrics(metrics),
                isCongested: { isCongested(shards) }),
            explain: .init(
                memberships: start.memberships, authenticator: authenticator, log: start.log, live: streams.live,
                tables: streams.tables),
            publish: publishRules(start))
    }

    private static func replicas(
        _ pipeline: EventPipeline, _ directory: StreamDirectory, _ runner: TransactionRunner, _ failures: StreamFailures
    ) -> ReplicaRequests? {
        pipeline.mailbox.map { ReplicaRequests(directory: directory, runner: runner, failures: failures, mailbox: $0) }
    }

    private static func ticker(
        _ runner: TransactionRunner, _ features: [Feature], _ limiter: RateLimiter, logger: Logger
    ) -> Ticker {
        Ticker(
            runner: runner, ticks: features.flatMap(\.ticks),
            prunings: [Pruning(name: "idempotency", due: Idempotency.pruningDue(at:), prune: Idempotency.prune)],
            limiter: limiter, logger: logger)
    }

    private static func streams(
        _ start: ServiceStart, _ reader: TransactionReader, _ workers: WorkerPool, _ authenticator: Authenticator,
        _ boards: Leaderboards, _ admission: StreamAdmission, _ features: [Feature], _ metrics: MetricsRegistry,
        logger: Logger
    ) -> StreamDependencies {
        StreamDependencies(
            reader: reader, workers: workers, log: start.log, memberships: start.memberships,
            revocations: start.revocations, admission: admission, metrics: StreamMetrics(metrics),
            failures: StreamFailures(logger: logger, metrics: metrics),
            authenticator: authenticator, tickets: TicketSeal(secret: start.cursorSecret),
            topicKinds: features.flatMap(\.topics) + start.memberships.catalog.topics.map(TopicKind.init),
            live: features.flatMap(\.live),
            tables: SubscribableTables(catalog: start.memberships.catalog, watched: features.flatMap(\.watched)),
            ownStates: { try ChallengesFeature.ownRanks(boards, $0) })
    }

    /// Returns the senders of the outboxes that are set up.
    private static func senders(
        _ reader: TransactionReader, _ admission: StreamAdmission, _ metrics: MetricsRegistry, logger: Logger
    ) -> (WebhookSender?, PushSender?) {
        let webhooks = reader.settings.webhook.map {
            WebhookSender(
                $0,
                WebhookSources(
                    message: ConversationsFeature.unread(_:of:in:),
                    preferences: PreferencesFeature.preferences(of:in:)),
                reader: reader, admission: admission, metrics: metrics, logger: logger)
        }
        let sources = PushSources(
            notification: NotificationsFeature.pushText, message: ConversationsFeature.unread(_:of:in:),
            preferences: PreferencesFeature.preferences(of:in:))
        let push = reader.settings.push.map {
            PushSender($0, sources, reader: reader, admission: admission, metrics: metrics, logger: logger)
        }
        return (webhooks, push)
    }

    private static func isCongested(_ shards: StreamShards<StreamHub>) -> Bool {
        shards.all.contains { $0.counters.inboxDepth > Limits.shardInboxMax }
    }

    private static func publishRules(_ start: ServiceStart) -> PublishFeature.Parts {
        .init(topics: start.memberships.catalog.topics, taken: Catalog.eventPrefixes)
    }

    private static func changeIntake(_ start: ServiceStart, _ pump: EventPump) -> ChangeIntake {
        ChangeIntake(memberships: start.memberships, restartStreams: { try pump.renewEpoch(in: $0) })
    }

    private static func source(
        _ start: ServiceStart, _ runner: TransactionRunner, _ pump: EventPump, _ shards: StreamShards<StreamHub>,
        _ metrics: MetricsRegistry, logger: Logger
    ) -> SourceReader? {
        guard let url = runner.settings.source else { return nil }
        let rules = publishRules(start)
        let intake = SourceIntake(
            runner: runner, changes: changeIntake(start, pump), slot: runner.settings.sourceSlot,
            receivers: [
                "notify": { try NotificationsFeature.accept($0, $1) },
                "publish": { try PublishFeature.accept($0, by: rules, $1) },
            ])
        return SourceReader(
            .init(url: url, intake: intake, isCongested: { isCongested(shards) }),
            metrics: SourceMetrics(metrics), logger: logger)
    }

    /// Returns the readiness checks.
    private static func checks(
        _ store: DatabaseStore, _ authenticator: Authenticator, _ revocations: RevocationList, _ pump: EventPump
    ) -> [@Sendable () -> String?] {
        [
            { authenticator.isReady ? nil : "The issuer's keys could not be fetched yet." },
            { revocations.isTrusted ? nil : "The revocations of other replicas are unknown." },
            {
                if let trouble = store.trouble { return "Writes are failing: \(trouble.detail)." }
                // A file is read now. For a server, the result of the last contact is used, because nothing may wait
                // for it here.
                let isReadable =
                    store.engine == .sqlite
                    ? (try? store.read { try $0.exists("SELECT 1") }) != nil : pump.isDatabaseReachable
                return isReadable ? nil : "The database cannot be read."
            },
        ]
    }

    private static func register(
        _ server: Server, _ shards: StreamShards<StreamHub>, _ boards: Leaderboards, in metrics: MetricsRegistry
    ) {
        metrics.register { text in
            text.single(
                "bellhop_http_requests_read_total", .counter, "Requests with a complete head.", server.requestCount)
            text.single(
                "bellhop_http_requests_open", .gauge, "Requests in progress.", server.requestsOpen)
            let counters = shards.counters
            text.single("bellhop_streams_max", .gauge, "Maximum number of open streams.", shards.streamsMax)
            text.single(
                "bellhop_stream_sends_total", .counter, "System calls that sent to streams.", counters.sends)
            text.single("bellhop_stream_sent_bytes_total", .counter, "Bytes sent to streams.", counters.sentBytes)
            text.single(
                "bellhop_stream_stalls_total", .counter, "Number of times that a stream's socket buffer was full.",
                counters.stalls)
            text.single(
                "bellhop_stream_collapsed_total", .counter, "Queued states replaced by newer ones.", counters.collapsed)
            text.single("bellhop_stream_inbox_depth", .gauge, "Messages queued for shards.", counters.inboxDepth)
            boards.write(to: &text)
        }
    }

    /// Starts listening.
    public func start() throws {
        try source?.check()
        spans?.start()
        pump.start()
        replicas?.start()
        rankUpdates.start()
        try server.start()
        ticker.start()
        webhooks?.start()
        push?.start()
        source?.start()
        warnOfLoweredLimits()
        warnOfUnverifiedServers()
        logger.info(
            "Bellhop is listening.",
            metadata: [
                "host": "\(settings.host)", "port": .stringConvertible(port), "database": "\(settings.database)",
            ])
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
                source?.stop()
                ticker.stop()
                webhooks?.stop()
                push?.stop()
                rankUpdates.stop()
                server.shutdown(
                    deadlineSeconds: Double(settings.shutdownSeconds),
                    idleSeconds: drainSeconds > 0 ? Limits.lastRequestSeconds : 0)
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
