import Values

/// The reason why an item, or a value of it, is unusable, with its place.
public struct ChangeFault: Error, Sendable, Hashable {
    /// A JSON pointer (RFC 6901) that begins at the item: `/payload/data/record`; empty for the whole item.
    public let pointer: String
    /// A predicate about the place of the pointer: `must be an object, not a string`.
    public let reason: String

    public init(_ pointer: String, _ reason: String) {
        self.pointer = pointer
        self.reason = reason
    }
}

/// A rejected item of a delivery, as `POST /v1/changes` returns it.
public struct ChangeRejection: Sendable, Hashable, JSONObjectWritable {
    /// The item's index in the delivery, from 0; 0 for a delivery that is not an array.
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

/// A reader of the members of a JSON object that records the place of every mistake.
///
/// Unlike in ``Fields``, unknown members are allowed, because these formats belong to other projects and grow.
struct ChangeMembers {
    let members: [String: JSONValue]
    let pointer: String

    /// Returns one step of a JSON pointer, escaped by RFC 6901.
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

    /// Returns a member; nil if it is absent **or null**.
    func value(_ name: String) -> JSONValue? {
        guard let value = members[name], value != .null else { return nil }
        return value
    }

    func object(_ name: String) throws(ChangeFault) -> ChangeMembers? {
        guard let value = value(name) else { return nil }
        guard case .object(let nested) = value else { throw fault(name, "must be an object, not \(value.typeName)") }
        return ChangeMembers(members: nested, pointer: "\(pointer)/\(ChangeMembers.step(name))")
    }

    /// Returns the value that one of the functions below reads; throws if it is missing.
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

    /// Reads the name of a schema or table.
    func databaseName(_ name: String) throws(ChangeFault) -> String? {
        guard let text = try string(name) else { return nil }
        guard !text.isEmpty else { throw fault(name, "must not be empty") }
        guard text.utf8.count <= ChangeLimits.nameBytesMax else {
            throw fault(name, "must have at most \(ChangeLimits.nameBytesMax) bytes, but has \(text.utf8.count)")
        }
        guard text.hasNoControls else { throw fault(name, "must not contain control characters") }
        return text
    }

    /// Reads the id of a user or client, with the same limits as all ids.
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
            throw fault(name, "must be an RFC 3339 time, such as 2026-01-10T09:30:00Z")
        }
        return time
    }

    /// Reads a row: its columns by name. Returns nil if it is absent, null, without columns, or all null. Senders
    /// express the absence of a row in these ways, and a row with a primary key never matches them.
    func row(_ name: String) throws(ChangeFault) -> [String: JSONValue]? {
        guard let value = members[name], value != .null else { return nil }
        guard case .object(let columns) = value else { throw fault(name, "must be an object, not \(value.typeName)") }
        guard columns.contains(where: { $0.value != .null }) else { return nil }
        guard columns.count <= ChangeLimits.columnsMax else {
            throw fault(name, "must have at most \(ChangeLimits.columnsMax) columns, but has \(columns.count)")
        }
        for column in columns.keys where column.utf8.count > ChangeLimits.nameBytesMax {
            throw fault(name, "has a column name longer than \(ChangeLimits.nameBytesMax) bytes")
        }
        return columns
    }
}
