import Database
import Realtime
import Values

extension EventLog {
    /// The oldest event that is retained; one more than the newest when none is.
    ///
    /// Events before the oldest row's own are retained too, back to the row that was before it: they are of records that
    /// end behind it.
    static func oldestSequence(in db: Connection) throws -> Int64 {
        let oldest = try db.integer(
            "SELECT sequence - coalesce(step, 1) + 1 FROM \(events, unscoped: keeping) ORDER BY sequence LIMIT 1")
        if let oldest { return Int64(oldest) }
        return try newestSequence(in: db) + 1
    }

    /// The newest event there ever was, also when it is not retained any more.
    static func newestSequence(in db: Connection) throws -> Int64 { Int64(try db.integer(position) ?? 0) }

    /// Asked beside a query, it says behind which event the state is that the rows are of: numbers are committed in their
    /// order, so the state has all up to the newest.
    static let position: SQL = "SELECT newest FROM \(counter, unscoped: keeping) WHERE id = 1"

    /// What a scope may see of the given routes, with `after < sequence ≤ through`, oldest first, and changes of rows, of
    /// which each stream sees its part; nil where there are more than the limit.
    static func replay(
        in db: Connection, tenant: ID<Tenant>, routes: [String], scope: Scope, after: Int64, through: Int64, limit: Int
    ) throws -> [StreamEvent]? {
        // A record is found by its last event, which may lie behind `through`, but no further than a record reaches. A
        // statement that is cut off has found more than the limit that end before.
        let end = through + Int64(Limits.recordSpanMax)
        let rowsMax = limit + Limits.recordSpanMax
        var found: Set<Int> = []
        func note(_ sql: SQL) throws { found.formUnion(try db.rows(sql) { try $0.integer(0) }) }
        for route in routes.prefix(routesAloneMax) {
            try note(
                """
                SELECT sequence FROM \(Self.routes, unscoped: keeping)
                WHERE tenant = \(tenant) AND route = \(route) AND sequence > \(after) AND sequence < \(end)
                ORDER BY sequence LIMIT \(rowsMax)
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
                    AND sequence > \(after) AND sequence < \(end)
                ORDER BY sequence LIMIT \(rowsMax)
                """)
        }
        guard found.count(where: { $0 <= Int(through) }) <= limit else { return nil }
        let events = try fetch(found.sorted(), after: after, through: through, in: db)
        guard events.count <= limit else { return nil }
        return events.filter { $0.isChange || scope.sees(tenant: $0.tenant, audience: $0.audience) }
    }

    /// The last changes of rows that somebody receives by the given keys, up to a number and not older than the given time
    /// before it; nil where so much was published since that not all of it is looked at.
    static func recentChanges(
        in db: Connection, tenant: ID<Tenant>, routes: [String], through sequence: Int64, within age: Duration,
        limit: Int
    ) throws -> [StreamEvent]? {
        // Of the event itself, or of one that its transaction published with it.
        let sql: SQL = """
            SELECT created_at FROM \(events, unscoped: keeping) WHERE sequence >= \(sequence) ORDER BY sequence LIMIT 1
            """
        guard let end = try db.row(sql, { try $0.moment(0) }) else { return [] }
        let start = end.adding(seconds: -age.components.seconds)
        // A change has the routes of all that receive it: it is found by each, and read once. It is a record of its own.
        var found: Set<Int> = []
        for route in routes {
            let recent = try db.rows(
                """
                SELECT event.sequence, event.name
                FROM (SELECT sequence FROM \(Self.routes, unscoped: keeping)
                    WHERE tenant = \(tenant) AND route = \(route) AND sequence <= \(sequence)
                    ORDER BY sequence DESC LIMIT \(limit)) AS recent
                JOIN \(events, unscoped: keeping) AS event ON event.sequence = recent.sequence
                WHERE event.created_at >= \(start.microseconds)
                """
            ) { row in (sequence: try row.integer(0), isChange: try row.text(1) == change.description) }
            found.formUnion(recent.lazy.filter(\.isChange).map(\.sequence))
            // Of the whole limit, one that was cut off may be a change.
            guard recent.count < limit, found.count < limit else { return nil }
        }
        return try fetch(found.sorted(), in: db)
    }

