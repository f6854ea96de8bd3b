import Database
import Realtime
import Values

/// The events of a log with `after < sequence ≤ through`.
struct LogSpan: Sendable {
    let after: Int64
    let through: Int64

    static let all = LogSpan(after: 0, through: .max)
    static func only(_ sequence: Int64) -> LogSpan { LogSpan(after: sequence - 1, through: sequence) }

    func contains(_ sequence: Int64) -> Bool { after < sequence && sequence <= through }
}

/// How far a look at recent events goes back.
struct Lookback: Sendable {
    let age: Duration
    let countMax: Int
}

extension EventLog {
    /// Returns the oldest retained event, or one more than the newest if the log is empty.
    ///
    /// Events before the oldest row's own event are retained too, back to the previous row: they belong to records that
    /// end after it.
    static func oldestSequence(in db: DatabaseConnection) throws -> Int64 {
        if let oldest = try db.integer(oldest) { return Int64(oldest) }
        return try newestSequence(in: db) + 1
    }

    private static let oldest: SQL =
        "SELECT sequence - coalesce(step, 1) + 1 FROM \(allEvents) ORDER BY sequence LIMIT 1"

    /// Returns the newest event ever, even if it is no longer retained.
    static func newestSequence(in db: DatabaseConnection) throws -> Int64 { Int64(try db.integer(newest) ?? 0) }

    private static let newest: SQL = "SELECT newest FROM \(counter) WHERE id = 1"

    /// Returns a query that runs with another one, and returns the records of its snapshot that this process has not
    /// published yet, each as its number and tenant. A last record without a tenant names the given head.
    ///
    /// One query serves callers of several tenants, because PostgreSQL answers many callers from one snapshot.
    static func records(after head: Int64) -> SQL { newestRecords.binding(head, recordsMax, head) }

    /// The statement of ``records(after:)``, whose text is made once, because most reads need it.
    private static let newestRecords: SQL = """
        SELECT sequence, tenant FROM (SELECT sequence, tenant FROM \(allEvents)
            WHERE sequence > ? ORDER BY sequence DESC LIMIT ?) AS recent
        UNION ALL SELECT CAST(? AS BIGINT), ''
        """

    /// Records of ``records(after:)``. A replica that is further behind names the position of another tenant's event,
    /// which is equally exact. A larger limit would make PostgreSQL plan the query each time.
    private static let recordsMax = 64

    /// Returns the newest event of a tenant in a snapshot. A stream that resumes there receives exactly the events of
    /// the tenant that the snapshot does not contain.
    ///
    /// - Parameters:
    ///   - known: The position that was known before the snapshot began.
    ///   - records: The result of ``records(after:)`` in the snapshot. The head that it names may be that of an earlier
    ///     query.
    static func position(
        of tenant: ID<Tenant>, known: TenantPositions.Known, in records: [(number: Int, text: String)]
    ) -> Int64 {
        var (own, head, oldest, count): (Int?, Int, Int, Int) = (nil, 0, .max, 0)
        for record in records {
            guard !record.text.isEmpty else {
                head = record.number
                continue
            }
            (oldest, count) = (min(oldest, record.number), count + 1)
            if record.text == tenant.text { own = max(own ?? 0, record.number) }
        }
        if let own { return max(Int64(own), known.position) }
        if count >= recordsMax { return max(Int64(oldest), known.position) }
        // Another caller's query may have begun later, at a head before which events of this tenant are unknown here.
        return head <= known.head ? known.position : Int64(head)
    }

    /// Returns the oldest event of a tenant that the log still stores, or an earlier number after which it stores all.
    ///
    /// - Parameter known: The position that was known before the snapshot began.
    static func oldestSequence(known: TenantPositions.Known, in db: DatabaseConnection) throws -> Int64 {
        let oldest = try oldestSequence(in: db)
        // The tenant has no events between its position and the head.
        return known.head >= oldest - 1 ? min(oldest, known.position + 1) : oldest
    }

