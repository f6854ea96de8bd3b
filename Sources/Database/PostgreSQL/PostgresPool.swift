import Foundation

/// Whether the server could be reached when it was last tried: while it is away, requests are refused at once instead of
/// each waiting for its own attempt.
///
/// `@unchecked Sendable`: `failure` is only touched while `lock` is held.
final class PostgresHealth: @unchecked Sendable {
    /// How long a failed attempt speaks for others. Much longer, and the service would be away longer than the server.
    private static let pauseMilliseconds: Int64 = 250

    /// Guards `failure`.
    private let lock = NSLock()
    private var failure: (error: DatabaseError, until: ContinuousClock.Instant)?

    /// Makes a connection, unless an attempt has just failed.
    func connect<Made>(_ make: () throws(DatabaseError) -> Made) throws(DatabaseError) -> Made {
        let known = lock.withLock { failure }
        if let known, ContinuousClock.now < known.until { throw known.error }
        do {
            let made = try make()
            lock.withLock { failure = nil }
            return made
        } catch {
            // Jittered, so that replicas do not come back in step.
            let pause = Duration.milliseconds(Self.pauseMilliseconds + .random(in: 0...Self.pauseMilliseconds))
            lock.withLock { failure = (error, ContinuousClock.now + pause) }
            throw error
        }
    }
}

/// The connections that read: one owner at a time each, no more than the server should have.
///
/// `@unchecked Sendable`: the variables are only touched while `condition` is locked; a connection that is out belongs
/// to the thread that took it.
final class PostgresPool: @unchecked Sendable {
    /// How long a reader waits for a connection. Behind that the client is better served by a 503.
    private static let patienceSeconds = 2.0

    private let connect: @Sendable () throws(DatabaseError) -> PostgresConnection
    private let countMax: Int
    /// Guards the variables below; signalled when a connection comes back.
    private let condition = NSCondition()
    private var idle: [PostgresConnection] = []
    private var count = 0
    private var isClosed = false

    init(countMax: Int, connect: @escaping @Sendable () throws(DatabaseError) -> PostgresConnection) {
        self.countMax = countMax
        self.connect = connect
    }

    /// - Returns: a connection, and whether it was open before: then the server may have closed it meanwhile.
    func take() throws(DatabaseError) -> (PostgresConnection, wasIdle: Bool) {
        while let known = try wait() {
            if known.looksAlive() { return (known, true) }
            drop()
        }
        do {
            return (try connect(), false)
        } catch {
            drop()
            throw error
        }
    }

    /// An idle connection, or nil for the right to make one.
    private func wait() throws(DatabaseError) -> PostgresConnection? {
        let deadline = Date(timeIntervalSinceNow: Self.patienceSeconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            if isClosed { throw DatabaseError(.unavailable, "the store is closed") }
            if let known = idle.popLast() { return known }
            if count < countMax {
                count += 1
                return nil
            }
            guard condition.wait(until: deadline) else {
                throw DatabaseError(.unavailable, "all connections to the database are in use", cause: .busy)
            }
        }
    }

    func give(_ connection: PostgresConnection) {
        guard connection.isUsable else { return drop() }
        condition.withLock {
            if isClosed {
                count -= 1
            } else {
                idle.append(connection)
                condition.signal()
            }
        }
    }

    /// A connection that was taken is no more.
    private func drop() {
        condition.withLock {
            count -= 1
            condition.signal()
        }
    }

    /// Closes what is idle: after a failover, connections to the server before would be found dead one by one.
    func clear() {
        let dropped = condition.withLock {
            defer { idle = [] }
            count -= idle.count
            return idle
        }
        _ = dropped
    }

    func close() {
        condition.withLock { isClosed = true }
        clear()
    }
}
