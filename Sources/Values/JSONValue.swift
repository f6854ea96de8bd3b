/// A JSON document that a client sent.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Reads one document (RFC 8259).
    ///
    /// It is deliberately stricter than most readers, because a message that two readers understand differently is an
    /// attack. A repeated key, a lone surrogate, invalid UTF-8 and anything after the document are errors, and every
    /// error gives the byte offset. Nesting is limited, so that reading cannot exhaust the stack.
    ///
    /// - Parameters:
    ///   - isExact: numbers that would be rounded become strings (``exactNumber(_:)``).
    ///   - lastKeyWins: a repeated key replaces the earlier one, as in PostgreSQL's `jsonb`, and is no error.
    ///   - valuesMax: the number of values, including arrays and objects. A value can cost fifty times as much as its
    ///     bytes.
    public init(
        parsing bytes: [UInt8], depthMax: Int = 32, isExact: Bool = false, lastKeyWins: Bool = false,
        valuesMax: Int = .max
    ) throws(Failure) {
        var reader = JSONReader(
            bytes: bytes, depthMax: depthMax, isExact: isExact, lastKeyWins: lastKeyWins, valuesMax: valuesMax)
        self = try reader.document()
    }

    /// The name of the value's type in error messages.
    /// Whether it is an object or a list.
    public var isContainer: Bool {
        switch self {
        case .array, .object: true
        default: false
        }
    }

    public var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer, .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

extension JSONValue {
    /// Compares texts and names by their bytes, as a database and the issuer of a token do.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasBytes(of: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)):
            left.count == right.count
                && left.allSatisfy { name, value in
                    guard let place = right.index(forKey: name) else { return false }
                    return right[place].key.hasBytes(of: name) && right[place].value == value
                }
        default: false
        }
    }
}

extension JSONValue: JSONWritable {
    /// Writes objects with sorted keys, so that equal values have equal bytes.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.null()
        case .bool(let value): writer.value(value)
        case .integer(let value): writer.value(value)
        case .number(let value): writer.value(value)
        case .string(let value): writer.value(value)
        case .array(let values): writer.array(values)
        case .object(let members):
            writer.object { writer in
                for (key, value) in members.sorted(by: { $0.key < $1.key }) {
                    writer.key(key)
                    writer.value(value)
                }
            }
        }
    }
}

/// The reader behind ``JSONValue/init(parsing:depthMax:isExact:lastKeyWins:valuesMax:)``: one pass over the bytes.
private struct JSONReader {
    let bytes: [UInt8]
    let depthMax: Int
    let isExact: Bool
    let lastKeyWins: Bool
    let valuesMax: Int
    var index = 0
    var depth = 0
    var valueCount = 0

    func failure(_ what: String) -> Failure {
        Failure(.malformed, "request.malformed_json", "The body is not valid JSON: \(what) at byte \(index).")
    }

    mutating func document() throws(Failure) -> JSONValue {
        skipSpace()
        let result = try value()
        skipSpace()
        guard index == bytes.count else { throw failure("unexpected content after the document") }
        return result
    }

    private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    private mutating func value() throws(Failure) -> JSONValue {
        valueCount += 1
        guard valueCount <= valuesMax else {
            throw Failure(.tooLarge, "request.too_large", "The body may have at most \(valuesMax) JSON values here.")
        }
        switch byte {
        case UInt8(ascii: "{"): return .object(try object())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case nil: throw failure("unexpected end of the document")
        case .some(UInt8(ascii: "-")), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): return try number()
        default: throw failure("an unexpected character")
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) throws(Failure) -> JSONValue {
        let end = index + word.utf8CodeUnitCount
        guard end <= bytes.count, word.withUTF8Buffer({ bytes[index..<end].elementsEqual($0) }) else {
            throw failure("an unknown literal")
        }
        index = end
        return value
    }

    /// Reads the opening bracket. If the closing bracket follows, reads it too and returns false.
    private mutating func enter(closing: UInt8) throws(Failure) -> Bool {
        depth += 1
        guard depth <= depthMax else { throw failure("nesting deeper than \(depthMax) levels") }
        index += 1
        skipSpace()
        guard byte == closing else { return true }
        index += 1
        depth -= 1
        return false
    }