    /// Returns the events of a span with the given routes that a scope may see, oldest first. Row changes are included;
    /// each stream sees its own part of them. Returns nil if there are more than the limit, or if one was erased: the
    /// client may show erased data.
    static func replay(
        _ span: LogSpan, of routes: EventRoutes, as scope: Scope, limit: Int, in db: DatabaseConnection
    ) throws -> [StreamEvent]? {
        let (tenant, after, through) = (scope.tenant, span.after, span.through)
        // A record is found by its last event, which may be after `through`, but at most by the span of a record. A
        // statement that is cut off has found more than the limit of records that end before.
        let end = through + Int64(Limits.recordSpanMax)
        let rowsMax = limit + Limits.recordSpanMax
        var found: Set<Int> = []
        func note(_ sql: SQL) throws { found.formUnion(try db.rows(sql) { try $0.integer(0) }) }
        let records = LogSpan(after: after, through: end - 1)
        if let all = try search(records, for: routes, of: tenant, onlyChanges: false, in: db) {
            found = Set(all.map(\.sequence))
        } else {
            let texts = routes.texts
            for route in texts.prefix(routesAloneMax) {
                try note(ofRoute.binding(within: tenant, route, after, end, rowsMax))
            }
            for group in groups(of: texts) {
                // DISTINCT, because an event has a row for each route of the group. Repeated rows must not use up the
                // limit and hide another event.
                try note(
                    """
                    SELECT DISTINCT sequence FROM \(Self.routes, within: tenant, bookkeeping)
                    WHERE route IN \(values: group)
                        AND sequence > \(after) AND sequence < \(end)
                    ORDER BY sequence LIMIT \(rowsMax)
                    """)
            }
        }
        guard found.count(where: { $0 <= Int(through) }) <= limit else { return nil }
        let events = try fetch(found.sorted(), of: tenant, within: span, in: db)
        guard events.count <= limit, !events.contains(where: { $0.name == erasedName }) else { return nil }
        return events.filter { $0.isChange || scope.sees(tenant: $0.tenant, audience: $0.audience) }
    }

    /// Returns the most recent row changes with receivers among the given keys. Returns nil if so much was published
    /// since that not all of it is read, or if an event was erased, which may have been a change.
    static func recentChanges(
        of routes: EventRoutes, in tenant: ID<Tenant>, through sequence: Int64, _ lookback: Lookback,
        in db: DatabaseConnection
    ) throws -> [StreamEvent]? {
        let limit = lookback.countMax
        // The time of the event itself, or of one that its transaction published with it.
        guard let end = try db.row(moment.binding(sequence), { try $0.moment(0) }) else { return [] }
        let start = end.adding(seconds: -lookback.age.components.seconds)
        // A change has the routes of all its receivers. Each route finds it, and it is read once. It is always a record
        // of its own.
        var found: Set<Int> = []
        var isErased = false
        func read(_ row: Row) throws -> FoundRecord {
            let record = try FoundRecord(row)
            if record.isErased, record.createdAt >= start { isErased = true }
            return record
        }
        // The rows of many keys are spread over the whole log, so their statements need a lower bound.
        let oldest = routes.count > routesAloneMax ? try Self.sequence(before: start, through: sequence, in: db) : 0
        let span = LogSpan(after: oldest, through: sequence)
        if let all = try search(span, for: routes, of: tenant, onlyChanges: true, in: db) {
            let recent = all.filter { $0.createdAt >= start }
            guard recent.count < limit, !recent.contains(where: \.isErased) else { return nil }
            return try fetch(recent.map(\.sequence), of: tenant, in: db)
        }
        let texts = routes.texts
        for route in texts.prefix(routesAloneMax) {
            let recent = try db.rows(
                recentOfRoute.binding(within: tenant, route, sequence, limit, start.microseconds), read)
            found.formUnion(recent.lazy.filter(\.isChange).map(\.sequence))
            // If the limit is reached, a row that was cut off may be a change.
            guard recent.count < limit, found.count < limit, !isErased else { return nil }
        }
        var rowsLeft = groupedRowsMax
        for group in groups(of: texts) {
            let recent = try db.rows(
                """
                SELECT event.sequence, event.name, event.created_at
                FROM (SELECT sequence FROM \(Self.routes, within: tenant, bookkeeping)
                    WHERE route IN \(values: group)
                        AND sequence > \(oldest) AND sequence <= \(sequence)
                    LIMIT \(rowsLeft)) AS recent
                JOIN \(events, within: tenant, bookkeeping) AS event ON event.sequence = recent.sequence
                """, read)
            rowsLeft -= recent.count
            found.formUnion(recent.lazy.filter { $0.isChange && $0.createdAt >= start }.map(\.sequence))
            guard rowsLeft > 0, found.count < limit, !isErased else { return nil }
        }
        return try fetch(found.sorted(), of: tenant, in: db)
    }

    // The texts of these statements are made once, because each new stream needs them.

