import Database
import Domain
import Push
import TestSupport
import Values
import Visibility

@testable import Service

/// The outbox with two senders, under a seeded schedule of notifications and messages, users that see them, phones and
/// browsers that change their addresses or lose the app, an app's server that receives webhooks, attempts, answers that are
/// lost, senders that stand still or are killed, and clocks that are set ahead and back.
///
/// The statements and the channels are the real ones, on a real database. The receivers, the clock and the order of steps
/// are simulated. ``SimulatedReceiver`` is the model of a receiver.
///
/// Invariants: every receiver has an unseen alert in the end. A message that was seen before the attempt began is not
/// sent. A message that was sent and then seen is withdrawn. A receiver has one message about a user on its way at a
/// time, at its present address. An alert arrives again only after an answer was lost or a sender stopped.
/// Notifications arrive in their order. Each number is the user's total when the attempt began, and the last one of a
/// device is the total in the end.
struct OutboxSimulation {
    /// A notification, or the unread messages of a conversation.
    private struct Subject {
        let user: ID<User>
        let type: PushType
        let notification: Notification
        var unread = 0
        /// The number of messages so far. The alert shows it.
        var version = 0
    }

    private struct Attempt {
        let delivery: any OutboxDelivery
        let parcel: Parcel
        let begunAt: Duration
        var outcome: OutboxOutcome?
        /// Whether the receiver has it.
        var hasArrived = false

        /// The time from which it cannot arrive any more.
        var endsAt: Duration {
            begunAt + .seconds(OutboxSimulation.timeoutSeconds + OutboxLimits.leaseSeconds)
        }
    }

    private struct Sender {
        /// The lanes that were found due, by channel.
        var due: [String: [Outbox.Due]] = [:]
        var attempts: [Attempt] = []
    }

    private let schedule: Schedule
    private let db: DatabaseConnection
    private let reader: TransactionReader
    private let push: PushSettings
    private let webhook: WebhookSettings
    private let clock: ManualClock
    /// By tag.
    private var subjects: [String: Subject] = [:]
    private var receivers: [SimulatedReceiver]
    private var senders = [Sender(), Sender()]
    /// The users with a stream.
    private var present: Set<ID<User>> = []
    private var (made, tokens, leases) = (0, 0, 0)
    private var wasSet = false
    /// How many seconds the clock is ahead. Meanwhile the time is in doubt.
    private var ahead: Int64 = 0
    private var found: String?

    private static let users: [ID<User>] = ["ada", "ben"]
    private static let timeoutSeconds: Int64 = 10

    private init(
        _ schedule: Schedule, _ reader: TransactionReader, _ clock: ManualClock, _ push: PushSettings,
        _ webhook: WebhookSettings, _ db: DatabaseConnection
    ) {
        (self.schedule, self.reader, self.clock, self.db) = (schedule, reader, clock, db)
        (self.push, self.webhook) = (push, webhook)
        let users = Self.users.prefix(1 + schedule.number(2))
        receivers = users.flatMap { user in
            SimulatedReceiver.Kind.allCases.map { SimulatedReceiver(of: user, $0) }
        }
    }

    /// Runs a schedule. All its steps share one transaction, because a commit takes longer than all statements.
    ///
    /// - Returns: The violated invariant, or nil.
    static func run(_ schedule: Schedule, _ reader: TransactionReader, _ clock: ManualClock) -> String? {
        guard let push = reader.settings.push, let webhook = reader.settings.webhook else { return "a channel is off" }
        // The calling thread waits meanwhile.
        nonisolated(unsafe) let schedule = schedule
        do {
            return try reader.store.writeAndWait { db in
                var simulation = Self(schedule, reader, clock, push, webhook, db)
                do { try simulation.run() } catch { return simulation.found ?? "\(error)" }
                return simulation.found
            }
        } catch {
            return "\(error)"
        }
    }

    private mutating func run() throws {
        try write { tx in
            for table in [Outbox.messages, Outbox.lanes, PushFeature.devices, BadgeLedger.badges] {
                try tx.db.run("DELETE FROM \(table, unscoped: .audit("a test"))")
            }
        }
        for receiver in receivers.indices { try install(receiver) }
        for _ in 0..<schedule.count(10...39) where found == nil {
            schedule.step()
            try act()
        }
        schedule.step()
        present = []
        if ahead > 0 { try setBack() }
        try settle()
        judge(isLast: false)
        for user in users where found == nil { try notify(user) }
        try settle()
        judge(isLast: true)
    }

