import Database
import Domain
import Realtime
import Rows
import Values
import Visibility

/// The log of what happened, from which streams are served: rows of the same transaction as what they are about.
///
/// Each event is stored once, and what several of a transaction have in common once for all of them; and once more as a
/// narrow row for each of its *routes*: the audience's keys, or `#topic` for an event of a topic. A resuming stream reads
/// its routes only, so that its replay costs what it may see and not what happened.
enum EventLog {
    static let events = Table("events", read: [], write: [])
    static let routes = Table("event_routes", read: [], write: [])
    /// What events have in common, numbered as the last of them: it goes when that one does.
    static let shared = Table("event_shared", read: [], write: [])
    static let epochs = Table("event_epochs", read: [], write: [])
    /// One row: the number of the newest event there ever was.
    static let counter = Table("event_counter", read: [], write: [])

    /// What replicas listen on: the newest number, whenever a transaction with events is committed.
    static let channel: StaticString = "bellhop_events"

    static let migrations = [
        Migration(
            "0001_events",
            sql: [
                // AUTOINCREMENT once made the numbers, which the counter makes now.
                .sqlite(
                    """
                    CREATE TABLE events (
                        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
                        tenant TEXT NOT NULL,
                        name TEXT NOT NULL,
                        topic TEXT,
                        audience TEXT NOT NULL,
                        collapse INTEGER NOT NULL,
                        data TEXT NOT NULL,
                        created_at INTEGER NOT NULL
                    ) STRICT
                    """),
                .postgreSQL(
                    """
                    CREATE TABLE events (
                        sequence BIGINT PRIMARY KEY,
                        tenant TEXT NOT NULL,
                        name TEXT NOT NULL,
                        topic TEXT,
                        audience TEXT NOT NULL,
                        collapse BIGINT NOT NULL,
                        data TEXT NOT NULL,
                        created_at BIGINT NOT NULL
                    )
                    """),
                """
                CREATE TABLE event_routes (
                    tenant TEXT NOT NULL,
                    route TEXT NOT NULL,
                    sequence INTEGER NOT NULL,
                    PRIMARY KEY (tenant, route, sequence)
                ) STRICT, WITHOUT ROWID
                """,
                "CREATE TABLE event_epochs (epoch TEXT NOT NULL PRIMARY KEY, created_at INTEGER NOT NULL) STRICT",
            ]),
        Migration(
            "0002_event_counter",
            sql: [
                "CREATE TABLE event_counter (id INTEGER PRIMARY KEY CHECK (id = 1), newest INTEGER NOT NULL) STRICT",
                .sqlite(
                    """
                    INSERT INTO event_counter (id, newest)
                    VALUES (1, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0))
                    """),
                .postgreSQL("INSERT INTO event_counter (id, newest) VALUES (1, 0)"),
            ]),
        Migration(
            "0003_event_shared",
            sql: [
                "CREATE TABLE event_shared (sequence INTEGER PRIMARY KEY, members TEXT NOT NULL) STRICT",
                .sqlite("ALTER TABLE events ADD COLUMN shared INTEGER"),
                .postgreSQL("ALTER TABLE events ADD COLUMN shared BIGINT"),
            ]),
    ]

    private static let keeping = Unscoped.bookkeeping("the log is read by routes, which are the reader's own keys")

    // MARK: Writing

    /// Numbers the events of a group of transactions and stores them: the group's last step before its commit.
    ///
    /// The counter's row is locked from here to the commit, on every replica. So numbers have no gaps, and are committed
    /// in their order: whoever has seen a number has seen, or can read, all before it.
    static func append(_ pending: [PendingEvents], in db: Connection) throws -> [LoggedEvent] {
        let count = pending.reduce(0) { $0 + $1.drafts.count }
        let newest = try db.integer(advance.binding(count))
        guard let newest else { throw DatabaseError(.corrupt, "the events have no counter") }
        var sequence = Int64(newest - count)
        var logged: [LoggedEvent] = []
        var (eventRows, routeRows, sharedRows): ([SQLValue], [SQLValue], [SQLValue]) = ([], [], [])
        logged.reserveCapacity(count)
        eventRows.reserveCapacity(count * 9)
        routeRows.reserveCapacity(count * 6)
        for transaction in pending {
            let shared = sharedNumbers(in: transaction.drafts, after: sequence)
            for draft in transaction.drafts {
                sequence += 1
                let event = StreamEvent(draft, sequence: sequence)
                let number = draft.shared.flatMap { shared[ObjectIdentifier($0)] }
                eventRows += row(of: event, draft, shared: number, at: transaction.now)
                if let members = draft.shared?.members, number == sequence {
                    sharedRows += [.integer(sequence), .utf8(members)]
                }
                for route in routes(topic: event.topic, audience: event.audience) {
                    routeRows += [.text(event.tenant.text), .text(route), .integer(event.sequence)]
                }
                logged.append(LoggedEvent(event: event, change: draft.change))
            }
        }
        try db.runWithCommit(
            intoEvents.statements(of: eventRows) + intoShared.statements(of: sharedRows)
                + intoRoutes.statements(of: routeRows))
        try db.notify(channel, "\(newest)")
        return logged
    }

