import Database
import Realtime
import Values

extension EventLog {
    /// Returns the epoch of this log, created once. It identifies cursors of another log (of a database that was
    /// created again).
    ///
    /// A restored database of a server has another origin, and its log gets another epoch. It continues from a moment
    /// after which clients know different events.
    static func epoch(at now: Timestamp, in db: DatabaseConnection) throws -> String {
        let origin = try db.origin()
        let known = try db.row("SELECT epoch, origin FROM \(epochs)") {
            (epoch: try $0.text(0), origin: try $0.optionalText(1))
        }
        if let known, known.origin == origin || origin == nil { return known.epoch }
        // An epoch of a version that stored no origin belongs to the current origin.
        let epoch = known.flatMap { $0.origin == nil ? $0.epoch : nil } ?? randomEpoch()
        try db.run("DELETE FROM \(epochs)")
        try db.run(
            """
            INSERT INTO \(epochs) (epoch, created_at, origin)
            VALUES (\(epoch), \(now.microseconds), \(origin))
            """)
        return epoch
    }

    /// Makes the next start give the log a new epoch. A copy of the database will assign numbers that the original
    /// assigns to other events.
    static func forgetEpoch(in db: DatabaseConnection) throws {
        try db.run("DELETE FROM \(epochs)")
    }

    private static func randomEpoch() -> String {
        let letters = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<6).map { _ in letters[Int.random(in: letters.indices)] })
    }

    /// Returns the current state of the log, for replicas beside which others write.
    ///
    /// - Parameters:
    ///   - sequence: The event whose content is read.
    ///   - comparesOrigin: Whether to query the server and its timeline too.
    static func state(
        lookingAt sequence: Int64, comparesOrigin: Bool = false, in db: DatabaseConnection
    ) throws -> LogState<LoggedEvent> {
        // First: if a server takes over in between, the connection ends, which reveals it.
        let origin = comparesOrigin ? try db.origin() : nil
        var found: [StreamEvent] = []
        // The record of an event has the number of its last event.
        let states = try db.rows(
            """
            SELECT \(content), counter.newest, epochs.epoch, epochs.origin
            FROM \(counter) AS counter
            CROSS JOIN \(epochs) AS epochs
            LEFT JOIN \(allEvents) ON events.sequence >= \(sequence)
                AND events.sequence < \(sequence + Int64(Limits.recordSpanMax))
            """
        ) { row in
            if !row.isNull(0) { try append(row, in: .only(sequence), to: &found) }
            return (
                newest: Int64(try row.integer(contentCount)), epoch: try row.text(contentCount + 1),
                origin: try row.optionalText(contentCount + 2)
            )
        }
        guard let state = states.first else { throw DatabaseError(.corrupt, "the event log has no counter or no name") }
        return LogState(
            newest: state.newest, epoch: state.epoch, content: found.first.map { LoggedEvent(event: $0) },
            isMoved: origin != nil && state.origin != nil && origin != state.origin)
    }

    /// Gives the log a new epoch if it still has the old one: after a failover to a server that had not received the
    /// last commits. The numbers of the lost events were published, and will be assigned again.
    ///
    /// - Returns: False if another replica has already renewed the epoch.
    @discardableResult
    static func renewEpoch(_ old: String, at now: Timestamp, in db: DatabaseConnection) throws -> Bool {
        try db.run(
            """
            UPDATE \(epochs)
            SET epoch = \(randomEpoch()), created_at = \(now.microseconds), origin = \(try db.origin())
            WHERE epoch = \(old)
            """) > 0
    }

    /// The age and the number of retained events.
    struct Retention: Sendable {
        let seconds: Int64
        let countMax: Int

        /// Whether an event is past its age. Nothing is, while the time is in doubt.
        func isOver(for createdAt: Int64, _ age: AgeTime?) -> Bool {
            age.map { createdAt < $0.end(ofSeconds: seconds).microseconds } ?? false
        }
    }

    static func pruningDue(_ age: AgeTime?, _ retention: Retention) -> SQL {
        var isOver: SQL = "FALSE"
        if let age {
            isOver = """
                oldest.created_at < \(age.end(ofSeconds: retention.seconds)) OR oldest.created_at > \(latest(age))
                """
        }
        return """
            SELECT 1 FROM (SELECT sequence, created_at FROM \(allEvents) ORDER BY sequence LIMIT 1) AS oldest
            WHERE \(isOver)
                OR oldest.sequence <= (SELECT newest FROM \(counter) WHERE id = 1) - \(retention.countMax)
            """
    }

    /// An event with a later time was written while the clock was ahead.
    private static func latest(_ age: AgeTime) -> Timestamp { age.now.adding(seconds: 3600) }

    /// Corrects the times of events that were written while the clock was ahead: they count as written now. Later events
    /// would have to wait for them.
    private static func setBack(_ age: AgeTime, in db: DatabaseConnection) throws {
        try db.run(
            """
            UPDATE \(allEvents) SET created_at = \(age.now)
            WHERE created_at > \(latest(age)) AND sequence IN (
                SELECT sequence FROM \(allEvents) ORDER BY sequence LIMIT \(Limits.prunedAtOnceMax))
            """)
    }

    /// Removes the oldest events that exceed the age or the number of retained events. It removes few enough that no
    /// write waits noticeably.
    ///
    /// - Returns: The number of removed events.
    static func prune(_ age: AgeTime?, _ retention: Retention, in db: DatabaseConnection) throws -> Int {
        if let age { try setBack(age, in: db) }
        let floor = try newestSequence(in: db) - Int64(retention.countMax)
        let expired = try db.rows(
            """
            SELECT sequence, tenant, topic, audience, created_at FROM \(allEvents)
            ORDER BY sequence LIMIT \(Limits.prunedAtOnceMax)
            """
        ) { row in
            (
                sequence: Int64(try row.integer(0)), tenant: try row.id(1) as ID<Tenant>,
                topic: try row.optionalText(2),
                audience: try row.text(3).split(separator: " ").map(String.init),
                createdAt: Int64(try row.integer(4))
            )
        }.prefix { $0.sequence <= floor || retention.isOver(for: $0.createdAt, age) }
        guard let last = expired.last else { return 0 }
        try db.runWithCommit(
            expired.flatMap { event in
                routes(topic: event.topic, audience: event.audience).map { route in
                    """
                    DELETE FROM \(routes, within: event.tenant, bookkeeping)
                    WHERE route = \(route) AND sequence = \(event.sequence)
                    """
                }
            })
        try db.run("DELETE FROM \(shared) WHERE sequence <= \(last.sequence)")
        return try db.run("DELETE FROM \(allEvents) WHERE sequence <= \(last.sequence)")
    }
}
