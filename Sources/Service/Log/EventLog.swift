import Database
import Rows
import Values
import Visibility

/// The log of events from which streams are served. Its rows are written in the same transaction as the rows that they
/// describe.
///
/// Each event is stored once, in one row with the events of its transaction that have the same readers
/// (``EventRecord``). Members that several events share are stored once for all of them. Each row has a narrow index
/// row for each of its *routes*: the audience's keys, or `#topic` for events of a topic. A resuming stream reads only
/// its routes, so the cost of its replay depends on the events that it may see, not on all events.
enum EventLog {
    static let events = Table(
        "events", read: [], write: [], kept: "BELLHOP_EVENTS_KEPT_HOURS",
        person: .copies("a step erases the events that name the person"))
    static let routes = Table(
        "event_routes", read: [], write: [], kept: "BELLHOP_EVENTS_KEPT_HOURS",
        person: .copies("keys of events, erased with them"))
    /// The shared members of events, with the number of the last event that uses them. They are removed with that
    /// event.
    static let shared = ServiceTable(
        "event_shared", kept: "BELLHOP_EVENTS_KEPT_HOURS",
        person: .copies("parts of events, erased with them"))
    static let epochs = ServiceTable("event_epochs", person: .nothing("names of the log"))
    /// A single row: the number of the newest event ever.
    static let counter = ServiceTable("event_counter", person: .nothing("a number"))

    /// The channel on which replicas listen: it carries an ``Announcement`` whenever a transaction with events is
    /// committed.
    static let channel: StaticString = "bellhop_events"

    static let migration = Migration(
        "0001_events",
        sql: [
            // `step` is the distance of a row's number from the previous row's; null means 1. `trace` is the `traceparent`
            // of a record's events. It is null if the trace is not recorded.
            """
            CREATE TABLE events (
                sequence INTEGER PRIMARY KEY,
                tenant TEXT NOT NULL,
                name TEXT NOT NULL,
                topic TEXT,
                audience TEXT NOT NULL,
                collapse INTEGER NOT NULL,
                data TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                shared INTEGER,
                earlier TEXT,
                step INTEGER,
                trace TEXT
            ) STRICT
            """,
            """
            CREATE TABLE event_routes (
                tenant TEXT NOT NULL,
                route TEXT NOT NULL,
                sequence INTEGER NOT NULL,
                PRIMARY KEY (tenant, route, sequence)
            ) STRICT, WITHOUT ROWID
            """,
            "CREATE TABLE event_shared (sequence INTEGER PRIMARY KEY, members TEXT NOT NULL) STRICT",
            // `origin` is the database in which the log got its epoch.
            """
            CREATE TABLE event_epochs (epoch TEXT NOT NULL PRIMARY KEY, created_at INTEGER NOT NULL, origin TEXT) STRICT
            """,
            "CREATE TABLE event_counter (id INTEGER PRIMARY KEY CHECK (id = 1), newest INTEGER NOT NULL) STRICT",
            "INSERT INTO event_counter (id, newest) VALUES (1, 0)",
        ])

    static let bookkeeping = Unscoped.bookkeeping("the log is filtered by the reader's own keys")
    private static let numbering = Unscoped.bookkeeping("the events of all tenants share one sequence")
    static let allEvents: SQL = "\(events, unscoped: numbering)"

    // MARK: Writing

    /// Numbers the events of a group of transactions and stores them, in the group's last step before its commit.
    ///
    /// The counter's row is locked from here to the commit, on every replica. So numbers have no gaps, and are
    /// committed in order. A reader that has seen a number has seen, or can read, all numbers before it.
    ///
    /// - Parameter replica: The name of this process, which need not read these events.
    static func append(
        _ pending: [PendingEvents], by replica: String, in db: DatabaseConnection
    ) throws -> [LoggedEvent] {
        let count = pending.reduce(0) { $0 + $1.drafts.count }
        let newest = try db.integer(advance.binding(count))
        guard let newest else { throw DatabaseError(.corrupt, "the event log has no counter") }
        var sequence = Int64(newest - count)
        var logged: [LoggedEvent] = []
        logged.reserveCapacity(count)
        var rows = Rows(reserving: count)
        for transaction in pending {
            rows.add(transaction, after: sequence)
            for place in transaction.drafts.indices {
                sequence += 1
                logged.append(
                    LoggedEvent(
                        transaction.drafts[place], sequence: sequence, traceparent: transaction.traceparent))
            }
        }
        try db.runWithCommit(
            intoEvents.statements(of: rows.events) + intoShared.statements(of: rows.shared)
                + intoRoutes.statements(of: rows.routes))
        try db.notify(channel, Announcement(newest: sequence, replica: replica).payload)
        return logged
    }

