import Values

/// The conversion of a PostgreSQL type's text form to JSON.
///
/// The conversion relies only on OIDs and columns of `pg_type`. The app's database never converts a value: a cast, a
/// function or a domain check of the app would run with the reader's rights.
///
/// The text forms must come from a session with `DateStyle` ISO, `IntervalStyle` postgres, `TimeZone` UTC and
/// `bytea_output` hex. Built-in types are converted as `to_jsonb` does.
public indirect enum SourceType: Sendable {
    case boolean, number
    /// The text unchanged: texts, ids, dates, times, intervals, networks, ranges, enumerations, binaries, and all types
    /// of extensions.
    case text
    /// `2026-01-10 09:30:00.5`
    case timestamp
    /// `2026-01-10 09:30:00.5+00`
    case timestampWithZone
    case json, jsonb
    case array(of: SourceType, delimiter: UInt8)
    /// `1 2 3`
    case vector(of: SourceType)
    /// `(1,"a b",)`
    case composite([Attribute])

    /// One column of a composite type.
    public struct Attribute: Sendable {
        public let name: String
        public let type: SourceType

        public init(name: String, type: SourceType) { (self.name, self.type) = (name, type) }
    }

    /// The built-in types by their OIDs in `pg_type`, which never change. Other types are looked up there.
    public static let known: [UInt32: SourceType] = {
        var known: [UInt32: SourceType] = [
            16: .boolean, 114: .json, 3802: .jsonb, 1114: .timestamp, 1184: .timestampWithZone, 1000: comma(.boolean),
            199: comma(.json), 3807: comma(.jsonb), 1115: comma(.timestamp), 1185: comma(.timestampWithZone),
            // int2vector, oidvector
            22: .vector(of: .number), 30: .vector(of: .text),
        ]
        // smallint, integer, bigint, real, double precision, numeric
        for id: UInt32 in [21, 23, 20, 700, 701, 1700] { known[id] = .number }
        for id: UInt32 in [1005, 1007, 1016, 1021, 1022, 1231] { known[id] = comma(.number) }
        // bytea, "char", name, text, oid, xml, cidr, macaddr, inet, char, varchar, date, time, interval, timetz, uuid
        for id: UInt32 in [17, 18, 19, 25, 26, 142, 650, 829, 869, 1042, 1043, 1082, 1083, 1186, 1266, 2950] {
            known[id] = .text
        }
        for id: UInt32 in [1001, 1009, 1014, 1015, 1182, 1183, 1187, 1270, 2951] { known[id] = comma(.text) }
        return known
    }()

    private static func comma(_ element: SourceType) -> SourceType { .array(of: element, delimiter: UInt8(ascii: ",")) }

    /// Returns the value as JSON.
    ///
    /// - Throws: if the text is not a value of the type.
    public func json(of text: ArraySlice<UInt8>) throws(ChangeFault) -> JSONValue {
        switch self {
        case .boolean: return .bool(text.first == UInt8(ascii: "t"))
        case .number: return Self.number(try Self.string(text))
        case .text: return .string(try Self.string(text))
        case .timestamp: return .string(Self.moment(try Self.string(text), hasZone: false))
        case .timestampWithZone: return .string(Self.moment(try Self.string(text), hasZone: true))
        case .jsonb: return try Self.document(Array(text), lastKeyWins: false)
        case .json: return try Self.document(try Self.withoutExponents(text), lastKeyWins: true)
        case .array(let element, let delimiter):
            var reader = ArrayReader(text, element, delimiter)
            return try reader.array()
        case .vector(let element):
            var values: [JSONValue] = []
            for part in text.split(separator: UInt8(ascii: " ")) { values.append(try element.json(of: part)) }
            return .array(values)
        case .composite(let attributes):
            var reader = CompositeReader(text)
            return .object(try reader.members(attributes))
        }
    }

    private static func document(_ text: [UInt8], lastKeyWins: Bool) throws(ChangeFault) -> JSONValue {
        do throws(Failure) {
            return try JSONValue(
                parsing: text, depthMax: ChangeLimits.embeddedDepthMax, isExact: true, lastKeyWins: lastKeyWins)
        } catch {
            throw ChangeFault("", "has an invalid JSON document: \(error.detail)")
        }
    }

    private static func string(_ text: ArraySlice<UInt8>) throws(ChangeFault) -> String {
        if text.allSatisfy({ $0 < 0x80 }) { return String(decoding: text, as: UTF8.self) }
        guard let string = String(validating: text, as: UTF8.self) else {
            throw ChangeFault("", "has text that is not UTF-8")
        }
        return string
    }

    // MARK: Numbers

    /// Returns a number; NaN and the infinities become texts.
    private static func number(_ text: String) -> JSONValue {
        if text.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "n") }) { return .string(text) }
        return .exactNumber(withoutExponent(text) ?? text)
    }

    /// The largest exponent that is expanded into zeros. `double precision` has 324, `numeric` 131,072: a few bytes of
    /// a document would become megabytes.
    private static let exponentMax = 2_000

    /// Returns `1.5e-07` as `0.00000015`: `numeric` has no exponents, and the numbers of `jsonb` are `numeric`. Returns
    /// nil for an exponent above ``exponentMax``.
    private static func withoutExponent(_ text: String) -> String? {
        let parts = text.split(maxSplits: 1, whereSeparator: { $0 == "e" || $0 == "E" })
        guard parts.count == 2 else { return text }
        guard let exponent = Int(parts[1]), (-exponentMax...exponentMax).contains(exponent) else { return nil }
        let isNegative = parts[0].hasPrefix("-")
        let mantissa = parts[0].drop { $0 == "-" }.split(separator: ".", maxSplits: 1)
        let whole = String(mantissa.first ?? "0")
        var digits = whole + (mantissa.count > 1 ? mantissa[1] : "")
        var point = whole.utf8.count + exponent
        if point <= 0 {
            digits = String(repeating: "0", count: 1 - point) + digits
            point = 1
        }
        if digits.utf8.count < point { digits += String(repeating: "0", count: point - digits.utf8.count) }
        let cut = digits.utf8.index(digits.startIndex, offsetBy: point)
        let integer = digits[..<cut].drop { $0 == "0" }
        let fraction = digits[cut...]
        return (isNegative ? "-" : "") + (integer.isEmpty ? "0" : integer) + (fraction.isEmpty ? "" : "." + fraction)
    }

    /// Returns a JSON document with its numbers in the form that `jsonb` uses.
    private static func withoutExponents(_ text: ArraySlice<UInt8>) throws(ChangeFault) -> [UInt8] {
        let hasExponent = zip(text, text.dropFirst()).contains {
            (48...57).contains($0) && $1 | 0x20 == UInt8(ascii: "e")
        }
        guard hasExponent else { return Array(text) }
        var plain: [UInt8] = []
        plain.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.first {
            if byte == UInt8(ascii: "\"") {
                let string = stringLiteral(at: rest)
                plain += string
                rest = rest[string.endIndex...]
            } else if byte == UInt8(ascii: "-") || (48...57).contains(byte) {
                let token = rest.prefix { isPartOfNumber($0) }
                guard let number = withoutExponent(String(decoding: token, as: UTF8.self)) else {
                    throw ChangeFault("", "has a number whose exponent is above \(exponentMax)")
                }
                plain += number.utf8
                rest = rest[token.endIndex...]
            } else {
                plain.append(byte)
                rest.removeFirst()
            }
            guard plain.count <= ChangeLimits.itemBytesMax else {
                throw ChangeFault(
                    "", "has a document of more than \(ChangeLimits.itemBytesMax) bytes when numbers are written out")
            }
        }
        return plain
    }

    /// Returns the string literal that begins here, with its quotation marks.
    private static func stringLiteral(at text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var index = text.startIndex + 1
        while index < text.endIndex, text[index] != UInt8(ascii: "\"") {
            index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return text[..<min(index + 1, text.endIndex)]
    }

    private static func isPartOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    // MARK: Timestamps

    /// Converts a timestamp; `infinity` has neither a space nor a zone.
    private static func moment(_ text: String, hasZone: Bool) -> String {
        guard let space = text.firstIndex(of: " ") else { return text }
        var moment = text
        moment.replaceSubrange(space...space, with: "T")
        guard hasZone, let sign = moment.lastIndex(where: { $0 == "+" || $0 == "-" }), sign > space else {
            return moment
        }
        let minutes = moment.index(sign, offsetBy: 3, limitedBy: moment.endIndex) ?? moment.endIndex
        if minutes == moment.endIndex || moment[minutes] != ":" { moment.insert(contentsOf: ":00", at: minutes) }
        return moment
    }
}

