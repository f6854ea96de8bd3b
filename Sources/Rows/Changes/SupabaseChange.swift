import Values

/// The common part of the Supabase formats: a type of change, and the rows before and after it.
enum SupabaseChange {
    /// Reads `{<kindName>, schema, table, record, old_record}`, and checks that the rows match the kind: an INSERT has
    /// no old row, a DELETE no new row. A contradictory change could be understood in two ways.
    static func read(
        _ members: ChangeMembers, kindAt kindName: String, format: ChangeFormat
    ) throws(ChangeFault) -> TableChange {
        let kindText = try members.required(kindName, members.string)
        let table = try members.required("table", members.databaseName)
        let schema = try members.required("schema", members.databaseName)
        let record = try members.row("record")
        let oldRecord = try members.row("old_record")
        guard let kind = TableChange.Kind(rawValue: kindText), [.insert, .update, .delete].contains(kind) else {
            throw members.fault(kindName, "must be INSERT, UPDATE or DELETE")
        }
        try check(members, kind, record: record, oldRecord: oldRecord, names: ("record", "old_record"))
        return TableChange(
            format: format, schema: schema, table: table, kind: kind, record: record, oldRecord: oldRecord,
            recordPointer: "\(members.pointer)/record", oldRecordPointer: "\(members.pointer)/old_record",
            tablePointer: "\(members.pointer)/table")
    }

    static func check(
        _ members: ChangeMembers, _ kind: TableChange.Kind, record: [String: JSONValue]?,
        oldRecord: [String: JSONValue]?, names: (record: String, old: String)
    ) throws(ChangeFault) {
        switch kind {
        case .insert, .snapshot, .update:
            guard record != nil else {
                throw members.fault(names.record, "is missing: \(kind.rawValue) must include the new row")
            }
            guard oldRecord == nil || kind == .update else {
                throw members.fault(names.old, "must be null: \(kind.rawValue) has no old row")
            }
        case .delete:
            guard oldRecord != nil else {
                throw members.fault(names.old, "is missing: DELETE must include the old row")
            }
            guard record == nil else { throw members.fault(names.record, "must be null: DELETE has no new row") }
        case .truncate:
            guard record == nil else { throw members.fault(names.record, "must be null: TRUNCATE has no row") }
            guard oldRecord == nil else { throw members.fault(names.old, "must be null: TRUNCATE has no row") }
        }
    }
}

/// A message of `realtime.broadcast_changes()` as a client's handler receives it,
/// `{"event", "payload": {"id", "operation", …}, "type": "broadcast", "meta"}`, or the whole frame around it,
/// `{"topic", "event": "broadcast", "payload": {…}, "ref"}`.
enum BroadcastChange {
    static func read(_ members: ChangeMembers) throws(ChangeFault) -> TableChange {
        var message = members
        var payload = try members.required("payload", members.object)
        if payload.members["operation"] == nil {
            message = payload
            payload = try payload.required("payload", payload.object)
        }
        var change = try SupabaseChange.read(payload, kindAt: "operation", format: .broadcastChanges)
        var id = try payload.string("id")
        if id == nil { id = try message.object("meta")?.string("id") }
        if let id {
            guard !id.isEmpty, id.utf8.count + 10 <= ChangeLimits.deduplicationIDBytesMax else {
                throw payload.fault("id", "must have 1 to \(ChangeLimits.deduplicationIDBytesMax - 10) bytes")
            }
            guard id.hasNoControls else { throw payload.fault("id", "must not contain control characters") }
            change.deduplicationID = "broadcast:\(id)"
        }
        return change
    }
}

/// A Supabase Realtime `postgres_changes` frame: `{"topic", "event", "ref", "payload": {"ids", "data": {…}}}`, or in
/// version 2.0.0 of its protocol the array `[join_ref, ref, topic, event, payload]`.
enum RealtimeFrame {
    private static let names = ["join_ref", "ref", "topic", "event", "payload"]

    /// Whether these are the elements of one frame of version 2.0.0, as bytes. An array of changes contains no texts.
    static func isSerialized(_ elements: [ArraySlice<UInt8>]) -> Bool {
        func begins(_ index: Int, with byte: UInt8) -> Bool { elements[index].first == byte }
        return elements.count == names.count && begins(2, with: UInt8(ascii: "\""))
            && begins(3, with: UInt8(ascii: "\"")) && begins(4, with: UInt8(ascii: "{"))
    }

    /// Returns the frame in the form of version 1.0.0; nil for another array.
    static func members(of elements: [JSONValue]) -> [String: JSONValue]? {
        guard elements.count == names.count, case .string = elements[2], case .string = elements[3],
            case .object = elements[4]
        else { return nil }
        return Dictionary(uniqueKeysWithValues: zip(names, elements))
    }

    /// Maps a pointer to a member to a pointer into the array.
    static func place(of pointer: String) -> String {
        for (index, name) in names.enumerated() where pointer == "/\(name)" || pointer.hasPrefix("/\(name)/") {
            return "/\(index)" + pointer.dropFirst(name.utf8.count + 1)
        }
        return pointer
    }

    /// The error that Realtime reports if it truncated a row of more than a mebibyte to the columns of at most 64
    /// bytes.
    private static let truncatedRowStatus = "413"

    static func read(_ members: ChangeMembers) throws(ChangeFault) -> TableChange {
        let payload = try members.required("payload", members.object)
        let data = try payload.required("data", payload.object)
        let errors = try errors(data)
        let isCut = errors.contains { $0.contains(truncatedRowStatus) }
        if let error = errors.first(where: { !$0.contains(truncatedRowStatus) }) {
            throw data.fault("errors", "reports that Realtime withheld the row: \(error.prefix(100))")
        }
        if isCut, try data.row("record") == nil, try data.row("old_record") == nil {
            throw data.fault("errors", "reports that Realtime withheld all columns because the row is too large")
        }
        var change = try SupabaseChange.read(data, kindAt: "type", format: .supabaseRealtime)
        change.commitTimestamp = try data.timestamp("commit_timestamp")
        guard change.kind != .delete, let record = change.record else { return change }
        for column in try columns(data) where record[column] == nil {
            if isCut {
                change.withheldColumns.insert(column)
            } else if let old = change.oldRecord?[column] {
                change.record?[column] = old
            } else {
                change.unchangedColumns.insert(column)
            }
        }
        return change
    }

    /// Reads null, a string, or an array of strings; all three occur.
    private static func errors(_ data: ChangeMembers) throws(ChangeFault) -> [String] {
        switch data.value("errors") {
        case nil: return []
        case .string(let error): return [error]
        case .array(let values):
            return values.map { value in
                if case .string(let error) = value { error } else { "an error without text" }
            }
        case .some(let value): throw data.fault("errors", "must be null, a string or an array, not \(value.typeName)")
        }
    }

    /// Returns the names in `columns`, which lists all columns of the table, including columns that the row lacks.
    private static func columns(_ data: ChangeMembers) throws(ChangeFault) -> [String] {
        guard let value = data.value("columns") else { return [] }
        guard case .array(let values) = value else {
            throw data.fault("columns", "must be an array, not \(value.typeName)")
        }
        guard values.count <= ChangeLimits.columnsMax else {
            throw data.fault("columns", "must have at most \(ChangeLimits.columnsMax) elements")
        }
        var names: [String] = []
        for (index, value) in values.enumerated() {
            guard case .object(let column) = value, case .string(let name) = column["name"],
                name.utf8.count <= ChangeLimits.nameBytesMax
            else { throw ChangeFault("\(data.pointer)/columns/\(index)", "must be an object with a name") }
            names.append(name)
        }
        return names
    }
}
