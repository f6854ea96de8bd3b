import Database
import Domain
import Logging
import MicroHTTP

/// What requests and streams stand on, read from the database at start.
struct Foundations {
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