    private mutating func object() throws(Failure) -> [String: JSONValue] {
        guard try enter(closing: UInt8(ascii: "}")) else { return [:] }
        // Most objects have several members; this saves two steps of growth.
        var members = [String: JSONValue](minimumCapacity: 6)
        while true {
            guard byte == UInt8(ascii: "\"") else { throw failure("expected a key") }
            let key = try string()
            skipSpace()
            guard byte == UInt8(ascii: ":") else { throw failure("expected a colon") }
            index += 1
            skipSpace()
            let member = try value()
            // Swift takes keys of equivalent letters for the same; only the same bytes replace one another.
            let isRepeated = lastKeyWins && members.index(forKey: key).map { members[$0].key.hasBytes(of: key) } == true
            guard members.updateValue(member, forKey: key) == nil || isRepeated else {
                throw failure("duplicate key '\(key.prefix(64))', with a second value that ends")
            }
            skipSpace()
            guard try another(closing: UInt8(ascii: "}")) else { return members }
        }
    }

    private mutating func array() throws(Failure) -> [JSONValue] {
        guard try enter(closing: UInt8(ascii: "]")) else { return [] }
        var values: [JSONValue] = []
        while true {
            values.append(try value())
            skipSpace()
            guard try another(closing: UInt8(ascii: "]")) else { return values }
        }
    }

    /// Returns true after a comma, false after the closing bracket.
    private mutating func another(closing: UInt8) throws(Failure) -> Bool {
        switch byte {
        case UInt8(ascii: ","):
            index += 1
            skipSpace()
            return true
        case closing:
            index += 1
            depth -= 1
            return false
        default: throw failure("expected a comma or a closing bracket")
        }
    }

    private mutating func number() throws(Failure) -> JSONValue {
        let start = index
        if byte == UInt8(ascii: "-") { index += 1 }
        let integerStart = index
        try digits()
        guard index == integerStart + 1 || bytes[integerStart] != 48 else { throw failure("a malformed number") }
        var isInteger = true
        if byte == UInt8(ascii: ".") {
            isInteger = false
            index += 1
            try digits()
        }
        // Up to 15 characters without an exponent are exact: 15 digits, or a sign, 13 digits and a point.
        var isAlwaysExact = index - start <= 15
        if let exponent = byte, exponent | 0x20 == 0x65 {
            isInteger = false
            isAlwaysExact = false
            index += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { index += 1 }
            try digits()
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .integer(value) }
        if isExact, !isAlwaysExact { return .exactNumber(text) }
        guard let value = Double(text), value.isFinite else { throw failure("a number that is too large") }
        return .number(value)
    }

    private mutating func digits() throws(Failure) {
        let start = index
        while let byte, byte >= 48, byte <= 57 { index += 1 }
        guard index > start else { throw failure("a malformed number") }
    }

