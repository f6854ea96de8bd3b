import Database
import Synchronization
import Threads

/// The notifications by which replicas ask one another who has a stream. The sender's thread asks and answers.
final class PresenceExchange: Sendable {
    /// The name of this process among the replicas.
    private let replica = String(UInt64.random(in: .min ... .max), radix: 36)
    private let store: DatabaseStore
    /// Whether a user has a stream here.
    private let isPresent: @Sendable (Owner) -> Bool
    private let inbox = Locked(PresenceInbox())
    /// Whether notifications arrive. A question would have no answer otherwise.
    private let isListening = Atomic<Bool>(false)
    private let stopListening = Locked<(@Sendable () -> Void)?>(nil)

    init(_ store: DatabaseStore, isPresent: @escaping @Sendable (Owner) -> Bool) {
        (self.store, self.isPresent) = (store, isPresent)
    }

    /// Listens, and wakes the sender for each notification. On SQLite there is one process, and nothing to ask.
    func start(waking thread: LoopThread) {
        let stop = store.listen(to: "\(PresenceNotice.channel)") { [self] signal in
            switch signal {
            case .began: isListening.store(true, ordering: .releasing)
            case .ended: isListening.store(false, ordering: .releasing)
            case .notified(let payload):
                if let notice = PresenceNotice(payload: payload) { inbox.withLock { $0.add(notice) } }
            }
            thread.wake()
        }
        stopListening.withLock { $0 = stop }
    }

    func stop() {
        stopListening.withLock { stop in
            stop?()
            stop = nil
        }
    }

    /// Takes the answers, and answers the others' questions.
    func answer(_ questions: inout PresenceQuestions) throws {
        let notices = inbox.withLock { $0.take() }
        var answers: [PresenceNotice] = []
        for notice in notices {
            switch notice {
            case .answer(let id, let other, let present): questions.answer(id, by: other, present: present)
            case .question(let id, let other, let owners):
                let present = owners.indices.filter { isPresent(owners[$0]) }
                if other == replica {
                    questions.answer(id, by: replica, present: present)
                } else {
                    answers.append(.answer(id: id, from: replica, present: present))
                }
            }
        }
        guard !answers.isEmpty else { return }
        try store.writeAndWait { [answers] db in
            for answer in answers { try db.notify(PresenceNotice.channel, answer.payload) }
        }
    }

    /// Asks all replicas, this one included, about the users of lanes. Counts who must answer.
    func ask(about lanes: [Outbox.Due], _ questions: inout PresenceQuestions, at uptime: Duration) throws {
        guard isListening.load(ordering: .acquiring) else { return }
        questions.forget(before: uptime)
        let parts = PresenceNotice.parts(of: questions.unasked(lanes)).map {
            (id: String(UInt64.random(in: .min ... .max), radix: 36), lanes: $0)
        }
        guard !parts.isEmpty else {
            guard questions.isCountDue(at: uptime) else { return }
            let count = try store.read(isSingle: true) { try $0.listenerCount(PresenceNotice.channel) }
            return questions.count(count, at: uptime)
        }
        let notices = parts.map { PresenceNotice.question(id: $0.id, from: replica, $0.lanes.compactMap(\.owner)) }
        let count = try store.writeAndWait { db in
            for notice in notices { try db.notify(PresenceNotice.channel, notice.payload) }
            return try db.listenerCount(PresenceNotice.channel)
        }
        questions.count(count, at: uptime)
        for part in parts { questions.ask(part.id, about: part.lanes, at: uptime) }
    }
}

/// The notices that wait for the sender's thread.
struct PresenceInbox {
    private var notices: [PresenceNotice] = []

    /// Adds a notice. If the inbox is full, the ones before it are forgotten: they are too old to be of use.
    mutating func add(_ notice: PresenceNotice) {
        if notices.count >= OutboxLimits.presenceNoticesMax { notices = [] }
        notices.append(notice)
    }

    mutating func take() -> [PresenceNotice] {
        defer { notices = [] }
        return notices
    }
}