    /// What follows a number, oldest first and without gaps, and whether it is all: for replicas that others write beside.
    ///
    /// - Parameter limit: there may be more that follow; of fewer there are all.
    static func following(
        _ sequence: Int64, limit: Int, in db: Connection
    ) throws -> (events: [StreamEvent], isAll: Bool) {
        let rowsMax = limit + Limits.recordSpanMax
        var events: [StreamEvent] = []
        var (count, last): (Int, Int64) = (0, sequence)
        try db.forEach(
            """
            SELECT \(content) FROM \(Self.events, unscoped: keeping)
            WHERE sequence > \(sequence) ORDER BY sequence LIMIT \(rowsMax)
            """
        ) { row in
            count += 1
            last = Int64(try row.integer(0))
            try append(row, after: sequence, through: .max, to: &events)
            return true
        }
        // Records that were left out may begin as far before the last one that was read.
        let isAll = count < rowsMax
        let end = isAll ? last : last - Int64(Limits.recordSpanMax)
        return (events.filter { $0.sequence <= end }.sorted { $0.sequence < $1.sequence }, isAll)
    }

    /// One event; nil if it is not retained.
    static func event(_ sequence: Int64, in db: Connection) throws -> StreamEvent? {
        var found: [StreamEvent] = []
        try db.forEach(
            """
            SELECT \(content) FROM \(events, unscoped: keeping)
            WHERE sequence >= \(sequence) AND sequence < \(sequence + Int64(Limits.recordSpanMax)) ORDER BY sequence
            """
        ) { row in
            try append(row, after: sequence - 1, through: sequence, to: &found)
            return found.isEmpty
        }
        return found.first
    }

    /// Routes that are asked for one by one: as many as most scopes have keys.
    private static let routesAloneMax = 32
    /// Binds of one statement: few enough that the statement's text is one of a few.
    private static let fetchedAtOnceMax = 128

    /// The events of records with `after < sequence ≤ through`, oldest first.
    ///
    /// - Parameter records: by their last events, in their order.
    private static func fetch(
        _ records: [Int], after: Int64 = 0, through: Int64 = .max, in db: Connection
    ) throws -> [StreamEvent] {
        var events: [StreamEvent] = []
        for start in stride(from: 0, to: records.count, by: fetchedAtOnceMax) {
            let group = Array(records[start..<min(start + fetchedAtOnceMax, records.count)])
            try db.forEach(
                """
                SELECT \(content) FROM \(Self.events, unscoped: keeping)
                WHERE sequence IN \(values: group) ORDER BY sequence
                """
            ) { row in
                try append(row, after: after, through: through, to: &events)
                return true
            }
        }
        return events.sorted { $0.sequence < $1.sequence }
    }

    /// The columns that ``append(_:after:through:to:)`` reads, in its order.
    static let content: SQL =
        "sequence, tenant, name, topic, audience, collapse, data, \(commonMembers), earlier, trace"
    /// How many they are.
    static let contentCount = 10

    /// What an event has in common with others. Most have nothing, and are not looked up.
    private static let commonMembers: SQL = """
        CASE WHEN events.shared IS NOT NULL THEN (
            SELECT common.members FROM \(shared, unscoped: keeping) AS common
            WHERE common.sequence = events.shared) END
        """

    /// Appends the events of a record with `after < sequence ≤ through`.
    static func append(
        _ row: Row, after: Int64, through: Int64, to events: inout [StreamEvent]
    ) throws {
        let tenant: ID<Tenant> = try row.id(1)
        let topic = try row.optionalText(3)
        let audience = try row.text(4).split(separator: " ").map(String.init)
        let (members, traceparent) = (try row.optionalBytes(7), try row.optionalText(9))
        var reader = EarlierEvents(try row.optionalBytes(8))
        while let event = try reader.next() {
            guard event.sequence > after, event.sequence <= through else { continue }
            events.append(
                StreamEvent(
                    sequence: event.sequence, tenant: tenant, name: event.name, audience: audience, topic: topic,
                    collapse: event.collapse,
                    data: SharedMembers.joined(event.isSharing ? members : nil, event.data), traceparent: traceparent))
        }
        let last = Int64(try row.integer(0))
        guard last > after, last <= through else { return }
        events.append(
            StreamEvent(
                sequence: last, tenant: tenant, name: try row.text(2), audience: audience, topic: topic,
                collapse: UInt64(bitPattern: Int64(try row.integer(5))),
                data: SharedMembers.joined(reader.isLastSharing ? members : nil, try row.bytes(6)),
                traceparent: traceparent))
    }
}
