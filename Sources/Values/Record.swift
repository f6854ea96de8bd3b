/// A value whose members are declared once. The declaration gives its JSON, and the columns, the reader and the values
/// of its row.
///
/// ```swift
/// @inlinable public mutating func visit(_ members: inout some MemberVisitor) {
///     members.member("id", &id)
///     members.member("text", in: "body", &text)
///     members.hidden("requestId", &requestId)
///     members.derived("haptic", haptic)
/// }
/// ```
///
/// A new member is a stored property, and a line in `visit`. The method must be inlinable, because each visitor of another
/// module has its own specialized form.
public protocol Record {
    /// Creates a record with empty members, to be filled from a row.
    init()

    /// Passes each member to a visitor, in the order of the JSON.
    mutating func visit(_ members: inout some MemberVisitor)
}

extension Record {
    /// Writes the members of the JSON. A record whose JSON is complete without a context also conforms to
    /// ``JSONObjectWritable``.
    @inlinable
    public func write(membersTo writer: inout JSONWriter) {
        visitUnchanged(&writer)
    }

    /// Passes the members to a visitor that assigns no member.
    @inlinable
    public func visitUnchanged(_ members: inout some MemberVisitor) {
        // A mutable copy would retain and release every text. The visitor writes nothing through the pointer.
        withUnsafePointer(to: self) { UnsafeMutablePointer(mutating: $0).pointee.visit(&members) }
    }
}

/// A use of the members of a record, such as writing JSON or reading a row. A visitor that reads a row assigns the
/// members; the others leave them unchanged.
public protocol MemberVisitor {
    /// Visits a member of the JSON that is stored in a column.
    ///
    /// - Parameter column: Nil for the name in snake case.
    mutating func member(_ name: StaticString, in column: StaticString?, _ value: inout some MemberValue)

    /// Visits a member that is stored but is not part of the JSON.
    mutating func hidden(_ name: StaticString, in column: StaticString?, _ value: inout some MemberValue)

    /// Visits a member of the JSON that is not stored.
    mutating func derived(_ name: StaticString, _ value: @autoclosure () -> some JSONWritable)
}

extension MemberVisitor {
    @inlinable
    public mutating func member(_ name: StaticString, _ value: inout some MemberValue) {
        member(name, in: nil, &value)
    }

    @inlinable
    public mutating func hidden(_ name: StaticString, _ value: inout some MemberValue) {
        hidden(name, in: nil, &value)
    }
}

extension JSONWriter: MemberVisitor {
    @inlinable
    public mutating func member(_ name: StaticString, in _: StaticString?, _ value: inout some MemberValue) {
        key(name)
        value.write(to: &self)
    }

    @inlinable
    public mutating func hidden(_: StaticString, in _: StaticString?, _: inout some MemberValue) {}

    @inlinable
    public mutating func derived(_ name: StaticString, _ value: @autoclosure () -> some JSONWritable) {
        key(name)
        value().write(to: &self)
    }
}

// MARK: Values

/// A type of members. It has a form in JSON and a form in a column.
public protocol MemberValue: JSONWritable {
    init(column: some ColumnReader) throws
    func write(column: inout some ColumnWriter)
}

/// A column of a row. The methods throw if the column is null or has another type.
public protocol ColumnReader {
    var isNull: Bool { get }
    func text() throws -> String
    func integer() throws -> Int
    func bool() throws -> Bool
    func real() throws -> Double
    func bytes() throws -> [UInt8]
    /// Returns the error for a value that has the right type but is not one of the known values.
    func unknownValue() -> any Error
}

/// The receiver of the value of a column.
public protocol ColumnWriter {
    mutating func null()
    mutating func text(_ value: String)
    mutating func integer(_ value: Int64)
    mutating func real(_ value: Double)
    /// Writes a text that is given as bytes.
    mutating func utf8(_ value: [UInt8])
}

extension String: MemberValue {
    @inlinable public init(column: some ColumnReader) throws { self = try column.text() }
    @inlinable public func write(column: inout some ColumnWriter) { column.text(self) }
}

extension Int: MemberValue {
    @inlinable public init(column: some ColumnReader) throws { self = try column.integer() }
    @inlinable public func write(column: inout some ColumnWriter) { column.integer(Int64(self)) }
}

extension Bool: MemberValue {
    @inlinable public init(column: some ColumnReader) throws { self = try column.bool() }
    @inlinable public func write(column: inout some ColumnWriter) { column.integer(self ? 1 : 0) }
}

extension Timestamp: MemberValue {
    @inlinable public init(column: some ColumnReader) throws { self.init(microseconds: Int64(try column.integer())) }
    @inlinable public func write(column: inout some ColumnWriter) { column.integer(microseconds) }
}

extension ID: MemberValue {
    @inlinable public init(column: some ColumnReader) throws { self.init(try column.text()) }
    @inlinable public func write(column: inout some ColumnWriter) { column.text(text) }
}

/// Enumerations of words are stored as their raw value.
extension MemberValue where Self: RawRepresentable<String> {
    @inlinable
    public init(column: some ColumnReader) throws {
        guard let word = Self(rawValue: try column.text()) else { throw column.unknownValue() }
        self = word
    }

    @inlinable public func write(column: inout some ColumnWriter) { column.text(rawValue) }
}

extension Optional: MemberValue where Wrapped: MemberValue {
    @inlinable
    public init(column: some ColumnReader) throws {
        self = column.isNull ? nil : try Wrapped(column: column)
    }

    @inlinable
    public func write(column: inout some ColumnWriter) {
        switch self {
        case .some(let value): value.write(column: &column)
        case .none: column.null()
        }
    }
}

/// A JSON value as its bytes, which are stored and sent unchanged.
public struct EncodedJSON: Sendable, Hashable, MemberValue, ExpressibleByDictionaryLiteral {
    public let bytes: [UInt8]

    public static let emptyObject: EncodedJSON = [:]
    public static let emptyArray = EncodedJSON(.array([]))

    /// Encodes a value. Equal values have equal bytes.
    public init(_ value: JSONValue) { bytes = JSONWriter.bytes(value) }

    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self.init(.object(Dictionary(uniqueKeysWithValues: members)))
    }

    @inlinable public init(column: some ColumnReader) throws { bytes = try column.bytes() }
    @inlinable public func write(column: inout some ColumnWriter) { column.utf8(bytes) }
    @inlinable public func write(to writer: inout JSONWriter) { writer.raw(bytes) }
}