    private mutating func act() throws {
        // No two steps have the same time.
        clock.set(Timestamp(microseconds: clock.now.microseconds + 100))
        let sender = schedule.number(2)
        switch schedule.number(28) {
        case 0, 1: try notify(user())
        case 2, 3: try message(user())
        case 4, 5, 6: try see()
        case 7, 8: pass([1, 5, 20, 45][schedule.number(4)])
        case 9: if schedule.number(2) == 0 { try setClock() } else { try upkeep() }
        case 10: if schedule.number(2) == 0 { try stop(sender, isKilled: schedule.number(2) == 0) }
        case 11: try change(schedule.number(receivers.count))
        case 12: enterOrLeave(user())
        case 13, 14: try choose(sender)
        case 15, 16, 17: try begin(sender)
        case 18, 19, 20, 21: send(sender, at: schedule.number(3), outcome: schedule.number(8))
        case 22, 23: try record(sender)
        default: try work(sender, outcomes: 8)
        }
    }

    private var users: [ID<User>] { Array(Self.users.prefix(receivers.count / SimulatedReceiver.Kind.allCases.count)) }

    private func user() -> ID<User> { users[schedule.number(users.count)] }

    /// A sender sends the due messages, and stores the outcomes.
    private mutating func work(_ sender: Int, outcomes: Int) throws {
        try begin(sender)
        for index in senders[sender].attempts.indices {
            send(sender, at: index, outcome: schedule.number(outcomes))
        }
        try record(sender)
    }

    /// Lets everything end: answers come, and the clock runs.
    private mutating func settle() throws {
        schedule.tell("the senders work on, and every message is accepted")
        for _ in 0..<300 where found == nil {
            try upkeep()
            for sender in senders.indices { try work(sender, outcomes: 1) }
            if try isEmpty() { return }
            pass(20)
        }
        found = found ?? "messages wait without end"
    }

    /// Withdrawals of browsers wait for the next alert.
    private func isEmpty() throws -> Bool {
        try db.integer(
            """
            SELECT count(*) FROM \(Outbox.messages, unscoped: .audit("a test"))
            WHERE state = 0 AND NOT (type = 'withdrawal' AND device_id = 'browser')
            """) == 0
    }

    private mutating func judge(isLast: Bool) {
        for receiver in receivers where found == nil {
            found = receiver.fault(total: total(of: receiver.user), isLast: isLast) { [subjects] tag in
                (subjects[tag]?.unread ?? 0, subjects[tag]?.version ?? 0)
            }
        }
    }

    private func total(of user: ID<User>) -> Int {
        subjects.values.reduce(0) { $0 + ($1.user == user ? $1.unread : 0) }
    }

    // MARK: The users

    private func write<Value>(
        as caller: Caller = .system(tenant: "default"), _ body: (Transaction) throws -> Value
    ) throws -> Value {
        try db.enter(caller.scope)
        let tx = Transaction(db: db, caller: caller, reader: reader)
        let value = try body(tx)
        _ = try tx.finish()
        return value
    }

    private mutating func notify(_ user: ID<User>) throws {
        made += 1
        var notification = Notification()
        (notification.id, notification.createdAt) = (ID("n\(made)"), clock.now)
        (notification.draft.userId, notification.draft.priority) = (user, .high)
        try write { [notification] tx in
            try tx.adjustBadges(of: user, bell: 1)
            tx.record(.notificationsCreated([(notification, Preferences())]))
        }
        add(Subject(user: user, type: .notification, notification: notification), "n\(made)")
    }

    private mutating func message(_ user: ID<User>) throws {
        made += 1
        let message = Message(
            id: ID("m\(made)"), conversationId: Self.conversation(of: user), sequence: made, senderId: "cleo", text: "",
            sentAt: clock.now)
        try write { tx in
            try tx.adjustBadges(of: user, messages: 1)
            tx.record(.messageDelivered(message, to: [user]))
        }
        add(
            Subject(user: user, type: .message, notification: Notification()),
            PushFeature.tag(.message, message.conversationId.text))
    }

