import Database
import Realtime
import Values

extension EventLog {
    /// The name of this log, made once: cursors of another log (a database made anew) are recognized by it.
    ///
    /// A server's database that was restored has another origin, and its log gets another name: it counts on from a moment
    /// after which clients know other events.
    static func epoch(at now: Timestamp, in db: Connection) throws -> String {
        let origin = try db.origin()
        let known = try db.row("SELECT epoch, origin FROM \(epochs, unscoped: keeping)") {
            (epoch: try $0.text(0), origin: try $0.optionalText(1))
        }
        if let known, known.origin == origin || origin == nil { return known.epoch }
        // One of a version that did not note it is where it was made.
        let epoch = known.flatMap { $0.origin == nil ? $0.epoch : nil } ?? randomEpoch()
        try db.run("DELETE FROM \(epochs, unscoped: keeping)")
        try db.run(
            """
            INSERT INTO \(epochs, unscoped: keeping) (epoch, created_at, origin)
            VALUES (\(epoch), \(now.microseconds), \(origin))
            """)
        return epoch
    }

    /// Has the next start give the log another name: in a copy of the database, numbers will be given that the original
    /// gives to other events.
    static func forgetEpoch(in db: Connection) throws {
        try db.run("DELETE FROM \(epochs, unscoped: keeping)")
    }

    private static func randomEpoch() -> String {
        let letters = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<6).map { _ in letters[Int.random(in: letters.indices)] })
    }

    /// The log as it is now, for replicas that others write beside.
    ///
    /// - Parameters:
    ///   - sequence: the event whose content is read.
    ///   - comparesOrigin: whether to ask for the server and its timeline, too.
    static func state(
        lookingAt sequence: Int64, comparesOrigin: Bool = false, in db: Connection
    ) throws -> LogState<LoggedEvent> {
        // First: a server that takes over in between is noticed by the connection, which ends.
        let origin = comparesOrigin ? try db.origin() : nil
        var found: [StreamEvent] = []
        // An event's record has the number of its last one.
        let states = try db.rows(
            """
            SELECT \(content), counter.newest, epochs.epoch, epochs.origin
            FROM \(counter, unscoped: keeping) AS counter
            CROSS JOIN \(epochs, unscoped: keeping) AS epochs
            LEFT JOIN \(events, unscoped: keeping) ON events.sequence >= \(sequence)
                AND events.sequence < \(sequence + Int64(Limits.recordSpanMax))
            """
        ) { row in
            if !row.isNull(0) { try append(row, after: sequence - 1, through: sequence, to: &found) }
            return (
                newest: Int64(try row.integer(contentCount)), epoch: try row.text(contentCount + 1),
                origin: try row.optionalText(contentCount + 2)
            )
        }
        guard let state = states.first else { throw DatabaseError(.corrupt, "the log has no counter, or no name") }
        return LogState(
            newest: state.newest, epoch: state.epoch, content: found.first.map { LoggedEvent(event: $0) },
            isMoved: origin != nil && state.origin != nil && origin != state.origin)
    }

    /// Gives the log another name, if it still has the old one: after a failover to a server that had not got the last
    /// commits. The numbers of the events that it lost were published, and will be given again.
    ///
    /// - Returns: false where another replica has renamed it.
    @discardableResult
    static func renewEpoch(_ old: String, at now: Timestamp, in db: Connection) throws -> Bool {
        try db.run(
            """
            UPDATE \(epochs, unscoped: keeping)
            SET epoch = \(randomEpoch()), created_at = \(now.microseconds), origin = \(try db.origin())
            WHERE epoch = \(old)
            """) > 0
    }

    /// How long and how many events are retained.
    struct Retention: Sendable {
        let seconds: Int64
        let countMax: Int

        /// Also what is further in the future than anything is retained: the clock was ahead then, and what follows would
        /// have to wait behind it.
        func isOver(for createdAt: Int64, at now: Timestamp) -> Bool {
            createdAt < now.adding(seconds: -seconds).microseconds
                || createdAt > now.adding(seconds: seconds).microseconds
        }
    }

    static func pruningDue(at now: Timestamp, _ retention: Retention) -> SQL {
        """
        SELECT 1 FROM (SELECT sequence, created_at FROM \(events, unscoped: keeping) ORDER BY sequence LIMIT 1) AS oldest
        WHERE oldest.created_at < \(now.adding(seconds: -retention.seconds))
            OR oldest.created_at > \(now.adding(seconds: retention.seconds))
            OR oldest.sequence <= (SELECT newest FROM \(counter, unscoped: keeping) WHERE id = 1) - \(retention.countMax)
        """
    }

    /// Removes the oldest events, past their age or above the number retained; at most so many that nobody waits for it.
    ///
    /// - Returns: how many were removed.
    static func prune(at now: Timestamp, _ retention: Retention, in db: Connection) throws -> Int {
        let floor = try newestSequence(in: db) - Int64(retention.countMax)
        let doomed = try db.rows(
            """
            SELECT sequence, tenant, topic, audience, created_at FROM \(events, unscoped: keeping)
            ORDER BY sequence LIMIT \(Limits.prunedAtOnceMax)
            """
        ) { row in
            (
                sequence: Int64(try row.integer(0)), tenant: try row.id(1) as ID<Tenant>,
                topic: try row.optionalText(2),
                audience: try row.text(3).split(separator: " ").map(String.init),
                createdAt: Int64(try row.integer(4))
            )
        }.prefix { $0.sequence <= floor || retention.isOver(for: $0.createdAt, at: now) }
        guard let last = doomed.last else { return 0 }
        try db.runWithCommit(
            doomed.flatMap { event in
                routes(topic: event.topic, audience: event.audience).map { route in
                    """
                    DELETE FROM \(routes, unscoped: keeping)
                    WHERE tenant = \(event.tenant) AND route = \(route) AND sequence = \(event.sequence)
                    """
                }
            })
        try db.run("DELETE FROM \(shared, unscoped: keeping) WHERE sequence <= \(last.sequence)")
        return try db.run("DELETE FROM \(events, unscoped: keeping) WHERE sequence <= \(last.sequence)")
    }
}