/// A reader of `{1,NULL,"a,b"}`, with any number of dimensions that PostgreSQL supports.
private struct ArrayReader {
    private static let dimensionsMax = 6

    private var rest: ArraySlice<UInt8>
    private let element: SourceType
    private let delimiter: UInt8
    private let open = UInt8(ascii: "{")
    private let close = UInt8(ascii: "}")
    private let quote = UInt8(ascii: "\"")
    private let escape = UInt8(ascii: "\\")

    init(_ text: ArraySlice<UInt8>, _ element: SourceType, _ delimiter: UInt8) {
        (rest, self.element, self.delimiter) = (text, element, delimiter)
    }

    private func fault() -> ChangeFault { ChangeFault("", "has a malformed array") }

    mutating func array() throws(ChangeFault) -> JSONValue {
        // `[0:1]={…}`: JSON cannot express array bounds.
        if rest.first == UInt8(ascii: "[") { rest = rest.drop { $0 != open } }
        let value = try list(dimension: 1)
        guard rest.isEmpty else { throw fault() }
        return value
    }

    private mutating func list(dimension: Int) throws(ChangeFault) -> JSONValue {
        guard rest.popFirst() == open, dimension <= Self.dimensionsMax else { throw fault() }
        var values: [JSONValue] = []
        if rest.first == close {
            rest.removeFirst()
            return .array([])
        }
        while true {
            values.append(try rest.first == open ? list(dimension: dimension + 1) : item())
            let next = rest.popFirst()
            if next == close { return .array(values) }
            guard next == delimiter else { throw fault() }
        }
    }