    private static let advance: SQL =
        "UPDATE \(counter, unscoped: keeping) SET newest = newest + ? WHERE id = 1 RETURNING newest"
    private static let intoEvents = Insertion(
        """
        INSERT INTO \(events, unscoped: keeping)
            (sequence, tenant, name, topic, audience, collapse, data, created_at, shared)
        """, columns: 9)
    private static let intoShared = Insertion(
        "INSERT INTO \(shared, unscoped: keeping) (sequence, members)", columns: 2)
    private static let intoRoutes = Insertion(
        "INSERT INTO \(routes, unscoped: keeping) (tenant, route, sequence)", columns: 3)

    /// The numbers of what the drafts of a transaction have in common: of each that of the last which has it.
    private static func sharedNumbers(in drafts: [EventDraft], after sequence: Int64) -> [ObjectIdentifier: Int64] {
        var numbers: [ObjectIdentifier: Int64] = [:]
        for (index, draft) in drafts.enumerated() {
            if let shared = draft.shared { numbers[ObjectIdentifier(shared)] = sequence + Int64(index) + 1 }
        }
        return numbers
    }

    /// The columns of an event, in the order in which it is inserted.
    private static func row(
        of event: StreamEvent, _ draft: EventDraft, shared: Int64?, at now: Timestamp
    ) -> [SQLValue] {
        [
            .integer(event.sequence), .text(event.tenant.text), .text(event.name),
            event.topic.map { .text($0) } ?? .null,
            .text(event.audience.joined(separator: " ")), .integer(Int64(bitPattern: event.collapse)),
            .utf8(draft.data), .integer(now.microseconds),
            shared.map { .integer($0) } ?? .null,
        ]
    }

    /// A row's change has the routes of both: of those whose queries it makes stale, and of its table, for streams that
    /// have missed changes of rows.
    private static func routes(topic: String?, audience: [String]) -> [String] {
        guard let topic else { return audience }
        return topic.hasPrefix(tablePrefix) ? ["#" + topic] + audience : ["#" + topic]
    }

    /// Marks the topic that stands for a table, which no client can name.
    private static let tablePrefix = "@"

    /// The topic of a table's changes.
    static func topic(schema: String, table: String) -> String {
        tablePrefix + AudienceKey.make(schema, table)
    }

    /// The name of events of a row's change.
    static let change: StaticString = "table:change"

    // MARK: Reading

    /// The oldest event that is retained; one more than the newest when none is.
    static func oldestSequence(in db: Connection) throws -> Int64 {
        let oldest = try db.row("SELECT min(sequence) FROM \(events, unscoped: keeping)") { try $0.optionalInteger(0) }
        if let oldest = oldest ?? nil { return Int64(oldest) }
        return try newestSequence(in: db) + 1
    }

    /// The newest event there ever was, also when it is not retained any more.
    static func newestSequence(in db: Connection) throws -> Int64 {
        Int64(try db.integer("SELECT newest FROM \(counter, unscoped: keeping) WHERE id = 1") ?? 0)
    }

    /// What a scope may see of the given routes, with `after < sequence ≤ through`, oldest first, at most `limit`;
    /// and changes of rows, of which each stream sees its part.
    static func replay(
        in db: Connection, tenant: ID<Tenant>, routes: [String], scope: Scope, after: Int64, through: Int64, limit: Int
    ) throws -> [StreamEvent] {
        var found: Set<Int> = []
        func note(_ sql: SQL) throws { found.formUnion(try db.rows(sql) { try $0.integer(0) }) }
        for route in routes.prefix(routesAloneMax) {
            try note(
                """
                SELECT sequence FROM \(Self.routes, unscoped: keeping)
                WHERE tenant = \(tenant) AND route = \(route) AND sequence > \(after) AND sequence <= \(through)
                ORDER BY sequence LIMIT \(limit)
                """)
        }
        // Who follows many would else ask a server as many times.
        let rest = Array(routes.dropFirst(routesAloneMax))
        for start in stride(from: 0, to: rest.count, by: fetchedAtOnceMax) {
            let group = Array(rest[start..<min(start + fetchedAtOnceMax, rest.count)])
            // Filled up with its last, so that the statement's text is one.
            let padding = Array(repeating: group[group.count - 1], count: fetchedAtOnceMax - group.count)
            try note(
                """
                SELECT sequence FROM \(Self.routes, unscoped: keeping)
                WHERE tenant = \(tenant) AND route IN \(values: group + padding)
                    AND sequence > \(after) AND sequence <= \(through)
                ORDER BY sequence LIMIT \(limit)
                """)
        }
        return try fetch(Array(found.sorted().prefix(limit)), in: db).filter {
            $0.isChange || scope.sees(tenant: $0.tenant, audience: $0.audience)
        }
    }