    private static let ofRoute: SQL = """
        SELECT sequence FROM \(routes, within: .boundLater, bookkeeping)
        WHERE route = ? AND sequence > ? AND sequence < ?
        ORDER BY sequence LIMIT ?
        """

    private static let recentOfRoute: SQL = """
        SELECT event.sequence, event.name, event.created_at
        FROM (SELECT sequence FROM \(routes, within: .boundLater, bookkeeping)
            WHERE route = ? AND sequence <= ?
            ORDER BY sequence DESC LIMIT ?) AS recent
        JOIN \(events, within: .boundLater, bookkeeping) AS event ON event.sequence = recent.sequence
        WHERE event.created_at >= ?
        """

    /// The time of the first record that ends at a number or later.
    private static let moment: SQL =
        "SELECT created_at FROM \(allEvents) WHERE sequence >= ? ORDER BY sequence LIMIT 1"

    /// Returns the events after a number, oldest first and without gaps, and whether these are all. Used by replicas
    /// beside other writers.
    ///
    /// - Parameter limit: The number of log rows to read, besides further rows of the same records. If there are more,
    ///   `isAll` is false.
    static func following(
        _ sequence: Int64, limit: Int, in db: DatabaseConnection
    ) throws -> (events: [StreamEvent], isAll: Bool) {
        let rowsMax = limit + Limits.recordSpanMax
        var events: [StreamEvent] = []
        var (count, last): (Int, Int64) = (0, sequence)
        try db.forEach(
            """
            SELECT \(content) FROM \(allEvents)
            WHERE sequence > \(sequence) ORDER BY sequence LIMIT \(rowsMax)
            """
        ) { row in
            count += 1
            last = Int64(try row.integer(0))
            try append(row, in: LogSpan(after: sequence, through: .max), to: &events)
            return true
        }
        // Records that were left out may begin this far before the last one that was read.
        let isAll = count < rowsMax
        let end = isAll ? last : last - Int64(Limits.recordSpanMax)
        return (events.filter { $0.sequence <= end }.sorted { $0.sequence < $1.sequence }, isAll)
    }

    /// Returns one event; nil if it is not retained.
    static func event(_ sequence: Int64, in db: DatabaseConnection) throws -> StreamEvent? {
        var found: [StreamEvent] = []
        try db.forEach(
            """
            SELECT \(content) FROM \(allEvents)
            WHERE sequence >= \(sequence) AND sequence < \(sequence + Int64(Limits.recordSpanMax)) ORDER BY sequence
            """
        ) { row in
            try append(row, in: .only(sequence), to: &found)
            return found.isEmpty
        }
        return found.first
    }

    /// Returns a sequence number before all events of a time and later. The distance to the first of them is at most
    /// the number of events since, or the first step.
    private static func sequence(before moment: Timestamp, through newest: Int64, in db: DatabaseConnection) throws
        -> Int64
    {
        var distance = firstStep
        while distance < newest {
            let looked = newest - distance
            let createdAt = try db.row(Self.moment.binding(looked)) { try $0.moment(0) }
            // A record is found by its last event, so its others are before the next one.
            guard let createdAt, createdAt >= moment else { return looked }
            distance *= 2
        }
        return 0
    }

    /// The distance of the first look back: a shorter one would save less than a statement costs.
    private static let firstStep: Int64 = 1024

    /// Maximum number of route rows that are searched in groups for recent changes. An event has a row for each key
    /// that receives it, and not every event is a change. Without a bound, a reader of many busy keys would occupy a
    /// worker.
    private static let groupedRowsMax = 16_384

    /// A record that has one of the wanted routes.
    private struct FoundRecord {
        let sequence: Int
        let isChange: Bool
        let isErased: Bool
        let createdAt: Timestamp

        /// Reads a row that begins with the number, the name and the time.
        init(_ row: Row) throws {
            (sequence, createdAt) = (try row.integer(0), try row.moment(2))
            let name = try row.text(1)
            (isChange, isErased) = (name == change.description, name == erasedName)
        }
    }

