import Database
import Domain
import Logging
import Realtime
import Threads

/// Brings committed events to this process's streams in the order of their numbers, whichever replica wrote them.
///
/// On SQLite the one writer commits in order, and what it commits is published at once. On PostgreSQL events come from
/// writers here, which know theirs, and from other replicas, whose commits a notification announces; a poll stands
/// behind it. Numbers have no gaps (`EventLog.append`), so the next one is either here or to be read.
final class EventPump: Sendable {
    /// Own events that wait for others' before them. More, and they are read from the log like the others'.
    private static let waitingMax = 10_000
    /// Events read at once, and some more that their records reach.
    private static let readMax = 1_000
    /// The database counts as reachable this long after it was reached.
    private static let contactSeconds: Int64 = 3

    private let store: Store
    private let clock: Clock
    /// The pause between two polls, which stand behind the notifications.
    private let pollPause: Duration
    private let log: LogIdentity
    private let logger: Logger
    private let revocations: RevocationList
    /// Longer without the events of others, and their revocations may be missing.
    private let revocationsTrusted: Duration
    /// Gives events to streams. Called in order, by one thread at a time; must not wait.
    private let publish: @Sendable ([LoggedEvent]) -> Void
    /// Ends all streams; the next event published follows the given one. Must not wait.
    private let begin: @Sendable (_ head: Int64) -> Void
    /// Read again what missed events would have changed, each by one statement.
    private let catchUp: [@Sendable (Connection) throws -> Void]
    private struct State {
        var head: Int64
        var waiting: [Int64: LoggedEvent] = [:]
        /// The last one published: if the log has another in its place, it is not the log that it was.
        var last: StreamEvent?
        var isWoken = false
        /// An own event has a number that was published before.
        var isDoubtful = false
        var contactAt = ContinuousClock.now
        /// Everything that was committed until then is published.
        var caughtUpAt = ContinuousClock.now
        var isFailing = false
        var stopListening: (@Sendable () -> Void)?
    }

    private let state: Locked<State>
    private let thread = LoopThread("event-pump")

    /// - Parameter head: the newest event when the service started.
    init(
        store: Store, clock: Clock, log: LogIdentity, head: Int64, revocations: RevocationList,
        revocationsTrusted: Duration, logger: Logger,
        publish: @escaping @Sendable ([LoggedEvent]) -> Void, begin: @escaping @Sendable (_ head: Int64) -> Void,
        catchUp: [@Sendable (Connection) throws -> Void]
    ) {
        self.store = store
        self.clock = clock
        pollPause = clock.pause(.seconds(1))
        self.log = log
        state = Locked(State(head: head))
        self.logger = logger
        self.revocations = revocations
        self.revocationsTrusted = revocationsTrusted
        self.publish = publish
        self.begin = begin
        self.catchUp = catchUp
    }

    // MARK: From this process

    /// Takes the events of transactions that were committed here.
    func committed(_ events: [LoggedEvent]) {
        state.withLock { state in
            // The usual case: they are the next ones, and one transaction's numbers have no gaps.
            if state.waiting.isEmpty, let first = events.first, first.event.sequence == state.head + 1 {
                state.head += Int64(events.count)
                state.last = events.last?.event
                return publish(events)
            }
            if state.waiting.count + events.count > Self.waitingMax { state.waiting = [:] }
            for logged in events {
                let event = logged.event
                if event.sequence > state.head {
                    state.waiting[event.sequence] = logged
                } else if event.sequence == state.last?.sequence ? event != state.last : true {
                    // Read from the log before it was handed over here; or the log has turned back.
                    state.isDoubtful = true
                }
            }
            if state.isDoubtful { wake(&state) }
            publishInOrder(&state)
            // Those before them were committed by others, and can be read.
            if !state.waiting.isEmpty { wake(&state) }
        }
    }

    private func publishInOrder(_ state: inout State) {
        var next: [LoggedEvent] = []
        while let logged = state.waiting.removeValue(forKey: state.head + 1) {
            state.head += 1
            next.append(logged)
            state.last = logged.event
        }
        if !next.isEmpty { publish(next) }
    }

    private func wake(_ state: inout State) {
        state.isWoken = true
        thread.wake()
    }

    /// Gives the log another name, in a transaction by which rows were missed: all streams begin anew once it is committed.
    func renewEpoch(in db: Connection) throws {
        let now = clock.now()
        try EventLog.renewEpoch(log.epoch, at: now, in: db)
        let epoch = try EventLog.epoch(at: now, in: db)
        db.afterCommit { [self] in
            state.withLock { state in
                log.epoch = epoch
                begin(state.head)
            }
        }
    }

    // MARK: From other replicas

    func start() {
        guard store.engine == .postgreSQL else { return }
        thread.start { [self] in
            while step() {}
        }
        let stop = store.listen(to: "\(EventLog.channel)") { [weak self] payload in self?.notified(payload) }
        state.withLock { $0.stopListening = stop }
    }

    func stop() {
        // Given up here: the listener's thread lives as long as somebody could end it.
        let stopListening = state.withLock { state in
            defer { state.stopListening = nil }
            return state.stopListening
        }
        stopListening?()
        thread.stop()
    }

    /// - Parameter payload: the newest number; nil if some may have been missed.
    private func notified(_ payload: String?) {
        let newest = payload.flatMap { Int64($0) }
        state.withLock { state in
            if let newest, newest <= state.head { return }
            wake(&state)
        }
    }

