import Database
import Domain
import TestSupport
import Values

@testable import Service

/// The outbox of webhooks with two senders, under a seeded schedule of notifications, users that see them, attempts,
/// answers that are lost, senders that stand still or are killed, and clocks that are set back.
///
/// The statements are the real ones, on a real database. The network, the clock and the order of steps are simulated.
///
/// Invariants: every notification that stays unseen is accepted once, and again only after an answer was lost or a
/// sender stopped. Two senders never send the same webhook at the same time. A webhook is not sent if its notification
/// was seen before the attempt began. What was sent and then seen is withdrawn afterwards. The notifications of a user
/// are accepted in their order.
struct OutboxSimulation {
    /// A notification as its user and the receiver know it.
    private struct Note {
        let notification: Notification
        var isSeen = false
        /// How often the receiver has accepted it, and how often it may have to accept it once more.
        var accepted = 0
        var excuses = 0
        var isWithdrawn = false
    }

    private struct Attempt {
        let attempt: WebhookAttempt
        let begunAt: Duration
        /// Whether the notification was seen when the attempt began.
        let wasSeen: Bool
        var result: WebhookResult?
    }

    private let schedule: Schedule
    private let store: DatabaseStore
    private let reader: TransactionReader
    private let clock: ManualClock
    private var notes: [String: Note] = [:]
    private var order: [ID<User>: [String]] = [:]
    private var senders: [[Attempt]] = [[], []]
    private var made = 0
    private var found: String?

    private static let users: [ID<User>] = ["ada", "ben"]
    private static let sources = WebhookSources(message: { _, _, _ in nil }, preferences: { _, _ in Preferences() })
    private static let timeoutSeconds: Int64 = 10

