import Synchronization
import Threads

/// The connection that receives the notifications of committed transactions, for all listeners of this process.
final class PostgresListener: Sendable {
    private struct Receiver {
        let channel: String
        let receive: @Sendable (ChannelSignal) -> Void
    }

    private struct State {
        var receivers: [Int: Receiver] = [:]
        var added = 0
        var thread: LoopThread?
    }

    /// The interval at which the thread looks for new receivers and checks whether it must stop, in milliseconds.
    private static let pause: Int32 = 250
    /// The interval of queries for the size of the database, in seconds. Each reads the size of every file of the
    /// database.
    private static let sizePauseSeconds = 60

    private let address: String
    private let options: StoreOptions
    private let state = Locked(State())
    private let size = Atomic<Int>(0)

    init(_ address: String, options: StoreOptions) {
        self.address = address
        var options = options
        // A direct connection, even if the others go through a pooler.
        options.isPooled = false
        self.options = options
    }

    /// The last known size of the database in bytes.
    var sizeBytes: Int { size.load(ordering: .relaxed) }

    /// Adds a receiver, and returns a function that removes it. The connection begins with the first receiver, and ends
    /// with the last.
    func add(_ channel: String, _ receive: @escaping @Sendable (ChannelSignal) -> Void) -> @Sendable () -> Void {
        let number = state.withLock { state in
            state.added += 1
            state.receivers[state.added] = Receiver(channel: channel, receive: receive)
            if state.thread == nil {
                let thread = LoopThread("postgres-listener")
                thread.start { [self, thread] in run(on: thread) }
                state.thread = thread
            }
            return state.added
        }
        return { [self] in remove(number) }
    }

    private func remove(_ number: Int) {
        state.withLock { state in
            state.receivers[number] = nil
            guard state.receivers.isEmpty else { return }
            // Does not wait for the thread, which may be in the middle of an attempt to connect.
            state.thread?.requestStop()
            state.thread = nil
        }
    }

    private var receivers: [Int: Receiver] { state.withLock { $0.receivers } }

    private func run(on thread: LoopThread) {
        while !thread.isStopping {
            do {
                try listen(on: try PostgresLink(address, options: options), thread)
            } catch {
                // Makes the receivers query the server themselves, and report the answer.
                for receiver in receivers.values { receiver.receive(.ended) }
                _ = thread.pause(for: .milliseconds(.random(in: 200...500)))
            }
        }
    }

    private func listen(on link: PostgresLink, _ thread: LoopThread) throws(DatabaseError) {
        var measuredAt = ContinuousClock.now - .seconds(Self.sizePauseSeconds)
        var known: [Int: Receiver] = [:]
        while !thread.isStopping {
            try follow(&known, on: link)
            for (channel, payload) in try link.notifications(within: Self.pause) {
                for receiver in known.values where receiver.channel == channel { receiver.receive(.notified(payload)) }
            }
            if ContinuousClock.now - measuredAt >= .seconds(Self.sizePauseSeconds) {
                // A lost connection shows at the next check for notifications.
                let found = try? link.ask("SELECT pg_database_size(current_database())")
                if let text = found?.first?.first ?? nil, let bytes = Int(text) {
                    size.store(bytes, ordering: .relaxed)
                }
                measuredAt = ContinuousClock.now
            }
        }
    }

    /// Listens for new receivers, and no longer for removed ones. Other processes count the listeners of a channel by a
    /// lock (``DatabaseConnection/listenerCount(_:)``).
    private func follow(_ known: inout [Int: Receiver], on link: PostgresLink) throws(DatabaseError) {
        let present = receivers
        for (number, receiver) in known where present[number] == nil {
            known[number] = nil
            _ = try link.ask("UNLISTEN \(receiver.channel)")
            _ = try link.ask("SELECT pg_advisory_unlock_shared(\(Self.lock("$1")))", [.text(receiver.channel)])
        }
        for (number, receiver) in present where known[number] == nil {
            known[number] = receiver
            _ = try link.ask("LISTEN \(receiver.channel)")
            _ = try link.ask("SELECT pg_advisory_lock_shared(\(Self.lock("$1")))", [.text(receiver.channel)])
            receiver.receive(.began)
        }
    }

    /// Returns the expression for the lock of a channel's listeners.
    static func lock(_ channel: String) -> String { "hashtextextended('bellhop listens ' || \(channel), 0)" }
}

extension DatabaseConnection {
    /// Returns how many processes listen to the channel. On SQLite there is one process, which has no need to.
    public func listenerCount(_ channel: StaticString) throws -> Int {
        guard engine == .postgreSQL else { return 0 }
        let lock = SQL(unchecked: PostgresListener.lock("?"), binds: [.text("\(channel)")])
        return try integer(
            """
            SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (classid::bigint << 32) | objid::bigint = \(lock)
            """) ?? 0
    }
}
