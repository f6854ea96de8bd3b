import Values

/// The reason and the place why bytes are not a message of logical replication.
public struct ReplicationFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The message's first letter; nil for an empty message.
    public let kind: Character?
    /// The byte at which reading ended, from 0.
    public let place: Int
    public let reason: String

    public init(kind: Character?, place: Int, reason: String) {
        (self.kind, self.place, self.reason) = (kind, place, reason)
    }

    /// `message 'I', byte 17: it ends too early`
    public var description: String { "message \(kind.map { "'\($0)'" } ?? "without bytes"), byte \(place): \(reason)" }
}

/// One message of PostgreSQL's logical replication, in the format of the plugin `pgoutput` (protocol version 1).
///
/// Source: PostgreSQL's documentation, "Logical Replication Message Formats".
public enum ReplicationMessage: Sendable, Hashable {
    /// A transaction begins. A transaction is sent whole, after its commit.
    ///
    /// - Parameter at: the position of its commit in the log. Transactions arrive in this order.
    case begin(at: LSN, committedAt: Timestamp)
    /// - Parameter end: the position behind the commit.
    case commit(end: LSN)
    /// The server on which the transaction originated, if it was another one.
    case origin(String)
    /// The columns of a table, for reading its rows from here on.
    case relation(SourceRelation)
    /// A type that is not built into PostgreSQL.
    case type(id: UInt32, schema: String, name: String)
    case insert(relation: UInt32, new: SourceTuple)
    /// - Parameter old: depending on the table's REPLICA IDENTITY, the whole row, the key if it changed, or nothing.
    case update(relation: UInt32, old: SourceTuple?, new: SourceTuple)
    case delete(relation: UInt32, old: SourceTuple)
    case truncate(relations: [UInt32])
    /// A message that `pg_logical_emit_message` wrote into the log.
    ///
    /// - Parameter isTransactional: whether it arrives with its transaction, or at once.
    case message(isTransactional: Bool, at: LSN, prefix: String, content: ArraySlice<UInt8>)
}

/// The values of one row, as the log contains them.
public struct SourceTuple: Sendable, Hashable {
    public enum Value: Sendable, Hashable {
        case null
        /// Stored out of line (TOAST) and unchanged: the log does not contain the value.
        case unchanged
        /// In the type's text form.
        case text(ArraySlice<UInt8>)
    }

    public var values: [Value]

    public init(_ values: [Value]) { self.values = values }
}

/// The columns of a table at the time when the following rows were written.
public struct SourceRelation: Sendable, Hashable {
    public struct Column: Sendable, Hashable {
        public let name: String
        /// Whether old rows contain it (REPLICA IDENTITY).
        public let isOfOldRows: Bool
        /// The type's OID in `pg_type`.
        public let type: UInt32

        public init(name: String, isOfOldRows: Bool, type: UInt32) {
            (self.name, self.isOfOldRows, self.type) = (name, isOfOldRows, type)
        }
    }

    public let id: UInt32
    public let schema: String
    public let name: String
    public let columns: [Column]

    public init(id: UInt32, schema: String, name: String, columns: [Column]) {
        (self.id, self.schema, self.name, self.columns) = (id, schema, name, columns)
    }
}

extension ReplicationMessage {
    /// Reads one whole message; missing and surplus bytes are faults.
    public init(reading bytes: ArraySlice<UInt8>) throws(ReplicationFault) {
        var reader = ReplicationReader(bytes)
        self = try reader.message()
        try reader.finish()
    }
}

