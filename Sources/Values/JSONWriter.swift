/// A writer of JSON into one byte array. Keys appear in the order in which they are written.
///
/// Every response and event goes through it. The stable order of keys helps readers and tests, and the writer costs an
/// eighth of a reflective encoder (`Docs/performance.md`).
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8] = []
    /// Whether the next key or element needs a comma before it.
    private var needsComma = false

    public init(reserving capacity: Int = 256) {
        bytes.reserveCapacity(capacity)
    }

    /// Returns the bytes of one value.
    @inlinable
    public static func bytes(_ value: some JSONWritable) -> [UInt8] {
        var writer = JSONWriter()
        value.write(to: &writer)
        return writer.bytes
    }

    /// Returns the bytes of one object.
    @inlinable
    public static func object(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(body)
        return writer.bytes
    }

    /// Returns the members of an object without its braces, for ``members(_:)``.
    @inlinable
    public static func members(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        body(&writer)
        return writer.bytes
    }

    /// Returns a text as it stands inside a JSON string, without the quotes, for searches.
    public static func escaped(_ text: String) -> [UInt8] { Array(bytes(text).dropFirst().dropLast()) }

    public mutating func object(_ body: (inout JSONWriter) -> Void) {
        open(UInt8(ascii: "{"))
        body(&self)
        close(UInt8(ascii: "}"))
    }

    public mutating func array(_ body: (inout JSONWriter) -> Void) {
        open(UInt8(ascii: "["))
        body(&self)
        close(UInt8(ascii: "]"))
    }

    @inlinable
    public mutating func array(_ values: some Sequence<some JSONWritable>) {
        array { writer in
            for value in values { writer.value(value) }
        }
    }

    public mutating func key(_ name: StaticString) {
        comma()
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    public mutating func key(_ name: String) {
        comma()
        quoted(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    @inlinable
    public mutating func member(_ name: StaticString, _ value: some JSONWritable) {
        key(name)
        self.value(value)
    }

    @inlinable
    public mutating func member(_ name: StaticString, _ values: some Sequence<some JSONWritable>) {
        key(name)
        array(values)
    }

    @inlinable
    public mutating func member(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
        key(name)
        object(body)
    }

    /// Writes a member whose value is an array with one object per element.
    public mutating func member<Element>(
        _ name: StaticString, _ elements: some Sequence<Element>, _ members: (inout JSONWriter, Element) -> Void
    ) {
        key(name)
        array { writer in
            for element in elements { writer.object { members(&$0, element) } }
        }
    }

    /// Writes a member whose value is an object of numbers.
    public mutating func member(_ name: StaticString, _ numbers: KeyValuePairs<StaticString, Int>) {
        member(name) { writer in
            for (name, number) in numbers { writer.member(name, number) }
        }
    }

    /// Writes a version and its epoch. A restored database counts on from versions that clients have seen with
    /// different content, so a version is meaningless without its epoch.
    public mutating func version(_ version: some JSONWritable, in epoch: String) {
        member("version", version)
        member("epoch", epoch)
    }

    /// Writes a member whose value is already JSON.
    public mutating func member(_ name: StaticString, json: some Collection<UInt8>) {
        key(name)
        raw(json)
    }

    /// Writes members that are already JSON, without the braces of their object. The bytes may be empty.
    public mutating func members(_ json: some Collection<UInt8>) {
        if !json.isEmpty { raw(json) }
    }

    /// Writes the members of an object that a writer has written.
    public mutating func members(of object: some BidirectionalCollection<UInt8>) {
        precondition(object.first == UInt8(ascii: "{") && object.last == UInt8(ascii: "}"), "not an object")
        members(object.dropFirst().dropLast())
    }

    @inlinable
    public mutating func value(_ value: some JSONWritable) {
        value.write(to: &self)
    }

    /// Writes bytes that are already one JSON value.
    public mutating func raw(_ json: some Collection<UInt8>) {
        comma()
        // Other modules do not specialize this method. Without the check it would append byte by byte.
        let copied: Void? = json.withContiguousStorageIfAvailable { bytes.append(contentsOf: $0) }
        if copied == nil { bytes.append(contentsOf: json) }
        needsComma = true
    }

    public mutating func null() {
        literal("null")
    }

    fileprivate mutating func literal(_ text: StaticString) {
        comma()
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
        needsComma = true
    }

    fileprivate mutating func integer(_ value: Int64) {
        comma()
        if value >= 0, value < 10 { bytes.append(UInt8(48 + value)) } else { bytes.append(decimal: value) }
        needsComma = true
    }

    /// Writes a number. JSON has no infinities, so a non-finite number becomes null.
    fileprivate mutating func double(_ value: Double) {
        guard value.isFinite else { return null() }
        if value == value.rounded(), abs(value) < 1e15 { return integer(Int64(value)) }
        comma()
        bytes.append(contentsOf: value.description.utf8)
        needsComma = true
    }

    fileprivate mutating func string(_ text: String) {
        comma()
        quoted(text)
        needsComma = true
    }

    fileprivate mutating func timestamp(_ time: Timestamp) {
        comma()
        bytes.append(UInt8(ascii: "\""))
        time.append(to: &bytes)
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        comma()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func comma() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func quoted(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { utf8 in
            var start = 0
            while true {
                let end = utf8.endOfPlainText(from: start)
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<end]))
                guard end < utf8.count else { break }
                escape(utf8[end])
                start = end + 1
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x22, 0x5C: bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            let digits = Array("0123456789abcdef".utf8)
            bytes.append(contentsOf: [UInt8(ascii: "u"), 48, 48, digits[Int(byte >> 4)], digits[Int(byte & 15)]])
        }
    }
}

/// A value that writes itself as JSON.
public protocol JSONWritable {
    func write(to writer: inout JSONWriter)
}

/// A value that writes itself as a JSON object.
public protocol JSONObjectWritable: JSONWritable {
    /// Writes the members without the braces, so that other objects can include them among their own.
    func write(membersTo writer: inout JSONWriter)
}

extension JSONObjectWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) {
        writer.object { write(membersTo: &$0) }
    }
}

/// Enumerations of words write their raw value.
extension JSONWritable where Self: RawRepresentable, RawValue == String {
    @inlinable
    public func write(to writer: inout JSONWriter) { writer.value(rawValue) }
}
extension String: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.string(self) }
}
extension Int: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.integer(Int64(self)) }
}
extension Int64: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.integer(self) }
}
extension Double: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.double(self) }
}
extension Bool: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.literal(self ? "true" : "false") }
}
extension Timestamp: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.timestamp(self) }
}
extension ID: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) { writer.value(text) }
}
extension Optional: JSONWritable where Wrapped: JSONWritable {
    @inlinable
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .some(let value): value.write(to: &writer)
        case .none: writer.null()
        }
    }
}
