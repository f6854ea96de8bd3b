/// A reader of a JSON object's members into domain types. It collects **every** mistake with its JSON pointer, so that
/// the client learns all of them at once.
///
/// After a mistake, each getter returns a usable placeholder. ``finish()`` throws if there was any mistake, so nothing
/// is ever built from a placeholder. Members that were not read are mistakes too: a misspelt option must not be ignored
/// silently.
public struct Fields: Sendable {
    private let members: [String: JSONValue]
    private let prefix: String
    /// The names that were read. For a handful, a linear search is faster than hashing.
    private var read: [String] = []
    private var mistakes: [Failure.Field] = []

    /// Reads a body that must be a JSON object.
    public init(_ body: [UInt8]) throws(Failure) { try self.init(JSONValue(parsing: body)) }

    public init(_ body: JSONValue) throws(Failure) {
        guard case .object(let members) = body else {
            throw Failure(.malformed, "request.malformed_json", "The body must be a JSON object.")
        }
        self.init(members)
    }

    public init(_ members: [String: JSONValue], at prefix: String = "") {
        self.members = members
        self.prefix = prefix
    }

    /// Adds a mistake at a member, as the getters do; without a name, at the object itself (RFC 6901 §5).
    public mutating func reject(_ name: String, _ detail: String) {
        mistakes.append(Failure.Field(name.isEmpty ? prefix : "\(prefix)/\(name)", detail))
    }

    /// Throws all mistakes, including members that were not read.
    public mutating func finish() throws(Failure) {
        rejectUnknown()
        guard mistakes.isEmpty else { throw Failure.invalid(mistakes) }
    }

    private mutating func rejectUnknown() {
        guard members.keys.contains(where: { !read.contains($0) }) else { return }
        for name in names where !read.contains(name) { reject(name, "is not a known field") }
    }

    /// The names of all members, for checks such as "exactly one of".
    public var names: [String] { members.keys.sorted() }

    public func has(_ name: String) -> Bool { members[name] != nil }

    /// Returns the raw member; nil if absent **or null**.
    public mutating func value(_ name: String) -> JSONValue? {
        read.append(name)
        guard let value = members[name] else { return nil }
        if case .null = value { return nil }
        return value
    }

    public mutating func optionalString(_ name: String, bytesMax: Int = 256, empty: Bool = false) -> String? {
        guard let value = value(name) else { return nil }
        guard case .string(let text) = value else {
            reject(name, "must be a string, not \(value.typeName)")
            return nil
        }
        guard empty || !text.isEmpty else {
            reject(name, "must not be empty")
            return nil
        }
        guard text.utf8.count <= bytesMax else {
            reject(name, "must have at most \(bytesMax) bytes, but has \(text.utf8.count)")
            return nil
        }
        guard !text.utf8.contains(0) else {
            reject(name, "must not contain NUL")
            return nil
        }
        return text
    }

    /// Reads a text without control characters.
    public mutating func optionalLine(_ name: String, bytesMax: Int) -> String? {
        guard let text = optionalString(name, bytesMax: bytesMax) else { return nil }
        guard text.hasNoControls else {
            reject(name, "must be a single line without control characters")
            return nil
        }
        return text
    }

    public mutating func line(_ name: String, bytesMax: Int) -> String {
        required(name) { $0.optionalLine(name, bytesMax: bytesMax) } ?? ""
    }

    public mutating func string(_ name: String, bytesMax: Int = 256) -> String {
        required(name) { $0.optionalString(name, bytesMax: bytesMax) } ?? ""
    }

    /// Reads an identifier that was made elsewhere: 1 to 128 bytes without control characters.
    public mutating func id<Entity>(_ name: String, _: Entity.Type = Entity.self) -> ID<Entity> {
        required(name) { $0.optionalID(name) } ?? ID("")
    }

    public mutating func optionalID<Entity>(_ name: String, _: Entity.Type = Entity.self) -> ID<Entity>? {
        guard let text = optionalString(name, bytesMax: Fields.idBytesMax) else { return nil }
        guard Fields.isIdentifier(text) else {
            reject(name, "must not contain control characters")
            return nil
        }
        return ID(text)
    }

    /// Reads an identifier that the service made. Only these sort by time. "Up to" any other id would match all or
    /// nothing.
    public mutating func timedID<Entity>(_ name: String, _: Entity.Type = Entity.self) -> ID<Entity> {
        let id: ID<Entity> = id(name)
        if !id.text.isEmpty, !IDSequence.isTimed(id.text) { reject(name, "must be an id created by the service") }
        return id
    }

    /// Long enough for every common form of ids (UUID, ULID, URN), and short enough for keys and event audiences.
    public static let idBytesMax = 128

