import Values

/// How the text form of a PostgreSQL type becomes JSON, as `to_jsonb` would write it.
///
/// The text forms are those of a session with `DateStyle` ISO, `IntervalStyle` postgres, `TimeZone` UTC and
/// `bytea_output` hex.
public indirect enum SourceType: Sendable, Hashable {
    case boolean, number
    /// Its text as it is: texts, ids, dates, times, intervals, networks, ranges, enumerations, binaries.
    case text
    /// `2026-01-10 09:30:00.5`
    case timestamp
    /// `2026-01-10 09:30:00.5+00`
    case timestampWithZone
    case json, jsonb
    case array(of: SourceType, delimiter: UInt8)
    /// Only the server knows: composite types, and those for which somebody made a cast to JSON.
    case asked

    /// Types that PostgreSQL ships, by their numbers in `pg_type`, which never change. Others are looked up there.
    public static let known: [UInt32: SourceType] = {
        var known: [UInt32: SourceType] = [
            16: .boolean, 114: .json, 3802: .jsonb, 1114: .timestamp, 1184: .timestampWithZone, 1000: comma(.boolean),
            199: comma(.json), 3807: comma(.jsonb), 1115: comma(.timestamp), 1185: comma(.timestampWithZone),
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

    /// The value; nil where only the server knows it.
    ///
    /// - Throws: what is no value of the type.
    public func json(of text: ArraySlice<UInt8>) throws(ChangeFault) -> JSONValue? {
        switch self {
        case .boolean: return .bool(text.first == UInt8(ascii: "t"))
        case .number: return Self.number(try Self.string(text))
        case .text: return .string(try Self.string(text))
        case .timestamp: return .string(Self.moment(try Self.string(text), hasZone: false))
        case .timestampWithZone: return .string(Self.moment(try Self.string(text), hasZone: true))
        case .jsonb: return try Self.document(text)
        case .json:
            // What jsonb writes otherwise, or refuses: an exponent, a name that stands twice.
            if Self.hasExponent(text) { return nil }
            return try? Self.document(text)
        case .array(let element, let delimiter):
            var reader = ArrayReader(text, element, delimiter)
            return try reader.array()
        case .asked: return nil
        }
    }

    /// Reads what the server answered.
    public static func document(_ text: ArraySlice<UInt8>) throws(ChangeFault) -> JSONValue {
        do throws(Failure) {
            return try JSONValue(parsing: Array(text), depthMax: ChangeLimits.embeddedDepthMax, isExact: true)
        } catch {
            throw ChangeFault("", "has a document that cannot be taken: \(error.detail)")
        }
    }

    /// Reads a row that the server has written whole, by `to_jsonb`.
    public static func row(_ text: ArraySlice<UInt8>) throws(ChangeFault) -> [String: JSONValue] {
        guard text.count <= ChangeLimits.itemBytesMax else {
            throw ChangeFault("", "has \(text.count) bytes; at most \(ChangeLimits.itemBytesMax) are taken")
        }
        guard case .object(let row) = try document(text) else { throw ChangeFault("", "is no row") }
        return row
    }

    private static func string(_ text: ArraySlice<UInt8>) throws(ChangeFault) -> String {
        if text.allSatisfy({ $0 < 0x80 }) { return String(decoding: text, as: UTF8.self) }
        guard let string = String(validating: text, as: UTF8.self) else {
            throw ChangeFault("", "has a text that is not UTF-8")
        }
        return string
    }

    private static func hasExponent(_ text: ArraySlice<UInt8>) -> Bool {
        zip(text, text.dropFirst()).contains { (48...57).contains($0) && $1 | 0x20 == UInt8(ascii: "e") }
    }

    /// NaN and the infinities are texts.
    private static func number(_ text: String) -> JSONValue {
        if text.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "n") }) { return .string(text) }
        return .exactNumber(withoutExponent(text))
    }

    /// `1.5e-07` as `0.00000015`: numeric has no exponents, and jsonb's numbers are numeric.
    private static func withoutExponent(_ text: String) -> String {
        let parts = text.split(separator: "e", maxSplits: 1)
        guard parts.count == 2, let exponent = Int(parts[1]), abs(exponent) <= 400 else { return text }
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
        let fraction = digits[cut...]
        return (isNegative ? "-" : "") + digits[..<cut] + (fraction.isEmpty ? "" : "." + fraction)
    }

    /// `infinity` has neither a space nor a zone.
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

/// Reads `{1,NULL,"a,b"}`, with as many dimensions as PostgreSQL has.
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

    private func fault() -> ChangeFault { ChangeFault("", "has an array that does not end as it begins") }

    mutating func array() throws(ChangeFault) -> JSONValue? {
        // `[0:1]={…}`: bounds that JSON has no place for.
        if rest.first == UInt8(ascii: "[") { rest = rest.drop { $0 != open } }
        let value = try list(dimension: 1)
        guard rest.isEmpty else { throw fault() }
        return value
    }

    private mutating func list(dimension: Int) throws(ChangeFault) -> JSONValue? {
        guard rest.popFirst() == open, dimension <= Self.dimensionsMax else { throw fault() }
        var values: [JSONValue] = []
        var isKnown = true
        if rest.first == close {
            rest.removeFirst()
            return .array([])
        }
        while true {
            let value = try rest.first == open ? list(dimension: dimension + 1) : item()
            if let value { values.append(value) } else { isKnown = false }
            let next = rest.popFirst()
            if next == close { return isKnown ? .array(values) : nil }
            guard next == delimiter else { throw fault() }
        }
    }

    private mutating func item() throws(ChangeFault) -> JSONValue? {
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
