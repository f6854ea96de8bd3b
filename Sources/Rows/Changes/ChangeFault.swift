import Values

/// Why an item, or a value of it, is not usable, and where.
public struct ChangeFault: Error, Sendable, Hashable {
    /// A JSON pointer (RFC 6901) that begins at the item: `/payload/data/record`, empty for the item as a whole.
    public let pointer: String
    /// A predicate whose subject is what the pointer names: `must be an object, not a string`.
    public let reason: String

    public init(_ pointer: String, _ reason: String) {
        self.pointer = pointer
        self.reason = reason
    }
}

/// One item of a delivery that was not accepted, as `POST /v1/changes` answers it.
public struct ChangeRejection: Sendable, Hashable, JSONObjectWritable {
    /// The item's place in the delivery, from 0; 0 for a delivery that is no array.
    public let index: Int
    /// A JSON pointer that begins at the delivery's body: `/12/payload/data/record` in an array.
    public let pointer: String
    public let reason: String

    /// `{"index": 12, "pointer": "/12/record", "reason": "must be an object, not a string"}`
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("index", index)
        writer.member("pointer", pointer)
        writer.member("reason", reason)
    }
}

/// Members of one JSON object, read with the place of every mistake.
///
/// Unknown members are allowed, unlike in ``Fields``: these are other projects' formats, which grow.
struct ChangeMembers {
    let members: [String: JSONValue]
    let pointer: String

    /// One step of a JSON pointer, escaped as RFC 6901 asks.
    static func step(_ name: String) -> String {
        guard name.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }) else { return name }
        var escaped = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "~": escaped += "~0"
            case "/": escaped += "~1"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    func fault(_ name: String, _ reason: String) -> ChangeFault {
        ChangeFault("\(pointer)/\(ChangeMembers.step(name))", reason)
    }

    /// Nil if the member is absent **or null**.
    func value(_ name: String) -> JSONValue? {
        guard let value = members[name], value != .null else { return nil }
        return value
    }

    func object(_ name: String) throws(ChangeFault) -> ChangeMembers? {
        guard let value = value(name) else { return nil }
        guard case .object(let nested) = value else { throw fault(name, "must be an object, not \(value.typeName)") }
        return ChangeMembers(members: nested, pointer: "\(pointer)/\(ChangeMembers.step(name))")
    }

    /// The value that one of the functions below reads, which must be there.
    func required<Value>(
        _ name: String, _ read: (String) throws(ChangeFault) -> Value?
    ) throws(ChangeFault) -> Value {
        guard let value = try read(name) else { throw fault(name, "is missing") }
        return value
    }

    func string(_ name: String) throws(ChangeFault) -> String? {
        guard let value = value(name) else { return nil }
        guard case .string(let text) = value else { throw fault(name, "must be a string, not \(value.typeName)") }
        return text
    }

    /// The name of a schema or table.
    func databaseName(_ name: String) throws(ChangeFault) -> String? {
        guard let text = try string(name) else { return nil }
        guard !text.isEmpty else { throw fault(name, "must not be empty") }
        guard text.utf8.count <= ChangeLimits.nameBytesMax else {
            throw fault(name, "must have at most \(ChangeLimits.nameBytesMax) bytes, and has \(text.utf8.count)")
        }
        guard text.hasNoControls else { throw fault(name, "must not contain control characters") }
        return text
    }

    /// An id of a person or client, with the bounds that ids have everywhere.
    func identifier(_ name: String) throws(ChangeFault) -> String? {
        guard let text = try string(name) else { return nil }
        guard Fields.isIdentifier(text) else {
            throw fault(name, "must be 1 to \(Fields.idBytesMax) bytes without control characters")
        }
        return text
    }

    func timestamp(_ name: String) throws(ChangeFault) -> Timestamp? {
        guard let text = try string(name) else { return nil }
        guard let time = Timestamp(rfc3339: text) else {
            throw fault(name, "must be a time as RFC 3339 writes it, such as 2026-01-10T09:30:00Z")
        }
        return time
    }

    /// A row: the columns by name. Nil if it is absent, null, has no columns, or has nulls alone, which are the ways in
    /// which senders say that there is no row. A row with a primary key is none of these.
    func row(_ name: String) throws(ChangeFault) -> [String: JSONValue]? {
        guard let value = members[name], value != .null else { return nil }
        guard case .object(let columns) = value else { throw fault(name, "must be an object, not \(value.typeName)") }
        guard columns.contains(where: { $0.value != .null }) else { return nil }
        guard columns.count <= ChangeLimits.columnsMax else {
            throw fault(name, "must have at most \(ChangeLimits.columnsMax) columns, and has \(columns.count)")
        }
        for column in columns.keys where column.utf8.count > ChangeLimits.nameBytesMax {
            throw fault(name, "has a column whose name is longer than \(ChangeLimits.nameBytesMax) bytes")
        }
        return columns
    }
}
