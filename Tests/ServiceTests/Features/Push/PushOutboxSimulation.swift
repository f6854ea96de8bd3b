import Database
import Domain
import Push
import TestSupport
import Values
import Visibility

@testable import Service

/// The outbox of push messages with two senders, under a seeded schedule of notifications and messages, users that see
/// them, phones and browsers that change their addresses or lose the app, attempts, answers that are lost, senders that
/// stand still or are killed, and clocks that are set back.
///
/// The statements are the real ones, on a real database. The push services, the clock and the order of steps are
/// simulated. ``PushedDevice`` is the model of a device.
///
/// Invariants: an unseen alert is shown on every device in the end. What was seen before the attempt began is not sent.
/// What was sent and then seen is withdrawn. A device has one message on its way at a time, at its present address. An
/// alert arrives again only after an answer was lost or a sender stopped. Notifications arrive in their order. Each
/// number is the user's total when the attempt began, and the last one is the total in the end.
struct PushOutboxSimulation {
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
        let delivery: PushDelivery
        let begunAt: Duration
        var outcome: PushOutcome?
        /// Whether the device has it.
        var hasArrived = false

        /// The time from which it cannot arrive any more.
        var endsAt: Duration {
            begunAt + .seconds(PushOutboxSimulation.timeoutSeconds + PushOutboxLimits.leaseSeconds)
        }
    }

    private struct Sender {
        var due: [PushFeature.Due] = []
        var attempts: [Attempt] = []
    }

    private let schedule: Schedule
    private let db: DatabaseConnection
    private let reader: TransactionReader
    private let settings: PushSettings
    private let clock: ManualClock
    /// By tag.
    private var subjects: [String: Subject] = [:]
    private var devices: [PushedDevice]
    private var senders = [Sender(), Sender()]
    /// The users with a stream.
    private var present: Set<ID<User>> = []
    private var (made, tokens) = (0, 0)
    private var wasSetBack = false
    private var found: String?

    private static let users: [ID<User>] = ["ada", "ben"]
    private static let timeoutSeconds: Int64 = 10

    private init(
        _ schedule: Schedule, _ reader: TransactionReader, _ clock: ManualClock, _ settings: PushSettings,
        _ db: DatabaseConnection
    ) {
        (self.schedule, self.reader, self.clock, self.settings, self.db) = (schedule, reader, clock, settings, db)
        let users = Self.users.prefix(1 + schedule.number(2))
        devices = users.flatMap { user in [false, true].map { PushedDevice(of: user, isBrowser: $0) } }
    }

    /// Runs a schedule. All its steps share one transaction, because a commit takes longer than all statements.
    ///
    /// - Returns: The violated invariant, or nil.
    static func run(_ schedule: Schedule, _ reader: TransactionReader, _ clock: ManualClock) -> String? {
        guard let settings = reader.settings.push else { return "push is off" }
        // The calling thread waits meanwhile.
        nonisolated(unsafe) let schedule = schedule
        do {
            return try reader.store.writeAndWait { db in
                var simulation = Self(schedule, reader, clock, settings, db)
                do { try simulation.run() } catch { return simulation.found ?? "\(error)" }
                return simulation.found
            }
        } catch {
            return "\(error)"
        }
    }

    private mutating func run() throws {
        try write { tx in
            for table in [PushFeature.outbox, PushFeature.devices, BadgeLedger.badges] {
                try tx.db.run("DELETE FROM \(table, unscoped: .audit("a test"))")
            }
        }
        for device in devices.indices { try install(device) }
        for _ in 0..<schedule.count(10...39) where found == nil {
            schedule.step()
            try act()
        }
        schedule.step()
        present = []
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
        case 9: if schedule.number(2) == 0 { try setBack() } else { try prune() }
        case 10: if schedule.number(2) == 0 { try stop(sender, isKilled: schedule.number(2) == 0) }
        case 11: try change(schedule.number(devices.count))
        case 12: try enterOrLeave(user())
        case 13, 14: try choose(sender)
        case 15, 16, 17: try begin(sender)
        case 18, 19, 20, 21: send(sender, at: schedule.number(3), outcome: schedule.number(8))
        case 22, 23: try record(sender)
        default: try work(sender, outcomes: 8)
        }
    }

    private var users: [ID<User>] { Array(Self.users.prefix(devices.count / 2)) }

    private func user() -> ID<User> { Self.users[schedule.number(devices.count / 2)] }

    /// A sender sends what is due, and stores the outcomes.
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
            try prune()
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
            SELECT count(*) FROM \(PushFeature.sent)
            WHERE state = 0 AND NOT (type = 'withdrawal' AND device_id = 'browser')
            """) == 0
    }

    private mutating func judge(isLast: Bool) {
        for device in devices where found == nil {
            found = device.fault(total: total(of: device.user), isLast: isLast) { [subjects] tag in
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
        for index in devices.indices where devices[index].user == subject.user {
            devices[index].owe(tag, inOrder: subject.type == .notification)
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

    /// The upkeep follows soon. Until then the times of the rows are wrong.
    private mutating func setBack() throws {
        let seconds = [30, 3_000, 3 * 86_400][schedule.number(3)]
        clock.set(clock.now.adding(seconds: Int64(-seconds)))
        wasSetBack = true
        disorder()
        schedule.tell("the clock is set back by \(seconds) s")
        try prune()
    }

    private func prune() throws {
        _ = try PushFeature.prune(at: clock.now, AgeTime(clock.now), in: db)
    }

    /// A user's stream begins or ends. The senders look at streams before they look at messages.
    private mutating func enterOrLeave(_ user: ID<User>) throws {
        guard present.remove(user) == nil else { return schedule.tell("\(user) leaves") }
        present.insert(user)
        let (now, patience) = (clock.now, settings.afterSeconds)
        for owner in try PushFeature.ownersOfEarly(at: now, patience: patience, in: db) where owner.userId == user {
            try PushFeature.postpone(of: owner, patience: patience, in: db)
        }
        disorder()
        schedule.tell("\(user) has a stream")
    }

    private mutating func disorder() {
        for index in devices.indices { devices[index].disorder() }
    }

    // MARK: The devices

    /// The app gets a new address, is removed, or is installed.
    private mutating func change(_ index: Int) throws {
        if devices[index].token == nil { return try install(index) }
        guard schedule.number(3) > 0 else {
            devices[index].uninstall()
            return schedule.tell("\(devices[index].name) is without the app")
        }
        try devices[index].renew(register(index))
        schedule.tell("\(devices[index].name) has the address \(tokens)")
    }

    private mutating func install(_ index: Int) throws {
        try devices[index].install(register(index), total: total(of: devices[index].user))
        schedule.tell("\(devices[index].name) has the app, at the address \(tokens)")
    }

    private mutating func register(_ index: Int) throws -> Int {
        tokens += 1
        let (device, settings, token) = (devices[index], settings, tokens)
        let user = device.user
        let scope = Scope(tenant: "default", keys: [AudienceKey.make("user", user.text), "everyone"])
        var fields = try Fields(Array(Self.registration(token, isBrowser: device.isBrowser).utf8))
        let draft = DeviceDraft(reading: &fields)
        try fields.finish()
        let target = try PushTarget(draft, settings)
        return try write(as: Caller(tenant: "default", userId: user, role: "user", isService: false, scope: scope)) {
            _ = try PushFeature.register(device.id, draft, at: target, settings.keys, $0)
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

    private static func token(_ target: PushTarget) -> Int? {
        switch target {
        case .apns(let token, _, _), .fcm(let token): Int(token)
        case .webPush(let subscription): subscription.endpoint.split(separator: "/").last.flatMap { Int($0) }
        }
    }

    private func device(_ delivery: PushDelivery) -> Int {
        devices.firstIndex { device in
            device.user == delivery.attempt.owner.userId && device.id == delivery.attempt.device
        } ?? 0
    }

    // MARK: The senders

    private mutating func choose(_ sender: Int) throws {
        let running = Set(senders[sender].attempts.map(\.delivery.attempt.number))
        senders[sender].due = try PushFeature.due(
            at: clock.now, patience: settings.afterSeconds, except: running, settings.keys, nil, limit: 4, in: db
        ).filter { !($0.isEarly && present.contains($0.owner.userId)) }
        guard !senders[sender].due.isEmpty else { return }
        schedule.tell("sender \(sender) finds the messages \(senders[sender].due.map(\.number))")
    }

    private mutating func begin(_ sender: Int) throws {
        if senders[sender].due.isEmpty { try choose(sender) }
        let (now, begunAt, due) = (clock.now, clock.clock.uptime(), senders[sender].due)
        senders[sender].due = []
        guard !due.isEmpty else { return }
        let until = now.adding(seconds: Self.timeoutSeconds + PushOutboxLimits.leaseSeconds)
        let begun = try PushFeature.begin(due, at: now, leasedUntil: until, settings, sources, in: db)
        for delivery in begun {
            judge(delivery, begunAt: begunAt)
            senders[sender].attempts.append(Attempt(delivery: delivery, begunAt: begunAt))
        }
        schedule.tell("sender \(sender) begins \(begun.map(told(_:)))")
    }

    /// The content of alerts. A row proves that its subject is unseen, so nothing looks whether it is.
    private var sources: PushSources {
        let versions = subjects.mapValues(\.version)
        let now = clock.now
        return PushSources(
            notification: { id, _, _ in
                PushText(
                    generic: ("", ""), full: ("Notification", "\(versions[id.text] ?? 0)"), priority: .high,
                    data: Array("{}".utf8))
            },
            message: { id, owner, _ in
                let version = versions[PushFeature.tag(.message, id.text)] ?? 0
                let newest = Message(
                    id: "m", conversationId: id, sequence: version, senderId: "cleo", text: "\(version)", sentAt: now)
                return UnreadConversation(userId: owner.userId, title: nil, count: 1, newest: newest)
            },
            preferences: { _, _ in Preferences() })
    }

    /// Judges an attempt that has just begun.
    private mutating func judge(_ delivery: PushDelivery, begunAt: Duration) {
        let (attempt, message, device) = (delivery.attempt, delivery.message, devices[device(delivery)])
        if attempt.isAlert, subjects[message.tag]?.unread == 0 {
            found = found ?? "\(told(delivery)) begins although it was seen"
        }
        if message.badge != total(of: device.user) {
            found = found ?? "\(told(delivery)) has the number \(message.badge) in place of \(total(of: device.user))"
        }
        if let token = device.token, token != Self.token(delivery.target) {
            found = found ?? "\(told(delivery)) is sent to a former address"
        }
        for other in senders.flatMap(\.attempts) where self.device(other.delivery) == self.device(delivery) {
            if other.outcome == nil, begunAt < other.endsAt {
                found = found ?? "\(told(delivery)) begins while \(told(other.delivery)) is on its way"
            }
            // The answer is not stored yet.
            if other.hasArrived, other.delivery.message.tag == message.tag {
                devices[self.device(delivery)].excuse(other.delivery)
            }
        }
    }

    private func told(_ delivery: PushDelivery) -> String {
        let attempt = delivery.attempt
        return "\(attempt.type.rawValue) \(attempt.subject) to the \(attempt.device) of \(attempt.owner.userId)"
    }

    /// - Parameter outcome: 0 to 2: accepted; 3: the service is busy; 4: the answer is lost; 5: never accepted;
    ///   above: the sender stands still
    private mutating func send(_ sender: Int, at index: Int, outcome: Int) {
        guard index < senders[sender].attempts.count, outcome < 6 else { return }
        let attempt = senders[sender].attempts[index]
        guard attempt.outcome == nil else { return }
        let answer = clock.clock.uptime() < attempt.endsAt ? answer(to: attempt.delivery, outcome) : .interrupted
        senders[sender].attempts[index].outcome = answer
        senders[sender].attempts[index].hasArrived = answer == .accepted || answer == Self.lost
        schedule.tell("sender \(sender) sends \(told(attempt.delivery)): \(answer)")
    }

    private static let lost = PushOutcome.failed(reason: "lost", retryAfterSeconds: nil)

    private mutating func answer(to delivery: PushDelivery, _ outcome: Int) -> PushOutcome {
        let (index, message) = (device(delivery), delivery.message)
        guard devices[index].token == Self.token(delivery.target) else {
            // The push service's clock is not set back. Its time may be that of a registration which came later.
            return .gone(reason: "gone", since: wasSetBack ? nil : clock.now)
        }
        switch outcome {
        case 3: return .failed(reason: "busy", retryAfterSeconds: nil)
        case 5:
            let version = if case .alert(_, let body, _) = message.content { Int(body) } else { Int?.none }
            devices[index].miss(message, isNewest: version == subjects[message.tag]?.version)
            return .refused(reason: "invalid")
        default:
            if outcome == 4 { devices[index].excuse(delivery) }
            let fault = devices[index].receive(message) { [subjects] in subjects[$0]?.unread ?? 0 }
            found = found ?? fault
            return outcome == 4 ? Self.lost : .accepted
        }
    }

    private mutating func record(_ sender: Int) throws {
        let now = clock.now
        let ended = senders[sender].attempts.filter { $0.outcome != nil }
        guard !ended.isEmpty else { return }
        let results = ended.compactMap { attempt in
            attempt.outcome.map {
                (attempt.delivery, PushFeature.result(of: $0, attempt.delivery, at: now, chance: 0.5))
            }
        }
        try PushFeature.record(results, at: now, in: db)
        senders[sender].attempts.removeAll { $0.outcome != nil }
        schedule.tell("sender \(sender) stores the outcomes of \(ended.map { told($0.delivery) })")
    }

    /// A sender that is stopped stores the outcomes of its attempts. One that is killed does not.
    private mutating func stop(_ sender: Int, isKilled: Bool) throws {
        guard !senders[sender].attempts.isEmpty else { return }
        schedule.tell("sender \(sender) is \(isKilled ? "killed" : "stopped")")
        if isKilled {
            for attempt in senders[sender].attempts where attempt.hasArrived {
                devices[device(attempt.delivery)].excuse(attempt.delivery)
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