    private static func conversation(of user: ID<User>) -> ID<Conversation> { ID("cleo-\(user)") }

    private mutating func add(_ subject: Subject, _ tag: String) {
        subjects[tag, default: subject].unread += 1
        subjects[tag, default: subject].version += 1
        for index in receivers.indices where receivers[index].user == subject.user {
            receivers[index].owe(tag, inOrder: subject.type == .notification)
        }
        schedule.tell("\(subject.user) gets \(tag)")
    }

    private mutating func see() throws {
        let unseen = subjects.filter { $0.value.unread > 0 }.keys.sorted()
        guard !unseen.isEmpty else { return }
        let tag = unseen[schedule.number(unseen.count)]
        guard let subject = subjects[tag] else { return }
        let isRemoved = schedule.number(4) == 3
        try write { tx in
            if subject.type == .message {
                try tx.adjustBadges(of: subject.user, messages: -subject.unread)
                tx.record(.conversationRead(Self.conversation(of: subject.user), by: subject.user))
            } else {
                try tx.adjustBadges(of: subject.user, bell: -1)
                tx.record(.notificationsCleared([subject.notification], isRemoved: isRemoved))
            }
        }
        subjects[tag]?.unread = 0
        schedule.tell("\(tag) is seen")
    }

    private func pass(_ seconds: Int64) {
        clock.advance(seconds: seconds)
        schedule.tell("\(seconds) s pass")
    }

    /// The sizes of clock steps, in seconds.
    private let steps: [Int64] = [30, 3_000, 3 * 86_400]

    /// The clock is set ahead for a while, or back.
    private mutating func setClock() throws {
        guard ahead == 0, schedule.number(2) == 0 else { return try setBack() }
        ahead = steps[schedule.number(3)]
        clock.set(clock.now.adding(seconds: ahead))
        wasSet = true
        disorder()
        schedule.tell("the clock is set ahead by \(ahead) s")
    }

    /// The upkeep follows soon. Until then the times of the rows are wrong.
    private mutating func setBack() throws {
        let seconds = ahead > 0 ? ahead : steps[schedule.number(3)]
        clock.set(clock.now.adding(seconds: -seconds))
        (ahead, wasSet) = (0, true)
        disorder()
        schedule.tell("the clock is set back by \(seconds) s")
        try upkeep()
    }

    private func upkeep() throws {
        try Outbox.correct(at: clock.now, in: db)
        if let age { _ = try Outbox.prune(age, at: clock.now, in: db) }
    }

    /// Nil while the clock is ahead.
    private var age: AgeTime? { ahead > 0 ? nil : AgeTime(clock.now) }

    /// A user's stream begins or ends. The senders look at streams when they find due messages.
    private mutating func enterOrLeave(_ user: ID<User>) {
        guard present.remove(user) == nil else { return schedule.tell("\(user) leaves") }
        present.insert(user)
        disorder()
        schedule.tell("\(user) has a stream")
    }

    private mutating func disorder() {
        for index in receivers.indices { receivers[index].disorder() }
    }

    // MARK: The receivers

    /// The app gets a new address, is removed, or is installed.
    private mutating func change(_ index: Int) throws {
        guard receivers[index].kind != .server else { return }
        if receivers[index].token == nil { return try install(index) }
        guard schedule.number(3) > 0 else {
            receivers[index].uninstall()
            return schedule.tell("\(receivers[index].name) is without the app")
        }
        try receivers[index].renew(register(index))
        schedule.tell("\(receivers[index].name) has the address \(tokens)")
    }

    private mutating func install(_ index: Int) throws {
        let total = total(of: receivers[index].user)
        guard receivers[index].kind != .server else { return receivers[index].install(0, total: total) }
        try receivers[index].install(register(index), total: total)
        schedule.tell("\(receivers[index].name) has the app, at the address \(tokens)")
    }

    private mutating func register(_ index: Int) throws -> Int {
        tokens += 1
        let (device, push, token) = (receivers[index], push, tokens)
        let user = device.user
        let scope = Scope(tenant: "default", keys: [AudienceKey.make("user", user.text), "everyone"])
        var fields = try Fields(Array(Self.registration(token, isBrowser: device.kind == .browser).utf8))
        let draft = try DeviceDraft(reading: &fields, push)
        try fields.finish()
        return try write(as: Caller(tenant: "default", userId: user, role: "user", isService: false, scope: scope)) {
            _ = try PushFeature.register(ID(device.kind.rawValue), draft, settings: push, $0)
            return token
        }
    }