    /// The content of a notification on ``channel``: the newest number, and the replica that has it already.
    struct Announcement {
        let newest: Int64
        let replica: String

        var payload: String { "\(newest) \(replica)" }

        init(newest: Int64, replica: String) { (self.newest, self.replica) = (newest, replica) }

        /// Reads a payload; nil if the text is not a payload.
        init?(payload: String) {
            let parts = payload.split(separator: " ", maxSplits: 1)
            guard let newest = parts.first.flatMap({ Int64($0) }) else { return nil }
            self.init(newest: newest, replica: parts.count > 1 ? String(parts[1]) : "")
        }
    }

    /// Writes the row that each write with events needs, and changes nothing.
    static func touch(in db: DatabaseConnection) throws {
        try db.run("UPDATE \(counter) SET newest = newest WHERE id = 1")
    }

    private static let advance: SQL =
        "UPDATE \(counter) SET newest = newest + ? WHERE id = 1 RETURNING newest"
    private static let intoEvents = Insertion(
        """
        INSERT INTO \(allEvents)
            (sequence, tenant, name, topic, audience, collapse, data, created_at, shared, earlier, step, trace)
        """, columns: 12)
    private static let intoShared = Insertion("INSERT INTO \(shared) (sequence, members)", columns: 2)
    private static let intoRoutes = Insertion(
        "INSERT INTO \(routes, unscoped: numbering) (tenant, route, sequence)", columns: 3)

    /// The values of the rows that a group of transactions inserts.
    private struct Rows {
        private(set) var (events, routes, shared): ([SQLValue], [SQLValue], [SQLValue]) = ([], [], [])

        init(reserving count: Int) {
            events.reserveCapacity(count * 12)
            routes.reserveCapacity(count * 6)
        }

        /// Adds a transaction.
        ///
        /// - Parameter start: The number of the event before the transaction's first.
        mutating func add(_ transaction: PendingEvents, after start: Int64) {
            let records = EventRecord.records(of: transaction.drafts, after: start)
            // Shared members are stored with the last record that uses them.
            var sharedNumbers: [ObjectIdentifier: Int64] = [:]
            for case let record? in records {
                if let shared = record.shared { sharedNumbers[ObjectIdentifier(shared)] = record.sequence }
            }
            var previous = start
            for case let record? in records {
                let number = record.shared.flatMap { sharedNumbers[ObjectIdentifier($0)] }
                add(record, of: transaction, shared: number, behind: previous)
                previous = record.sequence
            }
        }

        private mutating func add(
            _ record: EventRecord, of transaction: PendingEvents, shared number: Int64?, behind previous: Int64
        ) {
            let last = transaction.drafts[record.place]
            let (tenant, sequence) = (SQLValue.text(last.tenant.text), SQLValue.integer(record.sequence))
            events.append(sequence)
            events.append(tenant)
            events.append(.text(last.name))
            events.append(last.topic.map { .text($0) } ?? .null)
            events.append(.text(record.audience))
            events.append(.integer(Int64(bitPattern: last.collapseKey)))
            events.append(.utf8(last.data))
            events.append(.integer(transaction.now.microseconds))
            events.append(number.map { .integer($0) } ?? .null)
            events.append(record.earlier.isEmpty ? .null : .utf8(record.earlier))
            events.append(record.sequence == previous + 1 ? .null : .integer(record.sequence - previous))
            events.append(transaction.traceparent.map { .text($0) } ?? .null)
            if let members = record.shared?.members, number == record.sequence {
                shared.append(sequence)
                shared.append(.utf8(members))
            }
            for route in EventLog.routes(topic: last.topic, audience: last.audience) {
                routes.append(tenant)
                routes.append(.text(route))
                routes.append(sequence)
            }
        }
    }

    /// Returns the routes of an event. A row change has both kinds: the keys of the holders whose queries it makes
    /// stale, and its table's topic, for streams that have missed row changes.
    static func routes(topic: String?, audience: [String]) -> [String] {
        guard let topic else { return audience }
        return isTable(topic) ? ["#" + topic] + audience : ["#" + topic]
    }

    /// Whether a topic stands for a table.
    static func isTable(_ topic: String) -> Bool { topic.hasPrefix(tablePrefix) }

    /// Marks the topic that stands for a table. Clients cannot name such a topic.
    private static let tablePrefix = "@"

    /// Returns the topic of a table's changes.
    static func topic(schema: String, table: String) -> String {
        tablePrefix + AudienceKey.make(schema, table)
    }

    /// The name of row change events.
    static let change: StaticString = "table:change"

    /// The prefix of the names of events between replicas, which no stream receives.
    static let internalPrefix = "bellhop:"
}