/// A single-pass reader of a message. It reads no element beyond its declared length or the end of the bytes.
struct ReplicationReader {
    private let bytes: ArraySlice<UInt8>
    private var index: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        index = bytes.startIndex
    }

    private func fault(_ reason: String) -> ReplicationFault {
        ReplicationFault(
            kind: bytes.first.map { Character(Unicode.Scalar($0)) }, place: index - bytes.startIndex, reason: reason)
    }

    func finish() throws(ReplicationFault) {
        guard index == bytes.endIndex else {
            throw fault("\(bytes.endIndex - index) bytes follow the end of the message")
        }
    }

    mutating func message() throws(ReplicationFault) -> ReplicationMessage {
        switch try byte() {
        case UInt8(ascii: "B"):
            let place = LSN(rawValue: try number(UInt64.self))
            let committedAt = try moment()
            _ = try number(UInt32.self)
            return .begin(at: place, committedAt: committedAt)
        case UInt8(ascii: "C"):
            _ = try byte()
            _ = try number(UInt64.self)
            let end = LSN(rawValue: try number(UInt64.self))
            _ = try moment()
            return .commit(end: end)
        case UInt8(ascii: "O"):
            _ = try number(UInt64.self)
            return .origin(try text())
        case UInt8(ascii: "R"): return .relation(try relation())
        case UInt8(ascii: "Y"):
            return .type(id: try number(UInt32.self), schema: try schema(), name: try text())
        case UInt8(ascii: "I"):
            let relation = try number(UInt32.self)
            return .insert(relation: relation, new: try tuple(after: "N"))
        case UInt8(ascii: "U"): return try update()
        case UInt8(ascii: "D"):
            let relation = try number(UInt32.self)
            return .delete(relation: relation, old: try tuple(after: "K", or: "O"))
        case UInt8(ascii: "T"):
            let count = try count(UInt32.self, bytesEach: 4)
            _ = try byte()
            var relations: [UInt32] = []
            for _ in 0..<count { relations.append(try number(UInt32.self)) }
            return .truncate(relations: relations)
        case UInt8(ascii: "M"):
            let flags = try byte()
            let place = LSN(rawValue: try number(UInt64.self))
            let prefix = try text()
            let length = try count(UInt32.self, bytesEach: 1)
            return .message(isTransactional: flags & 1 == 1, at: place, prefix: prefix, content: try take(length))
        default:
            index = bytes.startIndex
            throw fault("version 1 of the protocol has no such message")
        }
    }

    private mutating func update() throws(ReplicationFault) -> ReplicationMessage {
        let relation = try number(UInt32.self)
        guard index < bytes.endIndex, bytes[index] != UInt8(ascii: "N") else {
            return .update(relation: relation, old: nil, new: try tuple(after: "N"))
        }
        let old = try tuple(after: "K", or: "O")
        return .update(relation: relation, old: old, new: try tuple(after: "N"))
    }

    private mutating func relation() throws(ReplicationFault) -> SourceRelation {
        let (id, schema, name) = (try number(UInt32.self), try schema(), try text())
        _ = try byte()
        // A column has at least its flag, the terminator of its name, and two numbers.
        let count = try count(UInt16.self, bytesEach: 10)
        var columns: [SourceRelation.Column] = []
        for _ in 0..<count {
            let flags = try byte()
            let column = try text()
            columns.append(.init(name: column, isOfOldRows: flags & 1 == 1, type: try number(UInt32.self)))
            _ = try number(UInt32.self)
        }
        return SourceRelation(id: id, schema: schema, name: name, columns: columns)
    }

    /// Returns the schema; PostgreSQL encodes `pg_catalog` as an empty name.
    private mutating func schema() throws(ReplicationFault) -> String {
        let name = try text()
        return name.isEmpty ? "pg_catalog" : name
    }

    private mutating func tuple(
        after letter: Unicode.Scalar, or other: Unicode.Scalar? = nil
    ) throws(ReplicationFault) -> SourceTuple {
        let found = Unicode.Scalar(try byte())
        guard found == letter || found == other else {
            index -= 1
            throw fault(
                "a row must begin with \(letter)\(other.map { " or \($0)" } ?? ""), not with byte \(found.value)")
        }
        let count = try count(UInt16.self, bytesEach: 1)
        var values: [SourceTuple.Value] = []
        values.reserveCapacity(count)
        for _ in 0..<count { values.append(try value()) }
        return SourceTuple(values)
    }

    private mutating func value() throws(ReplicationFault) -> SourceTuple.Value {
        switch try byte() {
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "u"): return .unchanged
        case UInt8(ascii: "t"):
            let length = try count(UInt32.self, bytesEach: 1)
            return .text(try take(length))
        default:
            index -= 1
            throw fault("a value must be null, unchanged or text")
        }
    }

    private mutating func byte() throws(ReplicationFault) -> UInt8 {
        guard index < bytes.endIndex else { throw fault("it ends too early") }
        defer { index += 1 }
        return bytes[index]
    }

    /// Reads a number in network byte order.
    private mutating func number<Number: FixedWidthInteger>(_: Number.Type) throws(ReplicationFault) -> Number {
        let part = try take(Number.bitWidth / 8)
        return part.reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    /// Reads an element count and checks it against the smallest size of an element, so that a false count allocates
    /// nothing.
    private mutating func count<Number: FixedWidthInteger>(
        _: Number.Type, bytesEach: Int
    ) throws(ReplicationFault) -> Int {
        let start = index
        let count = Int(try number(Number.self))
        guard count <= (bytes.endIndex - index) / bytesEach else {
            index = start
            throw fault("\(count) elements do not fit into the remaining \(bytes.endIndex - start) bytes")
        }
        return count
    }

    private mutating func take(_ count: Int) throws(ReplicationFault) -> ArraySlice<UInt8> {
        guard count <= bytes.endIndex - index else { throw fault("it ends too early") }
        defer { index += count }
        return bytes[index..<(index + count)]
    }

    private mutating func text() throws(ReplicationFault) -> String {
        guard let end = bytes[index...].firstIndex(of: 0) else { throw fault("a name is not terminated") }
        guard let text = String(validating: bytes[index..<end], as: UTF8.self) else {
            throw fault("a name is not UTF-8")
        }
        index = end + 1
        return text
    }

    /// Reads microseconds since 2000-01-01.
    private mutating func moment() throws(ReplicationFault) -> Timestamp {
        let start = index
        let (moment, isOver) = Int64(bitPattern: try number(UInt64.self)).addingReportingOverflow(946_684_800_000_000)
        guard !isOver, Timestamp.writableSeconds.contains(moment / 1_000_000) else {
            index = start
            throw fault("a time is not between the years 1 and 9999")
        }
        return Timestamp(microseconds: moment)
    }
}
