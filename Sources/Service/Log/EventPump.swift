import Database
import Logging
import Realtime
import Synchronization
import Threads

/// The delivery of committed events to this process's streams in the order of their numbers, whichever replica wrote
/// them.
///
/// On SQLite, the single writer commits in order, and its events are published at once. On PostgreSQL, events come from
/// the writers here, which pass them on, and from other replicas, whose commits a notification announces. A poll backs
/// up the notifications. Numbers have no gaps (`EventLog.append`), so the next event is either here or can be read.
/// `LogFollower` decides what to publish and what to query; this class performs it.
final class EventPump: Sendable {
    /// Events read at once, plus further events of the same records.
    private static let readMax = 1_000
    /// The pause after events were read, so that the next statement reads several. An event after a quiet moment is read
    /// at once.
    private static let readPause: Duration = .milliseconds(3)
    /// How long the database counts as reachable after the last contact.
    private static let contactTimeoutSeconds: Int64 = 3

    /// The name of this process among the replicas, which distinguishes its own notifications.
    let replica = String(UInt64.random(in: .min ... .max), radix: 36)
    private let store: DatabaseStore
    private let clock: Clock
    /// The pause between two polls, which back up the notifications.
    private let pollPause: Duration
    private let log: LogIdentity
    private let logger: Logger
    private let revocations: RevocationList
    /// After a longer time without other replicas' events, all streams end, because tokens may have been revoked.
    private let revocationsTrusted: Duration
    /// Delivers events to streams. It is called in order, by one thread at a time, and must not block.
    private let publish: @Sendable ([LoggedEvent]) -> Void
    /// Ends all streams; the next published event follows the given one. It must not block.
    private let restartStreams: @Sendable (_ head: Int64) -> Void
    /// Reload the data that missed events would have changed, each with one statement.
    private let catchUp: [@Sendable (DatabaseConnection) throws -> Void]
    private struct State {
        var follower: LogFollower<LoggedEvent>
        var lastContactAt = ContinuousClock.now
        var isFailing = false
        /// Whether it was logged that tokens are refused.
        var isOutdated = false
        /// Whether the streams were ended for that reason.
        var hasEndedStreams = false
        var stopListening: (@Sendable () -> Void)?
    }

    private let state: Locked<State>
    /// The follower's term. Writers read it before each group of transactions.
    private let currentTerm = Atomic<Int>(0)
    private let thread = LoopThread("event-pump")

    /// Creates the pump.
    ///
    /// - Parameter head: The newest event when the service started.
    init(
        store: DatabaseStore, clock: Clock, log: LogIdentity, head: Int64, revocations: RevocationList,
        revocationsTrusted: Duration, logger: Logger,
        publish: @escaping @Sendable ([LoggedEvent]) -> Void,
        restartStreams: @escaping @Sendable (_ head: Int64) -> Void,
        catchUp: [@Sendable (DatabaseConnection) throws -> Void]
    ) {
        self.store = store
        self.clock = clock
        pollPause = clock.pause(.seconds(1))
        self.log = log
        let isAlone = store.engine == .sqlite
        state = Locked(
            State(follower: LogFollower(head: head, epoch: log.epoch, isAlone: isAlone, at: Self.uptime)))
        if !isAlone { revocations.follow(until: .now) }
        self.logger = logger
        self.revocations = revocations
        self.revocationsTrusted = revocationsTrusted
        self.publish = publish
        self.restartStreams = restartStreams
        self.catchUp = catchUp
    }

    // MARK: From this process

    /// The term of events that are appended now, for ``committed(_:term:)``.
    var term: Int { currentTerm.load(ordering: .acquiring) }

    /// Takes the events of transactions that were committed here.
    func committed(_ events: [LoggedEvent], term: Int) {
        state.withLock { state in
            let next = state.follower.committed(events, term: term, at: Self.uptime)
            if !next.isEmpty { publish(next) }
            if state.follower.isWoken { thread.wake() }
        }
    }

    /// Gives the log a new epoch, in a transaction after which rows are missing: all streams restart once it is
    /// committed.
    func renewEpoch(in db: DatabaseConnection) throws {
        let now = clock.now()
        try EventLog.renewEpoch(log.epoch, at: now, in: db)
        let epoch = try EventLog.epoch(at: now, in: db)
        db.afterCommit { [self] in
            state.withLock { state in
                log.epoch = epoch
                state.follower.renewed(epoch)
                restartStreams(state.follower.head)
            }
        }
    }

    // MARK: From other replicas

    func start() {
        guard store.engine == .postgreSQL else { return }
        thread.start { [self] in
            while step() {}
        }
        let stop = store.listen(to: "\(EventLog.channel)") { [weak self] signal in self?.received(signal) }
        state.withLock { $0.stopListening = stop }
    }

    func stop() {
        // Released here, because the listener's thread lives as long as this reference to its stop function.
        let stopListening = state.withLock { state in
            defer { state.stopListening = nil }
            return state.stopListening
        }
        stopListening?()
        thread.stop()
    }

    /// Handles a signal of the log's channel. This process has its own events already, or finds them with the next poll if
    /// the answer to their commit was lost. Without notifications, it looks at the log.
    private func received(_ signal: ChannelSignal) {
        var announced: EventLog.Announcement?
        if case .notified(let payload) = signal { announced = EventLog.Announcement(payload: payload) }
        if announced?.replica == replica { return }
        state.withLock { state in
            state.follower.announced(announced?.newest)
            if state.follower.isWoken { thread.wake() }
        }
    }

    /// Whether the database was reached recently.
    var isDatabaseReachable: Bool {
        guard store.engine == .postgreSQL else { return true }
        return state.withLock {
            !$0.isFailing && ContinuousClock.now - $0.lastContactAt < .seconds(Self.contactTimeoutSeconds)
        }
    }