    private mutating func string() throws(Failure) -> String {
        index += 1
        let start = index
        skipPlainText()
        if byte == UInt8(ascii: "\"") {
            guard let text = Self.text(bytes[start..<index]) else { throw failure(Self.notUTF8) }
            index += 1
            return text
        }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(decodedLengthMax(from: start))
        decoded += bytes[start..<index]
        while let byte {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = Self.text(decoded[...]) else { throw failure(Self.notUTF8) }
                index += 1
                return text
            case UInt8(ascii: "\\"):
                index += 1
                try escape(into: &decoded)
            case 0..<0x20: throw failure("a control character inside a string")
            default:
                let start = index
                skipPlainText()
                decoded += bytes[start..<index]
            }
        }
        throw failure("an unterminated string")
    }

    /// Returns the most bytes that the text of a string can have. Each escape is longer than the text it stands for.
    private func decodedLengthMax(from start: Int) -> Int {
        bytes.withUnsafeBufferPointer { bytes in
            var (end, escapes) = (start, 0)
            while true {
                end = bytes.endOfPlainText(from: end)
                guard end < bytes.count, bytes[end] != UInt8(ascii: "\"") else { break }
                if bytes[end] == UInt8(ascii: "\\") {
                    escapes += 1
                    end += 1
                }
                end += 1
            }
            return min(end, bytes.count) - start - escapes
        }
    }

    /// Advances to the next quotation mark, backslash or control character. U+007F may appear unescaped.
    private mutating func skipPlainText() {
        repeat {
            index = bytes.withUnsafeBufferPointer { $0.endOfPlainText(from: index) }
            guard byte == 0x7F else { return }
            index += 1
        } while true
    }

    private static let notUTF8 = "a string that is not UTF-8"

    /// Returns the text; nil if it is not UTF-8. It is static, because a call on the reader would copy the reader.
    private static func text(_ utf8: ArraySlice<UInt8>) -> String? {
        // Nearly all texts are ASCII and need no validation, which takes six times as long as the rest.
        if utf8.withUnsafeBufferPointer(\.isASCII) { return String(decoding: utf8, as: UTF8.self) }
        return String(validating: utf8, as: UTF8.self)
    }

    private mutating func escape(into decoded: inout [UInt8]) throws(Failure) {
        guard let letter = byte else { throw failure("an unterminated string") }
        index += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): decoded.append(letter)
        case UInt8(ascii: "b"): decoded.append(0x08)
        case UInt8(ascii: "f"): decoded.append(0x0C)
        case UInt8(ascii: "n"): decoded.append(0x0A)
        case UInt8(ascii: "r"): decoded.append(0x0D)
        case UInt8(ascii: "t"): decoded.append(0x09)
        case UInt8(ascii: "u"):
            var unit = try hexadecimal()
            if (0xD800..<0xDC00).contains(unit) {
                guard index + 1 < bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u")
                else { throw failure("a lone surrogate") }
                index += 2
                let low = try hexadecimal()
                guard (0xDC00..<0xE000).contains(low) else { throw failure("a lone surrogate") }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else { throw failure("a lone surrogate") }
            for unit in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { decoded.append(unit) }
        default: throw failure("an unknown escape")
        }
    }

    private mutating func hexadecimal() throws(Failure) -> UInt32 {
        guard index + 4 <= bytes.count else { throw failure("an incomplete escape") }
        var value: UInt32 = 0
        for byte in bytes[index..<index + 4] {
            switch byte {
            case 48...57: value = value << 4 | UInt32(byte - 48)
            case 65...70, 97...102: value = value << 4 | UInt32((byte | 0x20) - 87)
            default: throw failure("an unknown escape")
            }
        }
        index += 4
        return value
    }
}

extension JSONValue {
    /// Returns the value of a JSON number without rounding: a string of the same digits if neither an `Int64` nor a
    /// `Double` represents it.
    ///
    /// Databases have such numbers (`numeric`, unsigned 64-bit integers), and a rounded key is the key of another row.
    public static func exactNumber(_ text: String) -> JSONValue {
        if let integer = Int64(text) { return .integer(integer) }
        // Longer numbers are never exact. This bound saves the conversion, whose time grows faster than the number of
        // digits.
        guard text.utf8.count <= 40, text.utf8.contains(where: { $0 != UInt8(ascii: "-") && !(48...57).contains($0) }),
            let double = Double(text), double.isFinite,
            DecimalDigits(text.utf8) == DecimalDigits(double.description.utf8)
        else { return .string(text) }
        return .number(double)
    }
}

/// Members of an object by type; nil if absent, or of another type.
extension [String: JSONValue] {
    public func string(_ name: String) -> String? {
        if case .string(let text)? = self[name] { text } else { nil }
    }

    public func strings(_ name: String) -> [String]? {
        guard case .array(let values)? = self[name] else { return nil }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    public func objects(_ name: String) -> [[String: JSONValue]]? {
        guard case .array(let values)? = self[name] else { return nil }
        return values.compactMap { if case .object(let members) = $0 { members } else { nil } }
    }

    public func integer(_ name: String) -> Int64? {
        if case .integer(let number)? = self[name] { number } else { nil }
    }

    public func bool(_ name: String) -> Bool? {
        if case .bool(let flag)? = self[name] { flag } else { nil }
    }

    public func object(_ name: String) -> [String: JSONValue]? {
        if case .object(let members)? = self[name] { members } else { nil }
    }
}
