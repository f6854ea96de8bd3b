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

    private let store: Store
    private let logger: Logger
    private let publish: @Sendable ([StreamEvent]) -> Void
    private let fellBehind: @Sendable () -> Void
    /// Guards everything below; signalled when there may be something to read.
    private let condition = NSCondition()
    private var head: Int64
    private var waiting: [Int64: StreamEvent] = [:]
    private var isWoken = false
    private var isStopping = false
    private var isRunning = false
    private var contactAt = ContinuousClock.now
    private var isFailing = false
    private var stopListening: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - head: the newest event when the service started.
    ///   - publish: called in order, by one thread at a time.
    ///   - fellBehind: called when events were removed from the log before they were read.
    init(
        store: Store, head: Int64, logger: Logger, publish: @escaping @Sendable ([StreamEvent]) -> Void,
        fellBehind: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.head = head
        self.logger = logger
        self.publish = publish
        self.fellBehind = fellBehind
    }

    // MARK: From this process

    /// Events of a transaction that was committed here.
    func committed(_ events: [StreamEvent]) {
        condition.withLock {
            if waiting.count + events.count > Self.waitingMax { waiting = [:] }
            for event in events where event.sequence > head { waiting[event.sequence] = event }
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
        }
        if !next.isEmpty { publish(next) }
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

    private func run() {
        while let head = waitForWork() {
            do {
                // One statement, which also is the poll: a look at the end of an index.
                let events = try store.read(isSingle: true) {
                    try EventLog.following(head, limit: Self.readMax, in: $0)
                }
                received(events)
            } catch {
                if condition.withLock({
                    defer { isFailing = true }
                    return !isFailing
                }) {
                    logger.warning("The event log cannot be read; it is tried again.", metadata: ["reason": "\(error)"])
                }
                // Not at once: a server that refuses is not helped by being asked in a loop.
                usleep(.random(in: 100_000...300_000))
            }
        }
    }

    /// The number from which to read; nil at the end.
    private func waitForWork() -> Int64? {
        condition.withLock {
            let deadline = Date(timeIntervalSinceNow: Self.pollSeconds)
            while !isWoken, !isStopping, !isFailing, condition.wait(until: deadline) {}
            isWoken = false
            return isStopping ? nil : head
        }
    }

    private func received(_ events: [StreamEvent]) {
        let isLost = condition.withLock {
            if isFailing { logger.info("The event log can be read again.") }
            isFailing = false
            contactAt = .now
            for event in events where event.sequence > head { waiting[event.sequence] = event }
            publishInOrder()
            // Numbers have no gaps: one that was not read is not kept any more, since this replica was away longer
            // than the log is kept.
            let oldest = events.first { $0.sequence > head }
            guard let oldest, waiting[head + 1] == nil else {
                if events.count == Self.readMax { wake() }
                return false
            }
            head = oldest.sequence - 1
            publishInOrder()
            return true
        }
        if isLost { fellBehind() }
    }
}
