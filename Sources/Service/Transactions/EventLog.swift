import Database
import Domain
import Realtime
import Rows
import Values
import Visibility

/// The log of what happened, from which streams are served: rows of the same transaction as what they are about.
///
/// Each event is stored once, in one row with those of its transaction that the same readers receive (``EventRecord``),
/// and what several have in common once for all of them; and each row once more as a narrow one for each of its *routes*:
/// the audience's keys, or `#topic` for events of a topic. A resuming stream reads its routes only, so that its replay
/// costs what it may see and not what happened.
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
        // Rows from before are records of one event. `step` is how far a row's number lies behind the one of the row
        // before it; null: next to it.
        Migration(
            "0004_event_records",
            sql: [
                "ALTER TABLE events ADD COLUMN earlier TEXT",
                .sqlite("ALTER TABLE events ADD COLUMN step INTEGER"),
                .postgreSQL("ALTER TABLE events ADD COLUMN step BIGINT"),
            ]),
        // Of the database that the log was named in.
        Migration("0005_event_epochs", sql: ["ALTER TABLE event_epochs ADD COLUMN origin TEXT"]),
        // The trace that a record's events are of: `traceparent`; null where it is not recorded.
        Migration("0006_event_traces", sql: ["ALTER TABLE events ADD COLUMN trace TEXT"]),
    ]

    static let keeping = Unscoped.bookkeeping("the log is read by routes, which are the reader's own keys")

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
        try db.notify(channel, "\(newest)")
        return logged
    }

    private static let advance: SQL =
        "UPDATE \(counter, unscoped: keeping) SET newest = newest + ? WHERE id = 1 RETURNING newest"
    private static let intoEvents = Insertion(
        """
        INSERT INTO \(events, unscoped: keeping)
            (sequence, tenant, name, topic, audience, collapse, data, created_at, shared, earlier, step, trace)
        """, columns: 12)
    private static let intoShared = Insertion(
        "INSERT INTO \(shared, unscoped: keeping) (sequence, members)", columns: 2)
    private static let intoRoutes = Insertion(
        "INSERT INTO \(routes, unscoped: keeping) (tenant, route, sequence)", columns: 3)

    /// The values of the rows that a group of transactions inserts.
    private struct Rows {
        private(set) var (events, routes, shared): ([SQLValue], [SQLValue], [SQLValue]) = ([], [], [])

        init(reserving count: Int) {
            events.reserveCapacity(count * 12)
            routes.reserveCapacity(count * 6)
        }

        /// - Parameter start: the number of the event before the transaction's first.
        mutating func add(_ transaction: PendingEvents, after start: Int64) {
            let records = EventRecord.records(of: transaction.drafts, after: start)
            // What events have in common goes with the last record that has it.
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

    /// A row's change has the routes of both: of those whose queries it makes stale, and of its table, for streams that
    /// have missed changes of rows.
    static func routes(topic: String?, audience: [String]) -> [String] {
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

    /// Names of events between replicas, which no stream receives, begin so.
    static let internalPrefix = "bellhop:"
}
