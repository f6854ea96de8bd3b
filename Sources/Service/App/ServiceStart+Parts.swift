import Database
import Domain
import MicroHTTP
import Rows
import Synchronization
import Values

/// The parts of the service that are made from the start.
extension ServiceStart {
    func tracing(replica: String) -> (spans: SpanExporter?, tracer: Tracer?) {
        guard let traces = settings.traces else { return (nil, nil) }
        let spans = SpanExporter(traces, replica: replica, clock: clock, metrics: metrics, logger: logger)
        return (spans, Tracer(share: traces.share, clock: clock, exporter: spans))
    }

    func workers() -> WorkerPool {
        WorkerPool(
            name: "worker", threads: settings.workerThreads, queueMax: Limits.workersQueueMax,
            ownerMax: Limits.workersQueueOfUserMax)
    }

    func authenticator() throws -> Authenticator {
        try Authenticator(
            settings: settings, clock: clock, revocations: revocations,
            generation: { [memberships] in memberships.generation.load(ordering: .acquiring) },
            scoped: { [memberships] in memberships.scoped($0) }, seen: { [backends] in backends.note($0) },
            metrics: metrics, logger: logger)
    }

    func reader(_ limiter: RateLimiter) -> TransactionReader {
        TransactionReader(
            store: store, clock: clock, settings: settings, log: log, positions: positions,
            reactions: features.compactMap(\.reaction), tables: Catalog.tables, limiter: limiter,
            backends: backends, hiddenShares: hiddenShares,
            allowsContact: { [memberships] in memberships.allows($0, from: $1, to: $2) })
    }

    func runner(_ reader: TransactionReader, _ pipeline: EventPipeline) -> TransactionRunner {
        let audit = AuditLog(backends: backends, gate: gate)
        return TransactionRunner(
            reader: reader, tenants: tenants, appendEvents: pipeline.appendEvents,
            appendNotes: GroupStep<AuditNotes>(order: 0) { try audit.append($1, in: $0) }, gate: gate)
    }

    func streams(
        _ reader: TransactionReader, _ workers: WorkerPool, _ authenticator: Authenticator, boards: Leaderboards,
        admission: StreamAdmission
    ) -> StreamDependencies {
        admission.register(in: metrics)
        return StreamDependencies(
            reader: reader, workers: workers, log: log, memberships: memberships, revocations: revocations,
            admission: admission, metrics: StreamMetrics(metrics),
            failures: StreamFailures(logger: logger, metrics: metrics), authenticator: authenticator,
            tickets: TicketSeal(secret: cursorSecret),
            topicKinds: features.flatMap(\.topics) + memberships.catalog.topics.map(TopicKind.init),
            live: features.flatMap(\.live),
            tables: SubscribableTables(
                catalog: memberships.catalog, watched: features.flatMap(\.watched),
                hasRows: isOn(.rows)),
            withheld: Catalog.withheld(on: settings.features),
            ownStates: { try ChallengesFeature.ownRanks(boards, $0) })
    }

    /// Returns the parts of the service that features use beyond transactions.
    func dependencies(
        _ report: ServiceReport, _ intake: ChangeIntake, _ pipeline: EventPipeline, _ streams: StreamDependencies,
        requests: any StreamRequests
    ) -> Dependencies {
        Dependencies(
            report: report,
            description: Description(without: Catalog.filter(on: settings.features, settings)), boards: pipeline.boards,
            streams: .init(dependencies: streams, requests: requests, router: pipeline.router),
            changes: .init(
                intake: intake, metrics: ChangeMetrics(metrics),
                isCongested: { pipeline.isCongested }),
            explain: .init(
                memberships: memberships, authenticator: streams.authenticator, log: log, live: streams.live,
                tables: streams.tables),
            publish: publishRules, erasure: .init(seal: personSeal, router: pipeline.router, gate: gate))
    }

    private var publishRules: PublishFeature.Parts {
        .init(topics: memberships.catalog.topics, taken: Catalog.eventPrefixes)
    }

    func dispatcher(
        _ runner: TransactionRunner, _ authenticator: Authenticator, _ workers: WorkerPool, _ bodies: BodyBudgets,
        _ tracer: Tracer?
    ) -> Dispatcher {
        Dispatcher(
            runner: runner, authenticator: authenticator, feeds: FeedCredentials(settings), bodies: bodies,
            workers: workers, cursors: PageCursors(secret: cursorSecret), tracer: tracer, logger: logger)
    }

    /// Returns the exchange of requests about streams; nil if this process is the only one.
    func replicaRequests(
        _ pipeline: EventPipeline, _ directory: StreamDirectory, _ runner: TransactionRunner
    ) -> ReplicaRequests? {
        pipeline.mailbox.map {
            ReplicaRequests(directory: directory, mailbox: $0, publish: runner.notifyReplicas)
        }
    }

    func changeIntake(_ pump: EventPump, _ admission: StreamAdmission) -> ChangeIntake {
        ChangeIntake(
            memberships: memberships,
            unheard: UnheardRows(metrics: metrics, logger: logger) { admission.misses($0) },
            restartStreams: { try pump.renewEpoch(in: $0) })
    }