    private static func registration(_ token: Int, isBrowser: Bool) -> String {
        isBrowser
            ? """
            {"platform":"webpush","subscription":{"endpoint":"https://127.0.0.1/\(token)",
                "keys":{"p256dh":"\(PushProbe.key)","auth":"\(PushProbe.auth)"}}}
            """ : #"{"platform":"apns","token":"\#(hexadecimal(token))"}"#
    }

    /// Two digits for each byte.
    private static func hexadecimal(_ token: Int) -> String {
        let digits = "\(token)"
        return digits.count.isMultiple(of: 2) ? digits : "0\(digits)"
    }

    // MARK: The senders

    /// The channels with the content of alerts of this moment. A row proves that its subject is unseen, so nothing looks
    /// whether it is.
    private var channels: [any Channel] {
        let (versions, now) = (subjects.mapValues(\.version), clock.now)
        let message: @Sendable (ID<Conversation>, Owner, DatabaseConnection) throws -> UnreadConversation? = {
            id, owner, _ in
            let version = versions[PushFeature.tag(.message, id.text)] ?? 0
            let newest = Message(
                id: "m", conversationId: id, sequence: version, senderId: "cleo", text: "\(version)", sentAt: now)
            return UnreadConversation(userId: owner.userId, title: nil, count: 1, newest: newest)
        }
        let sources = PushSources(
            notification: { id, _, _ in
                PushText(
                    generic: ("", ""), full: ("Notification", "\(versions[id.text] ?? 0)"), priority: .high,
                    data: Array("{}".utf8))
            },
            message: message, preferences: { _, _ in Preferences() })
        let shares = reader.limiter.shares
        let webhooks = WebhookSources(message: message, preferences: { _, _ in Preferences() })
        return [
            WebhookChannel(webhook, webhooks, shares, clock: clock.clock) { "e" }
        ] + push.providers.map { PushChannel($0, push, sources, shares, clock: clock.clock) }
    }

    private mutating func choose(_ sender: Int) throws {
        let running = Set(senders[sender].attempts.map(\.parcel.attempt.laneId))
        senders[sender].due = [:]
        for route in try Outbox.routes(in: db) {
            let name = String(route.prefix { $0 != " " })
            let due = try Outbox.due(route, at: clock.now, except: running, nil, limit: 4, in: db)
            let early = due.filter { $0.isEarly && $0.owner.map { present.contains($0.userId) } == true }
            if !early.isEmpty { try Outbox.postpone(early.map(\.id), at: clock.now, in: db) }
            senders[sender].due[name, default: []] += due.filter { lane in !early.contains { $0.id == lane.id } }
        }
        let found = senders[sender].due.values.flatMap { $0.map(\.id) }
        guard !found.isEmpty else { return }
        schedule.tell("sender \(sender) finds the lanes \(found.sorted())")
    }

    private mutating func begin(_ sender: Int) throws {
        if senders[sender].due.values.allSatisfy(\.isEmpty) { try choose(sender) }
        let (now, begunAt, due) = (clock.now, clock.clock.uptime(), senders[sender].due)
        senders[sender].due = [:]
        var begun: [String] = []
        for channel in channels {
            guard let due = due[channel.name], !due.isEmpty else { continue }
            leases += 1
            for delivery in try Outbox.begin(due, by: channel, lease: leases, at: now, in: db) {
                guard let parcel = Parcel(delivery) else { throw Unreadable() }
                judge(parcel, begunAt: begunAt)
                senders[sender].attempts.append(Attempt(delivery: delivery, parcel: parcel, begunAt: begunAt))
                begun.append(parcel.name)
            }
        }
        if !begun.isEmpty { schedule.tell("sender \(sender) begins \(begun)") }
    }

    private struct Unreadable: Error {}

    private func receiver(_ parcel: Parcel) -> Int {
        receivers.firstIndex { $0.user == parcel.user && $0.kind == parcel.kind } ?? 0
    }

