import Database
import Domain
import Foundation
import Logging
import Realtime

/// Brings committed events to this process's streams in the order of their numbers, whichever replica wrote them.
///
/// On SQLite the one writer commits in order, and what it commits is published at once. On PostgreSQL events come from
/// writers here, which know theirs, and from other replicas, whose commits a notification tells of; a poll stands
/// behind it. Numbers have no gaps (`EventLog.append`), so the next one is either here or to be read.
///
/// `@unchecked Sendable`: the variables are only touched while `condition` is locked.
final class EventPump: @unchecked Sendable {
    /// Own events that wait for others' before them. More, and they are read from the log like the others'.
    private static let waitingMax = 10_000
    /// Events read at once.
    private static let readMax = 1_000
    /// The poll behind the notifications.
    private static let pollSeconds = 1.0
    /// The database counts as reachable this long after it was reached.
    private static let contactSeconds: Int64 = 3

    /// What this process does with what comes.
    struct Replica: Sendable {
        /// Gives events to streams. Called in order, by one thread at a time; must not wait.
        let publish: @Sendable ([StreamEvent]) -> Void
        /// Ends all streams; the next event published follows the given one. Must not wait.
        let begin: @Sendable (_ head: Int64) -> Void
        /// Read again what events would have told that were missed, each by one statement.
        let catchUp: [@Sendable (Connection) throws -> Void]
        /// Called after each look at the log, at least once a second.
        let looked: @Sendable () -> Void
    }

    private let runner: TransactionRunner
    private let log: LogIdentity
    private let logger: Logger
    private let replica: Replica
    /// Guards everything below; signalled when there may be something to read.
    private let condition = NSCondition()
    private var head: Int64
    private var waiting: [Int64: StreamEvent] = [:]
    /// The last one published: if the log has another in its place, it is not the log that it was.
    private var last: StreamEvent?
    private var isWoken = false
    /// An own event has a number that was published before.
    private var isDoubtful = false
    private var isStopping = false
    private var isRunning = false
    private var contactAt = ContinuousClock.now
    private var isFailing = false
    private var stopListening: (@Sendable () -> Void)?

    /// - Parameter head: the newest event when the service started.
    init(runner: TransactionRunner, log: LogIdentity, head: Int64, logger: Logger, replica: Replica) {
        self.runner = runner
        self.log = log
        self.head = head
        self.logger = logger
        self.replica = replica
    }

    private var store: Store { runner.store }

    // MARK: From this process

    /// Events of a transaction that was committed here.
    func committed(_ events: [StreamEvent]) {
        condition.withLock {
            // The usual case: they are the next ones, and one transaction's numbers have no gaps.
            if waiting.isEmpty, let first = events.first, first.sequence == head + 1 {
                head += Int64(events.count)
                last = events.last
                return replica.publish(events)
            }
            if waiting.count + events.count > Self.waitingMax { waiting = [:] }
            for event in events {
                if event.sequence > head {
                    waiting[event.sequence] = event
                } else if event.sequence == last?.sequence ? event != last : true {
                    // Read from the log before it was handed over here; or the log has turned back.
                    isDoubtful = true
                }
            }
            if isDoubtful { wake() }
            publishInOrder()
            // Those before them were committed by others, and can be read.
            if !waiting.isEmpty { wake() }
        }
    }

    /// Call with the lock held.
    private func publishInOrder() {
        var next: [StreamEvent] = []
        while let event = waiting.removeValue(forKey: head + 1) {
            head += 1
            next.append(event)
            last = event
        }
        if !next.isEmpty { replica.publish(next) }
    }

    /// Call with the lock held.
    private func wake() {
        isWoken = true
        condition.signal()
    }

    // MARK: From other replicas

    func start() {
        guard store.engine == .postgreSQL else { return }
        condition.withLock { isRunning = true }
        let thread = Thread { [self] in
            run()
            condition.withLock {
                isRunning = false
                condition.broadcast()
            }
        }
        thread.name = "event-pump"
        thread.start()
        stopListening = store.listen(to: "\(EventLog.channel)") { [weak self] payload in self?.heard(payload) }
    }

    func stop() {
        stopListening?()
        condition.withLock {
            isStopping = true
            condition.broadcast()
            while isRunning { condition.wait() }
        }
    }

    /// - Parameter payload: the newest number; nil if some may have been missed.
    private func heard(_ payload: String?) {
        let newest = payload.flatMap { Int64($0) }
        condition.withLock {
            if let newest, newest <= head { return }
            wake()
        }
    }