    public static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= idBytesMax && text.hasNoControls
    }

    public mutating func optionalInt(_ name: String, in range: ClosedRange<Int>) -> Int? {
        guard let value = value(name) else { return nil }
        let integer: Int64? =
            switch value {
            case .integer(let integer): integer
            case .number(let number) where number == number.rounded() && abs(number) < 9e15: Int64(number)
            default: nil
            }
        guard let integer else {
            reject(name, "must be a whole number")
            return nil
        }
        guard let small = Int(exactly: integer), range.contains(small) else {
            reject(name, "must lie between \(range.lowerBound) and \(range.upperBound)")
            return nil
        }
        return small
    }

    public mutating func int(_ name: String, in range: ClosedRange<Int>) -> Int {
        required(name) { $0.optionalInt(name, in: range) } ?? range.lowerBound
    }

    public mutating func optionalBool(_ name: String) -> Bool? {
        guard let value = value(name) else { return nil }
        guard case .bool(let flag) = value else {
            reject(name, "must be true or false")
            return nil
        }
        return flag
    }

    public mutating func bool(_ name: String) -> Bool {
        required(name) { $0.optionalBool(name) } ?? false
    }

    public mutating func optionalTimestamp(_ name: String) -> Timestamp? {
        guard let text = optionalString(name, bytesMax: 64) else { return nil }
        guard let time = Timestamp(rfc3339: text) else {
            reject(name, "must be an RFC 3339 time, such as 2026-01-10T09:30:00Z")
            return nil
        }
        return time
    }

    public mutating func timestamp(_ name: String) -> Timestamp {
        required(name) { $0.optionalTimestamp(name) } ?? Timestamp(microseconds: 0)
    }

    /// Reads one of a closed set of words.
    public mutating func optionalWord<Word: RawRepresentable & CaseIterable>(
        _ name: String, _: Word.Type = Word.self
    ) -> Word? where Word.RawValue == String {
        guard let text = optionalString(name, bytesMax: 64) else { return nil }
        guard let word = Word(rawValue: text) else {
            reject(name, "must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
            return nil
        }
        return word
    }

    public mutating func word<Word: RawRepresentable & CaseIterable>(
        _ name: String, _: Word.Type = Word.self
    ) -> Word where Word.RawValue == String {
        required(name) { $0.optionalWord(name) } ?? Word.allCases[Word.allCases.startIndex]
    }

    /// Reads a nested object with the same rules; its mistakes join this reader's.
    public mutating func nested<Result>(
        _ members: [String: JSONValue], at place: String, _ read: (inout Fields) -> Result
    ) -> Result {
        var nested = Fields(members, at: "\(prefix)/\(place)")
        let result = read(&nested)
        nested.rejectUnknown()
        mistakes += nested.mistakes
        return result
    }

    public mutating func object<Result>(_ name: String, _ read: (inout Fields) -> Result) -> Result? {
        openObject(name).map { nested($0, at: name, read) }
    }

    /// Returns the members of a nested object in which unknown members are allowed.
    public mutating func openObject(_ name: String) -> [String: JSONValue]? {
        guard let value = value(name) else { return nil }
        guard case .object(let members) = value else {
            reject(name, "must be an object, not \(value.typeName)")
            return nil
        }
        return members
    }

    public mutating func strings(_ name: String, countMax: Int, bytesMax: Int = 256) -> [String]? {
        guard let values = values(name, countMax: countMax) else { return nil }
        var texts: [String] = []
        for (index, value) in values.enumerated() {
            guard case .string(let text) = value, !text.isEmpty, text.utf8.count <= bytesMax else {
                reject("\(name)/\(index)", "must be a string of 1 to \(bytesMax) bytes")
                continue
            }
            texts.append(text)
        }
        return texts
    }

    /// Returns an array of arbitrary values, which the caller reads.
    public mutating func values(_ name: String, countMax: Int) -> [JSONValue]? {
        guard let value = value(name) else { return nil }
        guard case .array(let values) = value else {
            reject(name, "must be an array, not \(value.typeName)")
            return nil
        }
        guard values.count <= countMax else {
            reject(name, "must have at most \(countMax) elements")
            return nil
        }
        return values
    }

    private mutating func required<Value>(_ name: String, _ read: (inout Fields) -> Value?) -> Value? {
        let known = mistakes.count
        let value = read(&self)
        // A member that exists but is invalid has already been recorded as a mistake.
        if value == nil, mistakes.count == known { reject(name, "is missing") }
        return value
    }
}

extension String {
    /// Whether the text is one line: without ASCII control characters.
    public var hasNoControls: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
