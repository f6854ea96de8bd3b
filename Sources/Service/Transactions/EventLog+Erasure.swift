import Database
import Values

extension EventLog {
    /// The name of an erased event. No stream receives it; a stream that resumes before one resyncs instead, because its
    /// client may have lost the trace of the event's content.
    static let erasedName = "\(internalPrefix)erased"

    /// The name of an event without a content, which only takes a number.
    static let marker: StaticString = "bellhop:marker"

    /// Rows of the log of one step, for which all writes wait: some milliseconds.
    private static let erasedAtOnceMax = 200

    /// Erases a person from some records after a number: the person's own events, and other users' events that name the
    /// person.
    ///
    /// The numbers stay, because the log has no gaps. Every replica must have published the records, because a replica
    /// compares the log with what it has published.
    ///
    /// - Returns: The number of the last record that was read; nil if there are no more up to `last`.
    static func erase(
        _ names: PersonNames, tenant: ID<Tenant>, after: Int64, through last: Int64, in db: DatabaseConnection
    ) throws -> Int64? {
        var (records, place): ([ErasableRecord], Int64?) = ([], nil)
        try db.forEach(
            """
            SELECT \(content), events.shared FROM \(events, unscoped: bookkeeping)
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
                    "UPDATE \(shared, unscoped: bookkeeping) SET members = '' WHERE sequence = \(record.sequence)")
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
        let isHidden = record.audience.isEmpty && record.topic == nil
        let left = isHidden ? [] : routes(topic: record.topic, audience: record.audience)
        for route in Set(routes(topic: known.topic, audience: known.audience)).subtracting(left) {
            try db.run(
                """
                DELETE FROM \(routes, unscoped: bookkeeping)
                WHERE tenant = \(tenant) AND route = \(route) AND sequence = \(record.sequence)
                """)
        }
        let earlier = record.earlier.isEmpty ? nil : SQLValue.utf8(record.earlier)
        try db.run(
            """
            UPDATE \(events, unscoped: bookkeeping) SET name = \(record.name), topic = \(record.topic),
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
        let others = audience.filter { !names.occur(inKey: $0) }
        let isOwn = others.count < audience.count
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
        if let known = topic, isOwn || names.occur(inKey: known) {
            topic = nil
            count += 1
        }
        count += audience.count - others.count
        audience = others
        guard count > 0 else { return false }
        // A single event with shared members uses all of them, unless the column says otherwise.
        let needsColumn = !kept.isEmpty || (shared != nil && !isLastShared)
        earlier = needsColumn ? EarlierEvents.column(kept, isLastShared: isLastShared) : []
        return true
    }
}