    /// Whether the database was reached lately.
    var isInContact: Bool {
        guard store.engine == .postgreSQL else { return true }
        return condition.withLock { !isFailing && ContinuousClock.now - contactAt < .seconds(Self.contactSeconds) }
    }

    private enum Work {
        /// Somebody has told of events behind this one.
        case read(after: Int64)
        /// Nobody has told of anything for a while, or something does not fit.
        case poll(head: Int64, last: StreamEvent?)
    }

    private func run() {
        while let work = waitForWork() {
            do {
                switch work {
                case .read(let sequence): try read(after: sequence)
                case .poll(let head, let last): try poll(head, last)
                }
            } catch {
                noteFailure(error)
                // Not at once: a server that refuses is not helped by being asked in a loop.
                usleep(.random(in: 100_000...300_000))
            }
            replica.looked()
        }
    }

    /// Nil at the end.
    private func waitForWork() -> Work? {
        condition.withLock {
            let deadline = Date(timeIntervalSinceNow: Self.pollSeconds)
            while !isWoken, !isStopping, !isFailing, condition.wait(until: deadline) {}
            if isStopping { return nil }
            defer { (isWoken, isDoubtful) = (false, false) }
            return isWoken && !isDoubtful ? .read(after: head) : .poll(head: head, last: last)
        }
    }

    private func noteFailure(_ error: any Error) {
        let isNew = condition.withLock {
            defer { isFailing = true }
            return !isFailing
        }
        if isNew {
            logger.warning("The event log cannot be read; it is tried again.", metadata: ["reason": "\(error)"])
        }
    }

    /// Call with the lock held.
    private func noteContact() {
        if isFailing { logger.info("The event log can be read again.") }
        isFailing = false
        contactAt = .now
    }

    /// Reads with one statement, whatever requests are doing to the database.
    private func look<Value>(_ body: (Connection) throws -> Value) throws -> Value {
        try store.read(isSingle: true, isVital: true, body)
    }

    private func poll(_ head: Int64, _ last: StreamEvent?) throws {
        let state = try look { try EventLog.state(lookingAt: head, in: $0) }
        let isAnother = last?.sequence == head && state.content.map { $0 != last?.data } ?? false
        condition.withLock {
            noteContact()
            if state.newest > self.head { wake() }
        }
        // What was told has been lost: a server took over that had not got it. Its numbers will be given again, so the
        // log must not be taken for the same one.
        if state.newest < head || isAnother, state.epoch == log.epoch {
            logger.error(
                "The log has lost events that were told; streams begin anew.",
                metadata: ["told": "\(head)", "newest": "\(state.newest)"])
            let (old, now) = (state.epoch, runner.clock.now())
            try store.writeAndWait { try EventLog.renewEpoch(old, at: now, in: $0) }
            try adopt(look { try EventLog.state(lookingAt: 0, in: $0) })
        } else if state.epoch != log.epoch {
            try adopt(state)
        }
    }

    /// Another replica, or somebody who restored a copy, has given the log another name.
    private func adopt(_ state: EventLog.State) throws {
        try begin(after: state.newest) { log.epoch = state.epoch }
    }

    private func read(after sequence: Int64) throws {
        // With the one before: if it is not what was published, the log has turned back.
        let events = try look { try EventLog.following(sequence - 1, limit: Self.readMax, in: $0) }
        let isAnother = condition.withLock {
            guard let last, let same = events.first, same.sequence == last.sequence else { return false }
            isDoubtful = same != last
            if isDoubtful { wake() }
            return isDoubtful
        }
        if isAnother { return }
        let missed = condition.withLock { () -> Int64? in
            noteContact()
            for event in events where event.sequence > head { waiting[event.sequence] = event }
            publishInOrder()
            // Numbers have no gaps: one that was not read is not kept any more, since this replica was away longer
            // than the log is kept.
            if let next = events.first(where: { $0.sequence > head }) { return next.sequence - 1 }
            if events.count == Self.readMax { wake() }
            return nil
        }
        if let missed { try begin(after: missed) {} }
    }

    /// Ends all streams, catches up, and goes on behind an event.
    private func begin(after sequence: Int64, _ change: () -> Void) throws {
        // First what decides who may open a stream.
        for step in replica.catchUp { try look { try step($0) } }
        condition.withLock {
            change()
            head = sequence
            last = nil
            waiting = waiting.filter { $0.key > sequence }
            replica.begin(sequence)
            publishInOrder()
            wake()
        }
    }
}