    func ticker(_ runner: TransactionRunner, _ features: [Feature]) -> Ticker {
        Ticker(
            runner: runner, ticks: features.flatMap(\.ticks), sweeps: features.flatMap(\.sweeps),
            longWork: features.flatMap(\.longWork),
            prunings: [Idempotency.pruning], lines: clockLines,
            shares: shareWalk, logger: logger)
    }

    /// Returns the sender of webhooks and push messages; nil if neither is set up.
    func outbox(_ reader: TransactionReader, _ admission: StreamAdmission) -> OutboxSender? {
        let shares = reader.limiter.shares
        var channels: [any Channel] = []
        if let webhook = settings.webhook {
            let sources = WebhookSources(
                message: unreadMessages, preferences: PreferencesFeature.preferences(of:in:))
            channels.append(WebhookChannel(webhook, sources, shares, clock: clock) { [log = reader.log] in log.epoch })
        }
        if let push = settings.push {
            let sources = PushSources(
                notification: notificationText, message: unreadMessages,
                preferences: PreferencesFeature.preferences(of:in:))
            channels.append(PushFanOut(push, shares, metrics: metrics, logger: logger))
            channels += push.providers.map { PushChannel($0, push, sources, shares, clock: clock) }
        }
        guard !channels.isEmpty else { return nil }
        return OutboxSender(
            channels, reader: reader, isPresent: { admission.hasStream($0) }, metrics: metrics, logger: logger)
    }

    private func isOn(_ set: FeatureSet) -> Bool { settings.features.contains(set) }

    /// Reads the unread messages that a push message or a webhook is about. While conversations are off, it finds none, and
    /// what waits is not sent.
    private var unreadMessages: @Sendable (ID<Conversation>, Owner, DatabaseConnection) throws -> UnreadConversation? {
        let isOn = isOn(.chat)
        return { isOn ? try ConversationsFeature.unread($0, of: $1, in: $2) : nil }
    }

    /// Reads the notification that a push message is about, as ``unreadMessages`` does.
    private var notificationText: @Sendable (ID<Notification>, Owner, DatabaseConnection) throws -> PushText? {
        let isOn = isOn(.bell)
        return { isOn ? try NotificationsFeature.pushText($0, $1, $2) : nil }
    }

    func source(_ runner: TransactionRunner, _ changes: ChangeIntake, _ pipeline: EventPipeline) -> SourceReader? {
        guard let url = settings.source else { return nil }
        let rules = publishRules
        let intake = SourceIntake(
            runner: runner, changes: changes, slot: settings.sourceSlot,
            receivers: [
                "notify": receiver(.bell) { try NotificationsFeature.accept($0, $1) },
                "publish": receiver(.publish) { try PublishFeature.accept($0, by: rules, $1) },
            ])
        return SourceReader(
            .init(url: url, intake: intake, isCongested: { pipeline.isCongested }),
            metrics: SourceMetrics(metrics), logger: logger)
    }

    /// Returns a receiver of the app's messages, which refuses them while its set is off.
    private func receiver(_ set: FeatureSet, _ receiver: @escaping SourceMessage.Receiver) -> SourceMessage.Receiver {
        if isOn(set) { return receiver }
        return { _, _ in throw Failure.off(set) }
    }

    func report(_ authenticator: Authenticator, _ pump: EventPump, _ source: SourceReader?) -> ServiceReport {
        ServiceReport(
            MetricsPage(metrics, age: .seconds(settings.metricsSeconds), clock: clock),
            checks: checks(authenticator, pump, source))
    }

    private func checks(
        _ authenticator: Authenticator, _ pump: EventPump, _ source: SourceReader?
    ) -> [@Sendable () -> String?] {
        [
            { authenticator.isReady ? nil : "The issuer's keys could not be fetched yet." },
            { source?.obstacle },
            { [revocations] in revocations.isTrusted ? nil : "The revocations of other replicas are unknown." },
            { [store] in
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

    /// Registers the metrics of requests, streams and leaderboards.
    func register(_ server: Server, _ pipeline: EventPipeline) {
        let (shards, boards) = (pipeline.shards, pipeline.boards)
        metrics.register { text in
            text.single(
                "bellhop_http_requests_read_total", .counter, "Requests with a complete head.",
                value: server.requestCount)
            text.single(
                "bellhop_http_requests_open", .gauge, "Requests in progress.", value: server.requestsOpen)
            let counters = shards.counters
            text.single("bellhop_streams_max", .gauge, "Maximum number of open streams.", value: shards.streamsMax)
            text.single(
                "bellhop_stream_sends_total", .counter, "System calls that sent to streams.", value: counters.sends)
            text.single(
                "bellhop_stream_sent_bytes_total", .counter, "Bytes sent to streams.", value: counters.sentBytes)
            text.single(
                "bellhop_stream_stalls_total", .counter, "Number of times that a stream's socket buffer was full.",
                value: counters.stalls)
            text.single(
                "bellhop_stream_collapsed_total", .counter, "Queued states replaced by newer ones.",
                value: counters.collapsed)
            text.single("bellhop_stream_inbox_depth", .gauge, "Messages queued for shards.", value: counters.inboxDepth)
            boards.write(to: &text)
        }
    }
}
