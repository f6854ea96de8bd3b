import Threads

/// The result of the last attempt to connect. While the server is away, requests are refused at once, instead of each
/// waiting for its own attempt.
final class PostgresHealth: Sendable {
    /// How long a failed attempt counts for others. With a much longer time, the service would be away for longer than
    /// the server.
    private static let pauseMilliseconds: Int64 = 250

    private let failure = Locked<(error: DatabaseError, until: ContinuousClock.Instant)?>(nil)

    /// Connects, unless an attempt has just failed.
    func connect<Made>(_ make: () throws(DatabaseError) -> Made) throws(DatabaseError) -> Made {
        let known = failure.withLock { $0 }
        if let known, ContinuousClock.now < known.until { throw known.error }
        do {
            let made = try make()
            failure.withLock { $0 = nil }
            return made
        } catch {
            // With jitter, so that replicas do not reconnect in step.
            let pause = Duration.milliseconds(Self.pauseMilliseconds + .random(in: 0...Self.pauseMilliseconds))
            failure.withLock { $0 = (error, ContinuousClock.now + pause) }
            throw error
        }
    }
}

/// The reading connections. Each has one owner at a time, and their number is bounded to protect the server. A
/// connection that was taken belongs to the thread that took it.
final class PostgresPool: Sendable {
    /// How long a reader waits for a connection. After that, a 503 serves the client better.
    private static let patience: Duration = .seconds(2)

    private struct State {
        var idle: [DrivenConnection<PostgresConnection>] = []
        var count = 0
        var isClosed = false
    }

    private let connect: @Sendable () throws(DatabaseError) -> DrivenConnection<PostgresConnection>
    private let countMax: Int
    private let state = Locked(State())

    init(countMax: Int, connect: @escaping @Sendable () throws(DatabaseError) -> DrivenConnection<PostgresConnection>) {
        self.countMax = countMax
        self.connect = connect
    }

    /// Takes a connection.
    ///
    /// - Returns: The connection, and whether it was idle before. The server may have closed an idle connection.
    func take() throws(DatabaseError) -> (DrivenConnection<PostgresConnection>, wasIdle: Bool) {
        while case .idle(let known) = try turn() {
            if known.driver.link.isAlive() { return (known, true) }
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
        case idle(DrivenConnection<PostgresConnection>)
        /// The right to open a connection.
        case new
    }

    /// Waits for an idle connection, or for the right to open one.
    private func turn() throws(DatabaseError) -> Turn {
        let turn = try state.wait(atMost: Self.patience) { state throws(DatabaseError) -> Turn? in
            if state.isClosed { throw DatabaseError(.unavailable, "the store is closed") }
            if let known = state.idle.popLast() { return .idle(known) }
            guard state.count < countMax else { return nil }
            state.count += 1
            return .new
        }
        guard let turn else {
            throw DatabaseError(.unavailable, "all connections to the database are in use", cause: .busy)
        }
        return turn
    }

    func give(_ connection: DrivenConnection<PostgresConnection>) {
        guard connection.driver.isUsable else { return drop() }
        state.withLock { state in
            if state.isClosed { state.count -= 1 } else { state.idle.append(connection) }
        }
        state.signal()
    }

    /// Records that a taken connection was closed.
    private func drop() {
        state.withLock { $0.count -= 1 }
        state.signal()
    }

    /// Closes the idle connections. After a failover, connections to the previous server would otherwise be found dead
    /// one by one.
    func clear() {
        let dropped = state.withLock { state in
            defer { state.idle = [] }
            state.count -= state.idle.count
            return state.idle
        }
        // Closed here, outside the lock.
        _ = dropped
    }

    func close() {
        state.withLock { $0.isClosed = true }
        clear()
    }
}
