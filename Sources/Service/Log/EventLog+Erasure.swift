import Database
import Values

extension EventLog {
    /// The name of an erased event. No stream receives it. A stream that resumes before one resyncs instead, because
    /// its client missed the event, or still shows erased data. A replica that finds one above its head restarts its
    /// streams.
    static let erasedName = "\(internalPrefix)erased"

    /// The name of an event without a content, which only takes a number.
    static let marker: StaticString = "bellhop:marker"

    /// Rows of the log of one step, for which all writes wait: some milliseconds.
    private static let erasedAtOnceMax = 200

    /// Erases a person from some records after a number: the person's own events, and other users' events that name the
    /// person.
    ///
    /// The numbers stay, because the log has no gaps. The routes stay too, because the events' other readers find by
    /// them that they missed something.
    ///
    /// - Parameter last: All replicas that are not far behind have published the records up to here. The others restart
    ///   their streams.
    /// - Returns: The number of the last record that was read; nil if there are no more up to `last`.
    static func erase(
        _ names: PersonNames, tenant: ID<Tenant>, after: Int64, through last: Int64, in db: DatabaseConnection
    ) throws -> Int64? {
        var (records, place): ([ErasableRecord], Int64?) = ([], nil)
        try db.forEach(
            """
            SELECT \(content), events.shared FROM \(allEvents)
            WHERE sequence > \(after) AND sequence <= \(last) ORDER BY sequence LIMIT \(erasedAtOnceMax)
            """
        ) { row in
            place = Int64(try row.integer(0))
            if try row.text(1) == tenant.text { records.append(try ErasableRecord(row)) }
            return true
        }
        for record in records {
            if let members = record.ownMembers, names.occur(in: members) {
                try db.run(
                    "UPDATE \(shared) SET members = '' WHERE sequence = \(record.sequence)")
            }
            var erased = record
            guard try erased.erase(names) else { continue }
            try store(erased, replacing: record, tenant, db)
        }
        return place
    }

    private static func store(
        _ record: ErasableRecord, replacing known: ErasableRecord, _ tenant: ID<Tenant>, _ db: DatabaseConnection
    ) throws {
        let before = Set(routes(topic: known.topic, audience: known.audience))
        let left = Set(routes(topic: record.topic, audience: record.audience))
        for route in before.subtracting(left) {
            try db.run(
                """
                DELETE FROM \(routes, within: tenant, bookkeeping)
                WHERE route = \(route) AND sequence = \(record.sequence)
                """)
        }
        for route in left.subtracting(before) {
            try db.run(
                """
                INSERT INTO \(routes, within: tenant, bookkeeping) (tenant, route, sequence)
                VALUES (\(tenant), \(route), \(record.sequence))
                """)
        }
        let earlier = record.earlier.isEmpty ? nil : SQLValue.utf8(record.earlier)
        try db.run(
            """
            UPDATE \(events, within: tenant, bookkeeping) SET name = \(record.name), topic = \(record.topic),
                audience = \(record.audience.joined(separator: " ")), collapse = \(record.collapse),
                data = \(SQLValue.utf8(record.data)), earlier = \(earlier)
            WHERE sequence = \(record.sequence)
            """)
    }
}

/// A record of the log from which a person is erased.
private struct ErasableRecord {
    let sequence: Int64
    private(set) var name: String
    private(set) var topic: String?
    private(set) var audience: [String]
    private(set) var collapse: Int
    private(set) var data: [UInt8]
    private(set) var earlier: [UInt8]
    private let members: [UInt8]?
    private let shared: Int64?
    /// The key of every caller of a tenant.
    private static let everyone = "everyone"

    /// Reads a row with the columns ``EventLog/content`` and `shared`.
    init(_ row: Row) throws {
        sequence = Int64(try row.integer(0))
        name = try row.text(2)
        topic = try row.optionalText(3)
        audience = try row.text(4).split(separator: " ").map(String.init)
        collapse = try row.integer(5)
        data = try row.bytes(6)
        members = try row.optionalBytes(7)
        earlier = try row.optionalBytes(8) ?? []
        shared = try row.optionalInteger(EventLog.contentCount).map(Int64.init)
    }

    /// The shared members that are stored with this record.
    var ownMembers: [UInt8]? { shared == sequence ? members : nil }

    /// Erases the events that are for the person, also if they are for others too, and the events that name the person.
    ///
    /// - Returns: Whether anything has changed.
    mutating func erase(_ names: PersonNames) throws -> Bool {
        let named = audience.filter { names.occur(inKey: $0) }
        var others = audience.filter { !names.occur(inKey: $0) }
        // A key such as `follower:ada` stands for readers that cannot be found without the name. So all readers of the
        // tenant find the erased event.
        if !named.allSatisfy(names.areOnly(key:)), !others.contains(Self.everyone) { others.append(Self.everyone) }
        let isNamedByTopic = topic.map { names.occur(inKey: $0) } ?? false
        let isOwn = !named.isEmpty || isNamedByTopic
        func erases(_ isSharing: Bool, _ data: ArraySlice<UInt8>) -> Bool {
            isOwn || names.occur(in: SharedMembers.joined(isSharing ? members : nil, data))
        }
        var reader = EarlierEvents(earlier.isEmpty ? nil : earlier)
        var (count, kept): (Int, [EarlierEvents.Event]) = (0, [])
        while let event = try reader.next() {
            let isErased = event.name != EventLog.erasedName && erases(event.isSharing, event.data)
            count += isErased ? 1 : 0
            kept.append(isErased ? event.erased : event)
        }
        var isLastShared = reader.isLastShared && members != nil
        if name != EventLog.erasedName, erases(isLastShared, data[...]) {
            (name, collapse, data, isLastShared) = (EventLog.erasedName, 0, EncodedJSON.emptyObject.bytes, false)
            count += 1
        }
        if isNamedByTopic { topic = nil }
        count += named.count + (isNamedByTopic ? 1 : 0)
        audience = others
        guard count > 0 else { return false }
        // A single event with shared members uses all of them, unless the column says otherwise.
        let needsColumn = !kept.isEmpty || (shared != nil && !isLastShared)
        earlier = needsColumn ? EarlierEvents.column(kept, isLastShared: isLastShared) : []
        return true
    }
}
