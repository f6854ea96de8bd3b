import Database
import Domain
import Logging

/// The start of the service: its parameters, and the data that it reads from the database before anything is served.
struct ServiceStart {
    let store: DatabaseStore
    let settings: Settings
    /// The time of the service.
    let clock: Clock
    let clockLines: ClockLines
    let metrics: MetricsRegistry
    let logger: Logger
    /// The shares of the badges that are hidden from users, because their features are off.
    let hiddenShares: BadgeShares
    let shareWalk: ShareWalk
    let features: [Feature]
    /// The log from which streams are served.
    let log: LogIdentity
    /// The newest event of the log.
    let head: Int64
    let positions: TenantPositions
    /// Signs the cursors of lists, and tickets.
    let cursorSecret: [UInt8]
    /// Recognizes erased persons.
    let personSeal: PersonSeal
    /// Refuses what names a person whose erasure is about to end.
    let gate: ErasureGate
    let memberships: MembershipRegistry
    let revocations: RevocationList
    let tenants: Tenants
    let backends = Backends()

    init(
        _ store: DatabaseStore, settings: Settings, clock machine: Clock, metrics: MetricsRegistry, logger: Logger,
        hiding hiddenShares: BadgeShares? = nil
    ) throws {
        (self.store, self.settings) = (store, settings)
        (self.metrics, self.logger) = (metrics, logger)
        features = Catalog.features(on: settings.features)
        self.hiddenShares = hiddenShares ?? Catalog.hiddenShares(on: settings.features)
        shareWalk = ShareWalk(hiding: self.hiddenShares, logger: logger)
        try Self.prepare(store, logger)
        let (line, reached) = try store.read { try ClockLines.read(boot: machine.boot, in: $0) }
        let steady = SteadyClock(machine, line: line, reached: reached, logger: logger)
        steady.register(in: metrics)
        let clock = Clock(steady, on: machine)
        (self.clock, clockLines) = (clock, ClockLines(clock, steady))
        let personSecret: [UInt8]
        (log, cursorSecret, personSecret) = try store.writeAndWait { db in
            // Created once, by the first replica.
            try db.lock(["bellhop:start"])
            return (
                LogIdentity(
                    try EventLog.epoch(at: clock.now(), in: db),
                    secret: try ServiceSecrets.secret(named: "event-ids", in: db)),
                try ServiceSecrets.secret(named: "page-cursors", in: db),
                try ServiceSecrets.secret(named: "erased-persons", in: db)
            )
        }
        let memberships = MembershipRegistry(settings.tables)
        self.memberships = memberships
        let (head, revoked, tenants) = try store.read { db in
            try memberships.reload(in: db)
            return (
                try EventLog.newestSequence(in: db), try StreamsFeature.revocations(in: db), try Tenants(in: db)
            )
        }
        self.head = head
        positions = TenantPositions(head: head, ids: log.ids)
        let personSeal = PersonSeal(secret: personSecret)
        self.personSeal = personSeal
        gate = ErasureGate { try ErasureFeature.closing(in: $0, personSeal) }
        revocations = RevocationList(revoked, seal: personSeal)
        self.tenants = tenants
    }

    /// Migrates a file. A server, whose tables the service must not own, is only checked.
    private static func prepare(_ store: DatabaseStore, _ logger: Logger) throws {
        guard store.engine == .sqlite else {
            let pending = try store.pendingMigrations(Catalog.migrations)
            guard pending.isEmpty else {
                throw DatabaseError(
                    .schema,
                    "\(pending.count) migrations have not been applied: run bellhop migrate as the owner of the tables")
            }
            return
        }
        let applied = try store.migrate(Catalog.migrations)
        if !applied.isEmpty {
            logger.info("The database was migrated.", metadata: ["migrations": "\(applied.count)"])
        }
    }
}