    /// Whether the database was reached lately.
    var isInContact: Bool {
        guard store.engine == .postgreSQL else { return true }
        return state.withLock { !$0.isFailing && ContinuousClock.now - $0.contactAt < .seconds(Self.contactSeconds) }
    }

    /// Waits for a notification or the time of the poll, and reads what is new; false at the end.
    private func step() -> Bool {
        let isFailing = state.withLock { $0.isFailing }
        guard thread.wait(atMost: isFailing ? .zero : pollPause) else { return false }
        let (isNotified, head, last) = state.withLock { state in
            defer { (state.isWoken, state.isDoubtful) = (false, false) }
            return (state.isWoken && !state.isDoubtful, state.head, state.last)
        }
        do {
            if isNotified { try read(after: head) } else { try poll(head, last) }
        } catch {
            noteFailure(error)
            // Not at once: a server that refuses is not helped by being asked in a loop.
            _ = thread.pause(for: .milliseconds(.random(in: 100...300)))
        }
        distrustIfCutOff()
        return true
    }

    private func noteFailure(_ error: any Error) {
        let isNew = state.withLock { state in
            defer { state.isFailing = true }
            return !state.isFailing
        }
        if isNew {
            logger.warning("The event log cannot be read; it is tried again.", metadata: ["reason": "\(error)"])
        }
    }

    private func noteContact(_ state: inout State) {
        if state.isFailing { logger.info("The event log can be read again.") }
        state.isFailing = false
        state.contactAt = .now
    }

    /// Everything committed is published here, revocations too.
    private func noteCaughtUp(_ state: inout State) {
        state.caughtUpAt = .now
        if revocations.trust() { logger.info("The revocations of other replicas are known again.") }
    }

    /// Others go on revoking while nothing arrives here: after a while it is safer to refuse all tokens, and to end the
    /// streams that they have opened, which nothing reaches anyway.
    private func distrustIfCutOff() {
        state.withLock { state in
            guard ContinuousClock.now - state.caughtUpAt >= revocationsTrusted, revocations.distrust() else { return }
            logger.error(
                "Cut off from the database: revocations of other replicas are not known, so no token is trusted.",
                metadata: ["seconds": "\(revocationsTrusted.components.seconds)"])
            begin(state.head)
        }
    }

    /// Reads with one statement, whatever requests are doing to the database.
    private func look<Value>(_ body: (Connection) throws -> Value) throws -> Value {
        try store.read(isSingle: true, isVital: true, body)
    }

    private func poll(_ head: Int64, _ last: StreamEvent?) throws {
        let state = try look { try EventLog.state(lookingAt: head, in: $0) }
        let isAnother = last?.sequence == head && state.content.map { $0 != last?.data } ?? false
        self.state.withLock { own in
            noteContact(&own)
            if state.newest > own.head { wake(&own) }
            let isPublished = state.newest >= head && state.newest <= own.head
            if isPublished, state.epoch == log.epoch, !isAnother { noteCaughtUp(&own) }
        }
        // Events that streams have received are lost: a server took over that had not got them. Their numbers will be
        // given again, so the log must not be taken for the same one.
        if state.newest < head || isAnother, state.epoch == log.epoch {
            logger.error(
                "The log has lost events that were told; streams begin anew.",
                metadata: ["told": "\(head)", "newest": "\(state.newest)"])
            let (old, now) = (state.epoch, clock.now())
            try store.writeAndWait { try EventLog.renewEpoch(old, at: now, in: $0) }
            try adopt(look { try EventLog.state(lookingAt: 0, in: $0) })
        } else if state.epoch != log.epoch {
            try adopt(state)
        }
    }

    /// Another replica, or somebody who restored a copy, has given the log another name.
    private func adopt(_ state: EventLog.State) throws {
        try restart(after: state.newest) { log.epoch = state.epoch }
    }

    private func read(after sequence: Int64) throws {
        // With the one before: if it is not what was published, the log has turned back.
        let (events, isAll) = try look { try EventLog.following(sequence - 1, limit: Self.readMax, in: $0) }
        let isAnother = state.withLock { state in
            guard let last = state.last, let same = events.first, same.sequence == last.sequence else { return false }
            state.isDoubtful = same != last
            if state.isDoubtful { wake(&state) }
            return state.isDoubtful
        }
        if isAnother { return }
        let missed = state.withLock { state -> Int64? in
            noteContact(&state)
            for event in events where event.sequence > state.head {
                state.waiting[event.sequence] = LoggedEvent(event: event)
            }
            publishInOrder(&state)
            // Numbers have no gaps: one that was not read is not retained any more, since this replica was away longer
            // than the log is retained.
            if let next = events.first(where: { $0.sequence > state.head }) { return next.sequence - 1 }
            if isAll { noteCaughtUp(&state) } else { wake(&state) }
            return nil
        }
        if let missed { try restart(after: missed) {} }
    }

    /// Ends all streams, catches up, and goes on behind an event.
    private func restart(after sequence: Int64, _ change: () -> Void) throws {
        // First what decides who may open a stream.
        for step in catchUp { try look { try step($0) } }
        state.withLock { state in
            change()
            state.head = sequence
            state.last = nil
            state.waiting = state.waiting.filter { $0.key > sequence }
            begin(sequence)
            publishInOrder(&state)
            wake(&state)
        }
    }
}