    /// Waits for a notification or the next poll, and reads the log. Returns false at the end.
    private func step() -> Bool {
        let pause = state.withLock { $0.follower.pause(at: Self.uptime, pollPause: pollPause) }
        guard thread.wait(atMost: pause) else { return false }
        let request = state.withLock { $0.follower.nextRequest(at: Self.uptime, pollPause: pollPause) }
        if let request {
            do {
                switch request.kind {
                case .read:
                    try read(request)
                    _ = thread.pause(for: Self.readPause)
                case .poll: try poll(request)
                }
            } catch {
                state.withLock { $0.follower.failed(request) }
                noteFailure(error)
                // Not at once, because a tight loop of retries does not help a failing server.
                _ = thread.pause(for: .milliseconds(.random(in: 100...300)))
            }
        }
        noteOutdated()
        return true
    }

    private static let started = ContinuousClock.now
    private static var uptime: Duration { started.duration(to: .now) }

    private func noteFailure(_ error: any Error) {
        let isNew = state.withLock { state in
            defer { state.isFailing = true }
            return !state.isFailing
        }
        if isNew {
            logger.warning("The event log cannot be read. Retrying.", metadata: ["reason": "\(error)"])
        }
    }

    private func noteContact(_ state: inout State) {
        if state.isFailing { logger.info("The event log can be read again.") }
        state.isFailing = false
        state.lastContactAt = .now
    }

    /// Records that everything that was committed when the log was asked is published here, including revocations.
    private func noteCaughtUp(_ state: inout State) {
        revocations.follow(until: Self.started + state.follower.caughtUpAt)
        guard revocations.isTrusted else { return }
        if state.isOutdated { logger.info("The revocations of other replicas are known again.") }
        (state.isOutdated, state.hasEndedStreams) = (false, false)
    }

    /// Logs that this replica is cut off and refuses all tokens (`RevocationList.isTrusted`), because other replicas
    /// continue to revoke tokens. After a longer time their streams end too, which receive nothing anyway.
    private func noteOutdated() {
        state.withLock { state in
            let age = Self.uptime - state.follower.caughtUpAt
            if !state.isOutdated, age > RevocationList.trusted {
                state.isOutdated = true
                logger.error(
                    "The database cannot be reached, so revocations of other replicas are unknown. All tokens are rejected.",
                    metadata: ["seconds": "\(age.components.seconds)"])
            }
            guard !state.hasEndedStreams, age >= revocationsTrusted else { return }
            state.hasEndedStreams = true
            restartStreams(state.follower.head)
        }
    }

    /// Reads with one statement, independent of the load from requests.
    private func readOnce<Value>(_ body: (DatabaseConnection) throws -> Value) throws -> Value {
        try store.read(isSingle: true, isVital: true, body)
    }

    private func poll(_ request: LogFollower<LoggedEvent>.Request) throws {
        let found = try store.read(isSingle: !request.isTimed, isVital: true) {
            try EventLog.state(lookingAt: request.place, comparesOrigin: request.isTimed, in: $0)
        }
        let outcome = state.withLock { state in
            noteContact(&state)
            let outcome = state.follower.polled(found, answering: request)
            if outcome == .unchanged(isCaughtUp: true) { noteCaughtUp(&state) }
            return outcome
        }
        switch outcome {
        case .unchanged: break
        case .adopt: try adopt(found, request)
        case .renew(let epoch):
            // Events that streams have received may be lost: a server took over that had not received them. Their
            // numbers will be assigned again, so the log must not be treated as the same one.
            let now = clock.now()
            if try store.writeAndWait({ try EventLog.renewEpoch(epoch, at: now, in: $0) }) {
                logger.error(
                    "The event log may have lost published events, because another database server took over. All streams resync.",
                    metadata: ["published": "\(request.head)", "newest": "\(found.newest)"])
            }
            try adopt(readOnce { try EventLog.state(lookingAt: 0, in: $0) }, request)
        }
    }

    /// Adopts the epoch that this or another replica, or a restore of a copy, has given the log.
    private func adopt(_ found: LogState<LoggedEvent>, _ request: LogFollower<LoggedEvent>.Request) throws {
        try restart { state in
            guard state.follower.adopt(found, answering: request) else { return false }
            log.epoch = found.epoch
            currentTerm.store(state.follower.term, ordering: .releasing)
            return true
        }
    }

    private func read(_ request: LogFollower<LoggedEvent>.Request) throws {
        // Includes the event before. If it differs from the published one, the log has lost it.
        let (events, isAll) = try readOnce {
            try EventLog.following(request.head - 1, limit: Self.readMax, in: $0)
        }
        let entries = events.map { LoggedEvent(event: $0) }
        let missed = state.withLock { state in
            noteContact(&state)
            let outcome = state.follower.read(entries, isAll: isAll, answering: request, at: Self.uptime)
            if !outcome.publish.isEmpty { publish(outcome.publish) }
            if outcome.isCaughtUp { noteCaughtUp(&state) }
            return outcome.missed
        }
        guard let missed else { return }
        try restart { state in
            state.follower.restart(after: missed)
            return true
        }
    }

    /// Catches up, ends all streams, and continues at the follower's new position. Streams that missed an event, or for
    /// which one was erased, resync when they resume.
    private func restart(_ change: (inout State) -> Bool) throws {
        // First the data that authorizes streams.
        for step in catchUp { try readOnce { try step($0) } }
        state.withLock { state in
            guard change(&state) else { return }
            restartStreams(state.follower.head)
            let next = state.follower.publishable(at: Self.uptime)
            if !next.isEmpty { publish(next) }
        }
    }
}
