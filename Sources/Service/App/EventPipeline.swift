import Database
import MicroHTTP

/// The parts on an event's path from a commit to the shards: log, pump and router; and the rank updates besides.
struct EventPipeline {
    let shards: StreamShards<StreamHub>
    let boards: Leaderboards
    /// The rank updates, which are not events of the log and go directly to the shards.
    let rankUpdates: RankUpdates
    let router: EventRouter
    let pump: EventPump
    /// The last step of each group of writes, which stores its events and hands them to the pump.
    let appendEvents: GroupStep<PendingEvents>
    /// Receives other replicas' requests about streams; nil if this process is the only one.
    let mailbox: ReplicaRequests.Mailbox?

    init(
        _ start: ServiceStart, shards: StreamShards<StreamHub>, boards: Leaderboards, admission: StreamAdmission,
        tracer: Tracer?
    ) {
        let rankUpdates = RankUpdates(
            boards: boards, log: start.log, clock: start.clock, users: { admission.users(of: $0) },
            hasUsers: { admission.hasUsers(of: $0) },
            deliver: { shards.post(.states($0.map { EncodedState($0) })) })
        let mailbox = start.store.engine == .postgreSQL ? ReplicaRequests.Mailbox() : nil
        let router = EventRouter(
            shards: shards, log: start.log, positions: start.positions, memberships: start.memberships,
            revocations: start.revocations, tracer: tracer,
            receivers: ["\(ChallengesFeature.movedMessage)": rankUpdates.handleBoardChange]
                .merging(mailbox?.receivers ?? [:]) { $1 })
        let pump = EventPump(
            store: start.store, clock: start.clock, log: start.log, head: start.head, revocations: start.revocations,
            revocationsTrusted: .seconds(start.settings.revocationsTrustedSeconds), logger: start.logger,
            publish: { router.publish($0) }, restartStreams: { router.restartStreams(after: $0) },
            catchUp: [
                { try start.revocations.insert(StreamsFeature.revocations(in: $0)) },
                { try start.memberships.reload(in: $0) },
                { _ in boards.forget() },
            ])
        appendEvents = GroupStep<PendingEvents>(order: 1) { db, pending in
            let term = pump.term
            let events = try EventLog.append(pending, by: pump.replica, in: db)
            db.afterCommit { pump.committed(events, term: term) }
        }
        (self.shards, self.boards) = (shards, boards)
        self.rankUpdates = rankUpdates
        self.router = router
        self.pump = pump
        self.mailbox = mailbox
    }

    /// Whether the shards lag so far behind that senders of changes have to wait.
    var isCongested: Bool { shards.all.contains { $0.counters.inboxDepth > Limits.shardInboxMax } }
}
