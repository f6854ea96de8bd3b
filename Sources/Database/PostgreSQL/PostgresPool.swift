import Threads

/// Whether the server could be reached when it was last tried: while it is away, requests are refused at once instead of
/// each waiting for its own attempt.
final class PostgresHealth: Sendable {
    /// How long a failed attempt speaks for others. Much longer, and the service would be away longer than the server.
    private static let pauseMilliseconds: Int64 = 250

    private let failure = Locked<(error: DatabaseError, until: ContinuousClock.Instant)?>(nil)

    /// Makes a connection, unless an attempt has just failed.
    func connect<Made>(_ make: () throws(DatabaseError) -> Made) throws(DatabaseError) -> Made {
        let known = failure.withLock { $0 }
        if let known, ContinuousClock.now < known.until { throw known.error }
        do {
            let made = try make()
            failure.withLock { $0 = nil }
            return made
        } catch {
            // Jittered, so that replicas do not come back in step.
            let pause = Duration.milliseconds(Self.pauseMilliseconds + .random(in: 0...Self.pauseMilliseconds))
            failure.withLock { $0 = (error, ContinuousClock.now + pause) }
            throw error
        }
    }
}

/// The connections that read: one owner at a time each, no more than the server should have. A connection that is out
/// belongs to the thread that took it.
final class PostgresPool: Sendable {
    /// How long a reader waits for a connection. Behind that the client is better served by a 503.
    private static let patience: Duration = .seconds(2)

    private struct State {
        var idle: [PostgresConnection] = []
        var count = 0
        var isClosed = false
    }

    private let connect: @Sendable () throws(DatabaseError) -> PostgresConnection
    private let countMax: Int
    /// Signalled when a connection comes back.
    private let state = Monitor(State())

    init(countMax: Int, connect: @escaping @Sendable () throws(DatabaseError) -> PostgresConnection) {
        self.countMax = countMax
        self.connect = connect
    }

    /// - Returns: a connection, and whether it was open before: then the server may have closed it meanwhile.
    func take() throws(DatabaseError) -> (PostgresConnection, wasIdle: Bool) {
        while let known = try wait() {
            if known.link.looksAlive() { return (known, true) }
            drop()
        }
        do {
            return (try connect(), false)
        } catch {
            drop()
            throw error
        }
    }

    private enum Turn {
        case idle(PostgresConnection)
        /// The right to make a connection.
        case new
    }

    /// An idle connection, or nil for the right to make one.
    private func wait() throws(DatabaseError) -> PostgresConnection? {
        let turn = try state.wait(atMost: Self.patience) { state throws(DatabaseError) -> Turn? in
            if state.isClosed { throw DatabaseError(.unavailable, "the store is closed") }
            if let known = state.idle.popLast() { return .idle(known) }
            guard state.count < countMax else { return nil }
            state.count += 1
            return .new
        }
        switch turn {
        case .idle(let known): return known
        case .new: return nil
        case nil: throw DatabaseError(.unavailable, "all connections to the database are in use", cause: .busy)
        }
    }

    func give(_ connection: PostgresConnection) {
        guard connection.isUsable else { return drop() }
        state.withLock { state in
            if state.isClosed { state.count -= 1 } else { state.idle.append(connection) }
        }
        state.signal()
    }

    /// A connection that was taken is no more.
    private func drop() {
        state.withLock { $0.count -= 1 }
        state.signal()
    }

    /// Closes what is idle: after a failover, connections to the server before would be found dead one by one.
    func clear() {
        let dropped = state.withLock { state in
            defer { state.idle = [] }
            state.count -= state.idle.count
            return state.idle
        }
        // Closed here, where nobody waits for the lock.
        _ = dropped
    }

    func close() {
        state.withLock { $0.isClosed = true }
        clear()
    }
}
