import Values

/// A Debezium change event, bare or inside `{"schema", "payload"}`.
///
/// | op | kind |
/// |---|---|
/// | `c`, `u`, `d`, `t` | insert, update, delete, truncate |
/// | `r` | snapshot |
/// | `m` and events without a row (heartbeats, schema changes, transactions) | rejected |
struct DebeziumEvent {
    /// The text that a connector writes for a column whose value it did not receive (`unavailable.value.placeholder`).
    static let unavailableValue = "__debezium_unavailable_value"
    private static let unavailableBytes = Array(unavailableValue.utf8)
    private static let unavailableBase64 = RFC4648.encode(unavailableBytes)

    /// The members that locate the event in the source's log, for each connector: PostgreSQL, MySQL and MariaDB, SQL
    /// Server and Db2, Oracle.
    private static let positionNames = [
        "lsn", "txId", "file", "pos", "row", "gtid", "commit_lsn", "change_lsn", "event_serial_no", "scn", "rs_id",
        "ssn",
    ]
    private static let kinds: [String: TableChange.Kind] = [
        "c": .insert, "u": .update, "d": .delete, "r": .snapshot, "t": .truncate,
    ]

    let event: ChangeMembers
    let source: ChangeMembers
    /// The Connect schema of the event, if it was sent.
    let schema: ConnectSchema?

    /// Reads an event; nil for a tombstone.
    static func read(_ members: ChangeMembers) throws(ChangeFault) -> TableChange? {
        var event = members
        var schema: ConnectSchema?
        if members.members["op"] == nil, let payload = members.members["payload"] {
            guard payload != .null else { return nil }
            event = try members.required("payload", members.object)
            schema = try ConnectSchema(of: members)
        }
        let source = try event.required("source", event.object)
        return try DebeziumEvent(event: event, source: source, schema: schema).change()
    }

    func change() throws(ChangeFault) -> TableChange {
        let op = try event.required("op", event.string)
        guard op != "m" else { throw event.fault("op", "must not be m: a logical decoding message has no row") }
        guard let kind = DebeziumEvent.kinds[op] else { throw event.fault("op", "must be c, u, d, r or t") }
        let table = try source.required("table", source.databaseName)
        // MySQL and related databases have databases instead of schemas.
        var named = try source.databaseName("schema")
        if named == nil { named = try source.databaseName("db") }
        guard let schemaName = named else {
            throw source.fault("schema", "is missing, and db is missing too")
        }
        let before = try row("before")
        let after = try row("after")
        try SupabaseChange.check(event, kind, record: after, oldRecord: before, names: ("after", "before"))
        var change = TableChange(
            format: .debezium, schema: schemaName, table: table, kind: kind, record: after, oldRecord: before,
            commitTimestamp: try commitTimestamp(),
            deduplicationID: deduplicationID(schema: schemaName, table: table, op: op),
            recordPointer: "\(event.pointer)/after", oldRecordPointer: "\(event.pointer)/before",
            tablePointer: "\(source.pointer)/table")
        DebeziumEvent.removeUnavailable(&change)
        return change
    }

    private func row(_ name: String) throws(ChangeFault) -> [String: JSONValue]? {
        guard var row = try event.row(name) else { return nil }
        guard let fields = schema?.field(name)?.translatedFields else { return row }
        var elementsLeft = ChangeLimits.translatedElementsMax
        for (column, type) in fields {
            guard let value = row[column], !DebeziumEvent.isUnavailable(value) else { continue }
            let place = "\(event.pointer)/\(name)/\(ChangeMembers.step(column))"
            row[column] = try type.json(value, at: place, &elementsLeft)
        }
        return row
    }