    /// Returns the records of a span that have one of many routes. It reads all records of the span, which is often
    /// shorter than the keys of a wide scope are many. Returns nil if looking for each route costs less.
    ///
    /// - Parameter onlyChanges: Whether to find only row changes and erased events, with their times.
    private static func search(
        _ span: LogSpan, for routes: EventRoutes, of tenant: ID<Tenant>, onlyChanges: Bool, in db: DatabaseConnection
    ) throws -> [FoundRecord]? {
        guard routes.count > routesAloneMax, span.through - span.after < routes.count else { return nil }
        // The time is behind the data of a row, which may fill pages.
        let moment: SQL = onlyChanges ? "created_at" : "CAST(0 AS BIGINT)"
        let condition: SQL = onlyChanges ? "AND name IN (\(change.description), \(erasedName))" : ""
        var found: [FoundRecord] = []
        var compared = 0
        try db.forEach(
            """
            SELECT sequence, name, \(moment), topic, audience FROM \(events, within: tenant, bookkeeping)
            WHERE sequence > \(span.after) AND sequence <= \(span.through) \(condition)
            ORDER BY sequence
            """
        ) { row in
            let audience = try row.text(4).split(separator: " ").map(String.init)
            compared += audience.count
            let isFound = routes.contains(topic: try row.optionalText(3), audience: audience)
            if isFound { found.append(try FoundRecord(row)) }
            // An event may have hundreds of keys.
            return compared <= routes.count
        }
        return compared <= routes.count ? found : nil
    }

    /// Number of routes per group: 10,000 routes take 39 statements.
    private static let groupedRoutes = 256

    /// Returns the routes that are not queried alone, in groups of one size, so that the statement's text is always the
    /// same: the last group is padded with its last route. A statement per route would take seconds for 10,000 routes.
    private static func groups(of routes: [String]) -> [[String]] {
        stride(from: routesAloneMax, to: routes.count, by: groupedRoutes).map { start in
            let group = routes[start..<min(start + groupedRoutes, routes.count)]
            return Array(group) + repeatElement(group[group.endIndex - 1], count: groupedRoutes - group.count)
        }
    }

    /// Number of routes that are queried one by one: as many as most scopes have keys.
    private static let routesAloneMax = 32
    /// Maximum number of binds of one statement, which bounds the number of distinct statement texts.
    private static let fetchedAtOnceMax = 128

    /// Returns the events of a tenant's records that are in a span, oldest first.
    ///
    /// - Parameter records: The numbers of their last events, in order.
    private static func fetch(
        _ records: [Int], of tenant: ID<Tenant>, within span: LogSpan = .all, in db: DatabaseConnection
    ) throws -> [StreamEvent] {
        var events: [StreamEvent] = []
        for start in stride(from: 0, to: records.count, by: fetchedAtOnceMax) {
            let group = Array(records[start..<min(start + fetchedAtOnceMax, records.count)])
            try db.forEach(
                """
                SELECT \(content) FROM \(Self.events, within: tenant, bookkeeping)
                WHERE sequence IN \(values: group) ORDER BY sequence
                """
            ) { row in
                try append(row, in: span, to: &events)
                return true
            }
        }
        return events.sorted { $0.sequence < $1.sequence }
    }

    /// The columns that ``append(_:in:to:)`` reads, in order.
    static let content: SQL =
        "sequence, tenant, name, topic, audience, collapse, data, \(commonMembers), earlier, trace"
    /// The number of these columns.
    static let contentCount = 10

    /// The shared members of an event. Most events share no members, and need no lookup.
    private static let commonMembers: SQL = """
        CASE WHEN events.shared IS NOT NULL THEN (
            SELECT common.members FROM \(shared) AS common
            WHERE common.sequence = events.shared) END
        """

    /// Appends the events of a record that are in a span.
    static func append(_ row: Row, in span: LogSpan, to events: inout [StreamEvent]) throws {
        let tenant: ID<Tenant> = try row.id(1)
        let topic = try row.optionalText(3)
        let audience = try row.text(4).split(separator: " ").map(String.init)
        let (members, traceparent) = (try row.optionalBytes(7), try row.optionalText(9))
        var reader = EarlierEvents(try row.optionalBytes(8))
        while let event = try reader.next() {
            guard span.contains(event.sequence) else { continue }
            events.append(
                StreamEvent(
                    sequence: event.sequence, tenant: tenant, name: event.name, audience: audience, topic: topic,
                    collapse: event.collapse,
                    data: SharedMembers.joined(event.isSharing ? members : nil, event.data), traceparent: traceparent))
        }
        let last = Int64(try row.integer(0))
        guard span.contains(last) else { return }
        events.append(
            StreamEvent(
                sequence: last, tenant: tenant, name: try row.text(2), audience: audience, topic: topic,
                collapse: UInt64(bitPattern: Int64(try row.integer(5))),
                data: SharedMembers.joined(reader.isLastShared ? members : nil, try row.bytes(6)),
                traceparent: traceparent))
    }
}