    /// The last changes of rows that somebody receives by the given keys, up to a number and not older than the given time
    /// before it; nil where there are more than the limit.
    static func recentChanges(
        in db: Connection, tenant: ID<Tenant>, routes: [String], through sequence: Int64, within age: Duration,
        limit: Int
    ) throws -> [StreamEvent]? {
        let sql: SQL = "SELECT created_at FROM \(events, unscoped: keeping) WHERE sequence = \(sequence)"
        guard let end = try db.row(sql, { try $0.moment(0) }) else { return [] }
        let start = end.adding(seconds: -age.components.seconds)
        // A change has the routes of all that receive it: it is found by each, and read once.
        var found: Set<Int> = []
        for route in routes {
            let recent = try db.rows(
                """
                SELECT event.sequence
                FROM (SELECT sequence FROM \(Self.routes, unscoped: keeping)
                    WHERE tenant = \(tenant) AND route = \(route) AND sequence <= \(sequence)
                    ORDER BY sequence DESC LIMIT \(limit)) AS recent
                JOIN \(events, unscoped: keeping) AS event ON event.sequence = recent.sequence
                WHERE event.name = \("\(change)") AND event.created_at >= \(start.microseconds)
                """
            ) { try $0.integer(0) }
            found.formUnion(recent)
            guard recent.count < limit, found.count < limit else { return nil }
        }
        return try fetch(found.sorted(), in: db)
    }

    /// All that follow a number, oldest first: for replicas that others write beside.
    static func following(_ sequence: Int64, limit: Int, in db: Connection) throws -> [StreamEvent] {
        try db.rows(
            """
            SELECT \(content) FROM \(events, unscoped: keeping)
            WHERE sequence > \(sequence) ORDER BY sequence LIMIT \(limit)
            """, event)
    }

    /// One event; nil if it is not retained.
    static func event(_ sequence: Int64, in db: Connection) throws -> StreamEvent? {
        try following(sequence - 1, limit: 1, in: db).first { $0.sequence == sequence }
    }

    /// Names of events between replicas, which no stream receives, begin so.
    static let internalPrefix = "bellhop:"

    /// Routes that are asked for one by one: as many as most scopes have keys.
    private static let routesAloneMax = 32
    /// Binds of one statement: few enough that the statement's text is one of a few.
    private static let fetchedAtOnceMax = 128

    /// - Parameter sequences: in their order.
    private static func fetch(_ sequences: [Int], in db: Connection) throws -> [StreamEvent] {
        try stride(from: 0, to: sequences.count, by: fetchedAtOnceMax).flatMap { start in
            let group = Array(sequences[start..<min(start + fetchedAtOnceMax, sequences.count)])
            return try db.rows(
                """
                SELECT \(content) FROM \(events, unscoped: keeping)
                WHERE sequence IN \(values: group) ORDER BY sequence
                """, event)
        }
    }

    /// The columns of which ``event(_:)`` makes an event, in its order.
    private static let content: SQL = "sequence, tenant, name, topic, audience, collapse, data, \(commonMembers)"

    /// What an event has in common with others. Most have nothing, and are not looked up.
    private static let commonMembers: SQL = """
        CASE WHEN events.shared IS NOT NULL THEN (
            SELECT common.members FROM \(shared, unscoped: keeping) AS common
            WHERE common.sequence = events.shared) END
        """

    private static func event(_ row: Row) throws -> StreamEvent {
        StreamEvent(
            sequence: Int64(try row.integer(0)), tenant: try row.id(1), name: try row.text(2),
            audience: try row.text(4).split(separator: " ").map(String.init), topic: try row.optionalText(3),
            collapse: UInt64(bitPattern: Int64(try row.integer(5))),
            data: SharedMembers.joined(try row.optionalBytes(7), try row.bytes(6)))
    }