    /// Judges an attempt that has just begun.
    private mutating func judge(_ parcel: Parcel, begunAt: Duration) {
        let (message, receiver) = (parcel.message, receivers[receiver(parcel)])
        if parcel.isAlert, subjects[message.tag]?.unread == 0 {
            found = found ?? "\(parcel.name) begins although it was seen"
        }
        if message.badge != total(of: receiver.user) {
            found = found ?? "\(parcel.name) has the number \(message.badge) in place of \(total(of: receiver.user))"
        }
        if let token = receiver.token, token != parcel.token {
            found = found ?? "\(parcel.name) is sent to a former address"
        }
        for other in senders.flatMap(\.attempts) where self.receiver(other.parcel) == self.receiver(parcel) {
            if other.outcome == nil, begunAt < other.endsAt {
                found = found ?? "\(parcel.name) begins while \(other.parcel.name) is on its way"
            }
            // The answer is not stored yet.
            if other.hasArrived, other.parcel.message.tag == message.tag {
                receivers[self.receiver(parcel)].excuse(other.parcel)
            }
        }
    }

    /// - Parameter outcome: 0 to 2: accepted; 3: the receiver is busy; 4: the answer is lost; 5: not accepted; above: the
    ///   sender stands still
    private mutating func send(_ sender: Int, at index: Int, outcome: Int) {
        guard index < senders[sender].attempts.count, outcome < 6 else { return }
        let attempt = senders[sender].attempts[index]
        guard attempt.outcome == nil else { return }
        let answer = clock.clock.uptime() < attempt.endsAt ? answer(to: attempt.parcel, outcome) : .interrupted
        senders[sender].attempts[index].outcome = answer
        senders[sender].attempts[index].hasArrived = answer == .accepted || answer == Self.lost
        schedule.tell("sender \(sender) sends \(attempt.parcel.name): \(answer)")
    }

    private static let lost = OutboxOutcome.failed(reason: "lost", retryAfterSeconds: nil)

    private mutating func answer(to parcel: Parcel, _ outcome: Int) -> OutboxOutcome {
        let (index, message) = (receiver(parcel), parcel.message)
        guard receivers[index].token == parcel.token else {
            // The push service's clock is not set. Its time may be that of a registration which came later.
            return .gone(reason: "gone", since: wasSet ? nil : clock.now)
        }
        switch outcome {
        case 3: return .failed(reason: "busy", retryAfterSeconds: nil)
        case 5 where parcel.kind == .server: return .rejected(reason: "status_422", retryAfterSeconds: nil)
        case 5:
            receivers[index].miss(message, isNewest: parcel.version == subjects[message.tag]?.version)
            return .refused(reason: "invalid")
        default:
            if outcome == 4 { receivers[index].excuse(parcel) }
            let fault = receivers[index].receive(message) { [subjects] in subjects[$0]?.unread ?? 0 }
            found = found ?? fault
            return outcome == 4 ? Self.lost : .accepted
        }
    }

    private mutating func record(_ sender: Int) throws {
        let now = clock.now
        let ended = senders[sender].attempts.filter { $0.outcome != nil }
        guard !ended.isEmpty else { return }
        for channel in channels {
            let own = ended.filter { channel.isOn($0.parcel.attempt.lane.route) }
            let results = own.compactMap { attempt in
                attempt.outcome.map {
                    (attempt.delivery, Outbox.result(of: $0, attempt.parcel.attempt, at: age, chance: 0.5))
                }
            }
            try Outbox.record(results, of: channel, at: now, in: db)
        }
        senders[sender].attempts.removeAll { $0.outcome != nil }
        schedule.tell("sender \(sender) stores the outcomes of \(ended.map(\.parcel.name))")
    }

    /// A sender that is stopped stores the outcomes of its attempts. One that is killed does not.
    private mutating func stop(_ sender: Int, isKilled: Bool) throws {
        guard !senders[sender].attempts.isEmpty else { return }
        schedule.tell("sender \(sender) is \(isKilled ? "killed" : "stopped")")
        if isKilled {
            for attempt in senders[sender].attempts where attempt.hasArrived {
                receivers[receiver(attempt.parcel)].excuse(attempt.parcel)
            }
        } else {
            for index in senders[sender].attempts.indices where senders[sender].attempts[index].outcome == nil {
                senders[sender].attempts[index].outcome = .interrupted
            }
            try record(sender)
        }
        senders[sender] = Sender()
    }
}
