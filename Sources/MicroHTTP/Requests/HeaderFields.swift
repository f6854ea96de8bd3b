import Glibc

/// The header fields of an answer (RFC 9110 §5), in the order in which they are sent.
///
/// They are stored as C strings in one block of memory, names and values alternating. Constant fields are added by
/// copying a part of a block, and libmicrohttpd receives pointers into the block.
public struct HeaderFields: Sendable {
    /// An even number of NUL-terminated strings without other NULs.
    private var block: [UInt8] = []

    public init() {}

    /// Copies the fields, with room for more.
    public init(_ fields: HeaderFields, reserving bytes: Int) {
        block.reserveCapacity(fields.block.count + bytes)
        block.append(contentsOf: fields.block)
    }

    /// Reserves room for fields: the bytes of names and values, plus two for each field.
    public mutating func reserve(_ bytes: Int) { block.reserveCapacity(block.count + bytes) }

    public mutating func append(_ name: StaticString, _ value: String) {
        append(name) { $0.append(contentsOf: value.utf8) }
    }

    /// Appends a field whose value is written in place.
    public mutating func append(_ name: StaticString, writing write: (inout [UInt8]) -> Void) {
        block.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        block.append(0)
        let start = block.count
        write(&block)
        finish(start)
    }

    public mutating func append(_ field: (name: String, value: String)) {
        for text in [field.name, field.value] {
            let start = block.count
            block.append(contentsOf: text.utf8)
            finish(start)
        }
    }

    public mutating func append(_ fields: HeaderFields) { block.append(contentsOf: fields.block) }

    /// Terminates a string. It is cut off at a NUL, because the next field would be read from there.
    private mutating func finish(_ start: Int) {
        let end = block.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, let found = memchr(base + start, 0, bytes.count - start) else {
                return nil
            }
            return UnsafeRawPointer(found) - base
        }
        if let end { block.removeSubrange(end...) }
        block.append(0)
    }

    /// Returns the first value of a name.
    public subscript(name: String) -> String? { first { $0.name == name }?.value }

    /// Whether there is a field of the name. It creates no text, because every answer is asked.
    public func contains(_ name: StaticString) -> Bool {
        withCStrings { strings in
            while let field = strings.next() {
                if strcmp(field.name, name.utf8Start) == 0 { return true }
            }
            return false
        }
    }

    /// Returns the fields, leaving out a name.
    public func without(_ name: String) -> HeaderFields {
        reduce(into: HeaderFields()) { if $1.name != name { $0.append($1) } }
    }

    func withCStrings<Result>(_ body: (inout CStrings) -> Result) -> Result {
        block.withUnsafeBytes { bytes in
            var strings = CStrings(rest: bytes.assumingMemoryBound(to: CChar.self))
            return body(&strings)
        }
    }

    func forEachCString(_ body: (_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>) -> Void) {
        withCStrings { strings in
            while let field = strings.next() { body(field.name, field.value) }
        }
    }

    /// A sequence of the fields in place, in order.
    struct CStrings {
        fileprivate var rest: UnsafeBufferPointer<CChar>

        mutating func next() -> (name: UnsafePointer<CChar>, value: UnsafePointer<CChar>)? {
            guard !rest.isEmpty, let name = rest.baseAddress else { return nil }
            let value = name + strlen(name) + 1
            let end = value + strlen(value) + 1
            rest = UnsafeBufferPointer(rebasing: rest[(end - name)...])
            return (name, value)
        }
    }
}

extension HeaderFields: Sequence {
    public func makeIterator() -> some IteratorProtocol<(name: String, value: String)> {
        var fields: [(name: String, value: String)] = []
        forEachCString { fields.append((String(cString: $0), String(cString: $1))) }
        return fields.makeIterator()
    }
}

extension HeaderFields: ExpressibleByArrayLiteral {
    public init(arrayLiteral fields: (name: String, value: String)...) {
        for field in fields { append(field) }
    }
}