    // MARK: Upkeep

    /// The name of this log, made once: cursors of another log (a database made anew) are recognized by it.
    static func epoch(at now: Timestamp, in db: Connection) throws -> String {
        let known = try db.row("SELECT epoch FROM \(epochs, unscoped: keeping)") { try $0.text(0) }
        if let known { return known }
        let epoch = randomEpoch()
        try db.run(
            """
            INSERT INTO \(epochs, unscoped: keeping) (epoch, created_at) VALUES (\(epoch), \(now.microseconds))
            """)
        return epoch
    }

    private static func randomEpoch() -> String {
        let letters = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<6).map { _ in letters[Int.random(in: letters.indices)] })
    }

    /// The log as it is now, for replicas that others write beside.
    ///
    /// The content is of the event that was asked for; nil if it is not retained.
    typealias State = (newest: Int64, epoch: String, content: [UInt8]?)

    static func state(lookingAt sequence: Int64, in db: Connection) throws -> State {
        let state = try db.row(
            """
            SELECT counter.newest, epochs.epoch, events.data, \(commonMembers)
            FROM \(counter, unscoped: keeping) AS counter
            CROSS JOIN \(epochs, unscoped: keeping) AS epochs
            LEFT JOIN \(events, unscoped: keeping) ON events.sequence = \(sequence) LIMIT 1
            """
        ) { row -> State in
            let common = try row.optionalBytes(3)
            return (
                Int64(try row.integer(0)), try row.text(1),
                try row.optionalBytes(2).map { SharedMembers.joined(common, $0) }
            )
        }
        guard let state else { throw DatabaseError(.corrupt, "the log has no counter, or no name") }
        return state
    }

    /// Gives the log another name, if it still has the old one: after a failover to a server that had not got the last
    /// commits. The numbers of the events that it lost were published, and will be given again.
    static func renewEpoch(_ old: String, at now: Timestamp, in db: Connection) throws {
        try db.run(
            """
            UPDATE \(epochs, unscoped: keeping) SET epoch = \(randomEpoch()), created_at = \(now.microseconds)
            WHERE epoch = \(old)
            """)
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

/// An event that a transaction publishes: its number comes with the log.
struct EventDraft: Sendable {
    let tenant: ID<Tenant>
    let name: String
    /// Keys of the row it is about. A key has no space: `AudienceKey` encodes it.
    let audience: [String]
    let topic: String?
    let collapse: String?
    /// What it has in common with others of its transaction; `data` has the rest then.
    var shared: SharedMembers?
    let data: [UInt8]
    /// The row's change that `data` is the JSON of.
    var change: RowChange?

    /// As it is sent to streams.
    var bytes: Int { data.count + (shared?.members.count ?? 0) }
}

/// Members of JSON objects that several events have in common, such as a message to many: made once, and stored once.
final class SharedMembers: Sendable {
    /// Without the object's braces.
    let members: [UInt8]

    init(_ body: (inout JSONWriter) -> Void) {
        members = Array(JSONWriter.object(body).dropFirst().dropLast())
    }

    /// An object with the common members before its own.
    static func joined(_ common: [UInt8]?, _ own: [UInt8]) -> [UInt8] {
        guard let common else { return own }
        var whole: [UInt8] = []
        whole.reserveCapacity(common.count + own.count + 1)
        whole.append(UInt8(ascii: "{"))
        whole += common
        if own.count > 2 { whole.append(UInt8(ascii: ",")) }
        whole += own.dropFirst()
        return whole
    }
}

/// The events of one transaction, until its group is about to be committed.
struct PendingEvents: Sendable {
    let now: Timestamp
    let drafts: [EventDraft]
}

/// An event of the log on its way to streams.
struct LoggedEvent: Sendable {
    let event: StreamEvent
    /// The row's change that it is about, where this process wrote it; others are read from the event's JSON.
    var change: RowChange?
}

extension StreamEvent {
    init(_ draft: EventDraft, sequence: Int64) {
        self.init(
            sequence: sequence, tenant: draft.tenant, name: draft.name, audience: draft.audience, topic: draft.topic,
            collapse: draft.collapse.map { CollapseKey.of($0) } ?? 0,
            data: SharedMembers.joined(draft.shared?.members, draft.data))
    }

    /// A row's change, of which each stream receives its part.
    var isChange: Bool { name == Self.changeName }
    /// What replicas send one another, and no stream receives.
    var isInternal: Bool { name.hasPrefix(EventLog.internalPrefix) }

    private static let changeName = EventLog.change.description
}