    private mutating func item() throws(ChangeFault) -> JSONValue {
        guard rest.first == quote else {
            let text = rest.prefix { $0 != delimiter && $0 != close }
            rest = rest[text.endIndex...]
            if text.count == 4, text.elementsEqual("NULL".utf8) { return .null }
            return try element.json(of: text)
        }
        rest.removeFirst()
        var text: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == quote { return try element.json(of: text[...]) }
            if byte == escape {
                guard let escaped = rest.popFirst() else { break }
                text.append(escaped)
            } else {
                text.append(byte)
            }
        }
        throw fault()
    }
}

/// A reader of `(1,"a ""b""",)`: an empty field is null, and a quotation mark inside quotes is doubled.
private struct CompositeReader {
    private var rest: ArraySlice<UInt8>
    private let close = UInt8(ascii: ")")
    private let comma = UInt8(ascii: ",")
    private let quote = UInt8(ascii: "\"")
    private let escape = UInt8(ascii: "\\")

    init(_ text: ArraySlice<UInt8>) { rest = text }

    private func fault(_ reason: String) -> ChangeFault {
        ChangeFault("", "has a malformed composite value: \(reason)")
    }

    mutating func members(_ attributes: [SourceType.Attribute]) throws(ChangeFault) -> [String: JSONValue] {
        guard rest.popFirst() == UInt8(ascii: "(") else { throw fault("the opening parenthesis is missing") }
        var members: [String: JSONValue] = [:]
        for (index, attribute) in attributes.enumerated() {
            if index > 0, rest.popFirst() != comma {
                throw fault("its columns differ from the current columns of its type")
            }
            let text = try field()
            if let text {
                members[attribute.name] = try attribute.type.json(of: text[...])
            } else {
                members[attribute.name] = .null
            }
        }
        guard rest.popFirst() == close, rest.isEmpty else {
            throw fault("its columns differ from the current columns of its type")
        }
        return members
    }

    private mutating func field() throws(ChangeFault) -> [UInt8]? {
        guard let first = rest.first, first != comma, first != close else { return nil }
        var text: [UInt8] = []
        var isQuoted = false
        while let byte = rest.first {
            if !isQuoted, byte == comma || byte == close { return text }
            rest.removeFirst()
            switch byte {
            case quote where isQuoted && rest.first == quote:
                text.append(quote)
                rest.removeFirst()
            case quote: isQuoted.toggle()
            case escape:
                guard let escaped = rest.popFirst() else { throw fault("its end is missing") }
                text.append(escaped)
            default: text.append(byte)
            }
        }
        throw fault("its end is missing")
    }
}
