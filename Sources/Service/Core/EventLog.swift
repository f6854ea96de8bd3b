import Database
import Domain
import Realtime

/// The log of what happened, from which streams are served: rows of the same transaction as what they tell of.
///
/// Each event is stored once, and once more as a narrow row for each of its *routes*: the audience's keys, or `#topic`
/// for an event of a topic. A resuming stream reads its routes only, so that its replay costs what it may see and not
/// what happened.
enum EventLog {
    static let events = Table("events", read: [], write: [])
    static let routes = Table("event_routes", read: [], write: [])
    static let epochs = Table("event_epochs", read: [], write: [])

    static let migration = Migration(
        "0001_events",
        sql: [
            // AUTOINCREMENT: a number is never used twice, also not after the newest rows were removed.
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
            """,
            """
            CREATE TABLE event_routes (
                tenant TEXT NOT NULL,
                route TEXT NOT NULL,
                sequence INTEGER NOT NULL,
                PRIMARY KEY (tenant, route, sequence)
            ) STRICT, WITHOUT ROWID
            """,
            "CREATE TABLE event_epochs (epoch TEXT NOT NULL PRIMARY KEY, created_at INTEGER NOT NULL) STRICT",
        ])

    private static let keeping = Unscoped.bookkeeping("the log is read by routes, which are the reader's own keys")

    // MARK: Writing

    static func append(_ draft: EventDraft, tenant: String, now: Timestamp, in db: Connection) throws -> StreamEvent {
        let collapse = draft.collapse.map { CollapseKey.of($0) } ?? 0
        let sequence = try db.integer(
            """
            INSERT INTO \(events, unscoped: keeping) (tenant, name, topic, audience, collapse, data, created_at)
            VALUES (\(tenant), \(draft.name), \(draft.topic), \(draft.audience.joined(separator: " ")),
                \(Int(bitPattern: UInt(collapse))), \(String(decoding: draft.data, as: UTF8.self)),
                \(now.microseconds))
            RETURNING sequence
            """)
        guard let sequence else { throw DatabaseError(.other, "an event got no number") }
        for route in routes(topic: draft.topic, audience: draft.audience) {
            try db.run(
                """
                INSERT INTO \(routes, unscoped: keeping) (tenant, route, sequence)
                VALUES (\(tenant), \(route), \(sequence))
                """)
        }
        return StreamEvent(
            sequence: Int64(sequence), tenant: tenant, name: draft.name, audience: draft.audience, topic: draft.topic,
            collapse: collapse, data: draft.data)
    }

    private static func routes(topic: String?, audience: [String]) -> [String] {
        topic.map { ["#" + $0] } ?? audience
    }

    // MARK: Reading

    /// The oldest event that is kept; one more than the newest when none is.
    static func oldestSequence(in db: Connection) throws -> Int64 {
        let oldest = try db.row("SELECT min(sequence) FROM \(events, unscoped: keeping)") { try $0.optionalInteger(0) }
        if let oldest = oldest ?? nil { return Int64(oldest) }
        return try newestSequence(in: db) + 1
    }

    /// The newest event there ever was, also when it is not kept any more.
    static func newestSequence(in db: Connection) throws -> Int64 {
        Int64(try db.integer("SELECT seq FROM sqlite_sequence WHERE name = 'events'") ?? 0)
    }

    /// What a scope may see of the given routes with `after < sequence ≤ through`, oldest first, at most `limit`.
    static func replay(
        in db: Connection, tenant: String, routes: [String], scope: Scope, after: Int64, through: Int64, limit: Int
    ) throws -> [StreamEvent] {
        var found: Set<Int> = []
        for route in routes {
            try db.forEach(
                """
                SELECT sequence FROM \(Self.routes, unscoped: keeping)
                WHERE tenant = \(tenant) AND route = \(route) AND sequence > \(after) AND sequence <= \(through)
                ORDER BY sequence LIMIT \(limit)
                """
            ) { row in
                found.insert(try row.integer(0))
                return true
            }
        }
        let sequences = Array(found.sorted().prefix(limit))
        return try stride(from: 0, to: sequences.count, by: fetchedAtOnceMax).flatMap { start in
            try fetch(Array(sequences[start..<min(start + fetchedAtOnceMax, sequences.count)]), in: db)
        }.filter { scope.sees(tenant: $0.tenant, audience: $0.audience) }
    }

    /// Binds of one statement: few enough that the statement's text is one of a few.
    private static let fetchedAtOnceMax = 128

    private static func fetch(_ sequences: [Int], in db: Connection) throws -> [StreamEvent] {
        try db.rows(
            """
            SELECT sequence, tenant, name, topic, audience, collapse, data FROM \(events, unscoped: keeping)
            WHERE sequence IN \(values: sequences) ORDER BY sequence
            """, event)
    }

    private static func event(_ row: Row) throws -> StreamEvent {
        StreamEvent(
            sequence: Int64(try row.integer(0)), tenant: try row.text(1), name: try row.text(2),
            audience: try row.text(4).split(separator: " ").map(String.init), topic: try row.optionalText(3),
            collapse: UInt64(bitPattern: Int64(try row.integer(5))), data: try row.bytes(6))
    }

    // MARK: Upkeep

    /// The name of this log, made once: cursors of another log (a database made anew) are recognized by it.
    static func epoch(at now: Timestamp, in db: Connection) throws -> String {
        let known = try db.row("SELECT epoch FROM \(epochs, unscoped: keeping)") { try $0.text(0) }
        if let known { return known }
        let letters = Array("abcdefghijkmnpqrstuvwxyz23456789")
        let epoch = String((0..<6).map { _ in letters[Int.random(in: letters.indices)] })
        try db.run(
            """
            INSERT INTO \(epochs, unscoped: keeping) (epoch, created_at) VALUES (\(epoch), \(now.microseconds))
            """)
        return epoch
    }

    static func isPruningDue(before oldest: Timestamp, keeping countMax: Int, in db: Connection) throws -> Bool {
        let first = try db.row(
            "SELECT sequence, created_at FROM \(events, unscoped: keeping) ORDER BY sequence LIMIT 1"
        ) { (sequence: Int64(try $0.integer(0)), createdAt: Int64(try $0.integer(1))) }
        guard let first else { return false }
        return try first.createdAt < oldest.microseconds || first.sequence <= newestSequence(in: db) - Int64(countMax)
    }

    /// Removes the oldest events, past their age or above the number kept; at most so many that nobody waits for it.
    ///
    /// - Returns: how many were removed.
    static func prune(before oldest: Timestamp, keeping countMax: Int, in db: Connection) throws -> Int {
        let floor = try newestSequence(in: db) - Int64(countMax)
        let doomed = try db.rows(
            """
            SELECT sequence, tenant, topic, audience, created_at FROM \(events, unscoped: keeping)
            ORDER BY sequence LIMIT \(Limits.prunedAtOnceMax)
            """
        ) { row in
            (
                sequence: Int64(try row.integer(0)), tenant: try row.text(1), topic: try row.optionalText(2),
                audience: try row.text(3).split(separator: " ").map(String.init),
                createdAt: Int64(try row.integer(4))
            )
        }.prefix { $0.sequence <= floor || $0.createdAt < oldest.microseconds }
        guard let last = doomed.last else { return 0 }
        for event in doomed {
            for route in routes(topic: event.topic, audience: event.audience) {
                try db.run(
                    """
                    DELETE FROM \(routes, unscoped: keeping)
                    WHERE tenant = \(event.tenant) AND route = \(route) AND sequence = \(event.sequence)
                    """)
            }
        }
        return try db.run("DELETE FROM \(events, unscoped: keeping) WHERE sequence <= \(last.sequence)")
    }
}

/// An event as a handler tells it; its number comes with the log.
struct EventDraft: Sendable {
    let name: String
    /// Keys of the row it is about. A key holds no space: `AudienceKey` encodes it.
    let audience: [String]
    let topic: String?
    let collapse: String?
    let data: [UInt8]
}