    private init(_ schedule: Schedule, _ reader: TransactionReader, _ clock: ManualClock) {
        (self.schedule, self.reader, self.clock, store) = (schedule, reader, clock, reader.store)
    }

    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule, _ reader: TransactionReader, _ clock: ManualClock) -> String? {
        var simulation = OutboxSimulation(schedule, reader, clock)
        do {
            try simulation.write { _ = try $0.db.run("DELETE FROM \(WebhooksFeature.sent)") }
            try simulation.run()
        } catch {
            return simulation.found ?? "\(error)"
        }
        return simulation.found
    }

    private mutating func run() throws {
        for _ in 0..<schedule.count(10...39) where found == nil {
            schedule.step()
            try act()
        }
        schedule.step()
        try settle()
        for (id, note) in notes.sorted(by: { $0.key < $1.key }) where found == nil {
            if !note.isSeen, note.accepted == 0 { found = "\(id) is unseen and was never accepted" }
            if note.isSeen, note.accepted > 0, !note.isWithdrawn { found = "\(id) was sent, seen and not withdrawn" }
        }
    }

    private mutating func act() throws {
        let sender = schedule.number(2)
        switch schedule.number(18) {
        case 0, 1: try notify(Self.users[schedule.number(2)])
        case 2, 3: try see()
        case 4, 5, 6: pass(Int64(1 + schedule.number(60)))
        case 7: if schedule.number(2) == 0 { try setBack() } else { try prune() }
        case 8: if schedule.number(2) == 0 { kill(sender) }
        case 9, 10, 11: try begin(sender)
        case 12, 13, 14, 15: send(sender, at: schedule.number(3), outcome: schedule.number(6))
        default: try record(sender)
        }
    }

    /// Lets everything end: answers come, and the clock runs.
    private mutating func settle() throws {
        schedule.tell("the senders work on, and every request is accepted")
        for _ in 0..<200 where found == nil {
            pass(20)
            try prune()
            for sender in senders.indices {
                try begin(sender)
                for index in senders[sender].indices { send(sender, at: index, outcome: 0) }
                try record(sender)
            }
            if try isEmpty() { return }
        }
        found = found ?? "webhooks wait without end"
    }

    private func isEmpty() throws -> Bool {
        try store.read { try $0.integer("SELECT count(*) FROM \(WebhooksFeature.sent) WHERE state = 0") } == 0
    }

    // MARK: The users

    private func write<Value: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> Value) throws -> Value {
        try reader.write(body)
    }

    private mutating func notify(_ user: ID<User>) throws {
        made += 1
        var notification = Notification()
        (notification.id, notification.createdAt) = (ID("n\(made)"), clock.now)
        (notification.draft.userId, notification.draft.priority) = (user, .high)
        try write { [notification] in $0.record(.notificationsCreated([(notification, Preferences())])) }
        notes["n\(made)"] = Note(notification: notification)
        order[user, default: []].append("n\(made)")
        schedule.tell("\(user) gets the notification n\(made)")
    }

    private mutating func see() throws {
        let unseen = notes.filter { !$0.value.isSeen }.keys.sorted()
        guard !unseen.isEmpty else { return }
        let id = unseen[schedule.number(unseen.count)]
        guard let notification = notes[id]?.notification else { return }
        try write { $0.record(.notificationsCleared([notification], isRemoved: false)) }
        notes[id]?.isSeen = true
        schedule.tell("\(id) is seen")
    }

    private func pass(_ seconds: Int64) {
        clock.advance(seconds: seconds)
        schedule.tell("\(seconds) s pass")
    }

    /// The upkeep follows soon. Until then the times of the rows are wrong.
    private mutating func setBack() throws {
        let seconds = Int64(10 * (1 + schedule.number(400)))
        clock.set(clock.now.adding(seconds: -seconds))
        schedule.tell("the clock is set back by \(seconds) s")
        try prune()
    }

    private func prune() throws {
        let now = clock.now
        _ = try store.writeAndWait { db in
            try WebhooksFeature.prune(at: now, AgeTime(now), pauseSeconds: Int64(WebhookRetry.pauseMax), in: db)
        }
    }

    // MARK: The senders

    private mutating func begin(_ sender: Int) throws {
        let (now, begunAt) = (clock.now, clock.clock.uptime())
        let running = Set(senders[sender].map(\.attempt.number))
        let until = now.adding(seconds: Self.timeoutSeconds + WebhookLimits.leaseSeconds)
        let numbers = try store.read { try WebhooksFeature.due(at: now, except: running, nil, limit: 4, in: $0) }.map(
            \.number)
        guard !numbers.isEmpty else { return }
        let begun = try store.writeAndWait { db in
            try WebhooksFeature.begin(numbers, at: now, leasedUntil: until, in: db).compactMap {
                try WebhooksFeature.completed($0, Self.sources, epoch: "e", at: now, in: db)
            }
        }
        for attempt in begun {
            let other = senders[1 - sender].first { $0.attempt.number == attempt.number && $0.result == nil }
            if let other, begunAt < other.begunAt + .seconds(WebhookLimits.leaseSeconds) {
                found = found ?? "two senders send \(attempt.subject)"
            }
            // An earlier attempt may still be under way, or its answer was lost.
            if attempt.attempt > 1 { notes[attempt.subject]?.excuses += 1 }
            let wasSeen = notes[attempt.subject]?.isSeen == true
            senders[sender].append(Attempt(attempt: attempt, begunAt: begunAt, wasSeen: wasSeen))
        }
        schedule.tell("sender \(sender) begins \(begun.map { "\($0.type.rawValue) \($0.subject)" })")
    }

    /// - Parameter outcome: 0 to 2: accepted; 3: refused; 4: the answer is lost; 5: the sender stands still
    private mutating func send(_ sender: Int, at index: Int, outcome: Int) {
        guard index < senders[sender].count, senders[sender][index].result == nil, outcome < 5 else { return }
        let (attempt, wasSeen) = (senders[sender][index].attempt, senders[sender][index].wasSeen)
        let late = senders[sender][index].begunAt + .seconds(WebhookLimits.leaseSeconds)
        guard clock.clock.uptime() < late else {
            senders[sender][index].result = .interrupted
            return
        }
        if outcome != 3 { accept(attempt, wasSeen: wasSeen) }
        senders[sender][index].result =
            outcome < 3 ? .accepted : .refused(error: "timeout", nextAt: clock.now.adding(seconds: 5))
        schedule.tell("sender \(sender) sends \(attempt.type.rawValue) \(attempt.subject), outcome \(outcome)")
    }

    private mutating func accept(_ attempt: WebhookAttempt, wasSeen: Bool) {
        let id = attempt.subject
        guard let note = notes[id] else { return }
        if attempt.type == .withdrawn {
            if !note.isSeen { found = found ?? "\(id) is withdrawn and unseen" }
            notes[id]?.isWithdrawn = true
            return
        }
        if wasSeen { found = found ?? "\(id) is sent although it was seen before the attempt began" }
        if note.isWithdrawn { found = found ?? "\(id) is sent after its withdrawal" }
        if note.accepted > note.excuses { found = found ?? "\(id) is sent again without a reason" }
        let earlier = order[note.notification.userId, default: []].prefix { $0 != id }
        if note.accepted == 0,
            let other = earlier.first(where: { notes[$0]?.isSeen == false && notes[$0]?.accepted == 0 })
        {
            found = found ?? "\(id) is sent before \(other)"
        }
        notes[id]?.accepted += 1
    }

    private mutating func record(_ sender: Int) throws {
        let now = clock.now
        let ended = senders[sender].compactMap { attempt in attempt.result.map { (attempt.attempt, $0) } }
        guard !ended.isEmpty else { return }
        try store.writeAndWait { db in
            for (attempt, result) in ended { try WebhooksFeature.record(result, of: attempt, at: now, in: db) }
        }
        senders[sender].removeAll { $0.result != nil }
        schedule.tell("sender \(sender) stores \(ended.map(\.0.subject))")
    }

    private mutating func kill(_ sender: Int) {
        guard !senders[sender].isEmpty else { return }
        senders[sender] = []
        schedule.tell("sender \(sender) is killed")
    }
}

extension TransactionReader {
    /// Runs a transaction of the service, as features do in each other's transactions.
    func write<Value: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> Value) throws -> Value {
        try store.writeAndWait { db in
            let caller = Caller.system(tenant: "default")
            try db.enter(caller.scope)
            let tx = Transaction(db: db, caller: caller, reader: self)
            let value = try body(tx)
            try tx.settle()
            return value
        }
    }
}