    /// Returns the time of the commit at the source: `source.ts_us`, else `source.ts_ms`. Connectors write 0 if they do
    /// not know it. The event's own `ts_ms` is the time at which Debezium processed it.
    private func commitTimestamp() throws(ChangeFault) -> Timestamp? {
        for (name, microseconds) in [("ts_us", Int64(1)), ("ts_ms", 1_000)] {
            let number: Int64?
            switch source.value(name) {
            case nil: continue
            case .integer(let value): number = value
            case .string(let text): number = Int64(text)
            default: number = nil
            }
            guard let number, Timestamp.writableSeconds.contains(number / (1_000_000 / microseconds)) else {
                throw source.fault(name, "must be a whole number for a time before the year 10000")
            }
            return number == 0 ? nil : Timestamp(microseconds: number * microseconds)
        }
        return nil
    }

    /// Returns `debezium:` and the 128-bit FNV-1a hash, as 32 hexadecimal digits, of the JSON
    /// `[connector, name, schema, table, op, {position}, before, after]` with sorted keys and without spaces. The
    /// position consists of the members `lsn`, `txId`, `file`, `pos`, … of `source`. Nil without any of them.
    ///
    /// The position alone does not distinguish rows: all rows of a snapshot have one `lsn`, and so do rows that one
    /// COPY wrote together. The content alone does not either, because rows may go A→B→A. Both together do. A connector
    /// that sends an event again after a restart sends both unchanged.
    private func deduplicationID(schema: String, table: String, op: String) -> String? {
        var position: [String: JSONValue] = [:]
        for name in DebeziumEvent.positionNames {
            // CloudEvents carry the same attributes as texts.
            switch source.value(name) {
            case .integer(let number): position[name] = .string(String(number))
            case .some(let value): position[name] = value
            case nil: break
            }
        }
        guard !position.isEmpty else { return nil }
        var writer = JSONWriter(reserving: 512)
        writer.array { writer in
            writer.value(source.value("connector"))
            writer.value(source.value("name"))
            writer.value(schema)
            writer.value(table)
            writer.value(op)
            writer.value(JSONValue.object(position))
            writer.value(event.value("before"))
            writer.value(event.value("after"))
        }
        return "debezium:\(FNV1a128.hexadecimal(of: writer.bytes))"
    }

    // MARK: Unavailable values

    /// Removes the placeholders from both rows. If the old row has the value, it is copied to the new row. Such a
    /// column is stored out of line and did not change; otherwise it would have been sent.
    private static func removeUnavailable(_ change: inout TableChange) {
        for (column, value) in change.oldRecord ?? [:] where isUnavailable(value) { change.oldRecord?[column] = nil }
        for (column, value) in change.record ?? [:] where isUnavailable(value) {
            if let old = change.oldRecord?[column] {
                change.record?[column] = old
            } else {
                change.record?[column] = nil
                if change.kind == .update {
                    change.unchangedColumns.insert(column)
                } else {
                    change.withheldColumns.insert(column)
                }
            }
        }
    }

    /// Recognizes the placeholder in the forms of the columns' types: text, binary (base64), arrays of texts, arrays of
    /// numbers (its bytes), hstore as an object.
    private static func isUnavailable(_ value: JSONValue) -> Bool {
        switch value {
        case .string(let text): return text == unavailableValue || text == unavailableBase64
        case .array(let values):
            if values.count == 1, case .string(unavailableValue) = values[0] { return true }
            guard values.count == unavailableBytes.count else { return false }
            return zip(values, unavailableBytes).allSatisfy { $0 == .integer(Int64($1)) }
        case .object(let members): return members.count == 1 && members[unavailableValue] != nil
        default: return false
        }
    }
}

extension Timestamp {
    /// The seconds that RFC 3339 can express: from the year 1 to the year 9999.
    static let writableSeconds: Range<Int64> = -62_135_596_800..<253_402_300_800
}

/// The 128-bit FNV-1a hash (Fowler, Noll, Vo). It is the same in every process and version. Two different contents at
/// one position of a log do not collide by accident.
enum FNV1a128 {
    static func hexadecimal(of bytes: some Sequence<UInt8>) -> String {
        var hash: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
        for byte in bytes {
            hash ^= UInt128(byte)
            // The prime is 2^88 + 0x13B.
            hash = (hash << 88) &+ (hash &* 0x13B)
        }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 32 - digits.utf8.count) + digits
    }
}
