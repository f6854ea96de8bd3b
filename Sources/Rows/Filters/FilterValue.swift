import Values

/// One value of a filter: its text, and its interpretation, which is computed once when the filter is parsed.
///
/// If the column's type is declared, the text is read as that type, and invalid values are refused (``ColumnType``).
/// Otherwise the kind of the row's value decides the comparison:
/// - A **number** is compared by value with the text read as a decimal number.
/// - A **boolean** is compared with PostgreSQL's words (`true`, `t`, `yes`, `y`, `on`, `1` and their opposites, in any
///   case); false is less than true.
/// - A **text** is compared byte by byte, in UTF-8: `"10"` is less than `"9"`. UUIDs are compared ignoring case, and
///   two dates or times as points in time (``FilterMoment``). A number with so many digits that JSON would have rounded
///   it is compared as a number (``FilterNumber/init(longText:)``).
/// - An **array** or an **object** has no order, and neither has a text that cannot be read as the kind of the row's
///   value.
public struct FilterValue: Sendable, Hashable {
    /// UTF-8, in the spelling that equal values share. It is not a `String`, whose `==` treats canonically equivalent
    /// texts as equal.
    let bytes: [UInt8]
    private let reading: Reading
    let type: ColumnType?
    /// Whether only the bytes of texts are compared, as for nearly all values.
    private let isPlainText: Bool

    private enum Reading: Sendable, Hashable {
        case text
        case uuid
        case boolean(Bool)
        case number(FilterNumber)
        case real(Double)
        case moment(FilterMoment)
    }

    /// Creates a value for a column without a declared type.
    init(_ text: [UInt8]) {
        type = nil
        // Each kind is tried once, by the same rules as ``ComparedText/rewritten(_:)``, which rewrites a row's text.
        if let moment = text.withUnsafeBufferPointer(FilterMoment.init) {
            (bytes, reading) = (Array(moment.canonical(.timestamptz).utf8), .moment(moment))
        } else if let number = FilterNumber(text: text) {
            let isRewritten = number.isLong && text.withUnsafeBufferPointer(FilterNumber.isLongText)
            (bytes, reading) = (isRewritten ? Array(number.canonical.utf8) : text, .number(number))
        } else if let boolean = FilterValue.boolean(text) {
            (bytes, reading) = (text, .boolean(boolean))
        } else {
            bytes = text.withUnsafeBufferPointer(UUIDText.lowercased) ?? text
            reading = text.count == 36 && text[8] == UInt8(ascii: "-") ? .uuid : .text
        }
        isPlainText = reading == .text
    }

    /// Creates a value of the type; nil if the text is invalid.
    init?(_ text: [UInt8], as type: ColumnType) {
        self.type = type
        isPlainText = type == .text
        // All types except texts and UUIDs allow spaces around their values.
        let trimmed = FilterBytes.trimmed(text)
        switch type {
        case .text: (bytes, reading) = (text, .text)
        case .uuid:
            guard let uuid = UUIDText.canonical(text) else { return nil }
            (bytes, reading) = (uuid, .uuid)
        case .boolean:
            guard let flag = FilterValue.boolean(trimmed) else { return nil }
            (bytes, reading) = (Array((flag ? "true" : "false").utf8), .boolean(flag))
        case .smallint, .integer, .bigint:
            guard let integer = Int64(String(decoding: trimmed, as: UTF8.self)), type.range?.contains(integer) == true
            else { return nil }
            (bytes, reading) = (Array(String(integer).utf8), .number(.integer(integer)))
        case .numeric:
            guard let number = FilterNumber(numeric: trimmed), number.isNumeric else { return nil }
            (bytes, reading) = (Array(number.canonical.utf8), .number(number))
        case .real, .double:
            guard let real = RealNumber.value(of: trimmed, type) else { return nil }
            (bytes, reading) = (Array(RealNumber.canonical(real, type).utf8), .real(real))
        case .date, .time, .timestamp, .timestamptz:
            guard let moment = trimmed.withUnsafeBufferPointer({ FilterMoment($0, as: type) }) else { return nil }
            (bytes, reading) = (Array(moment.canonical(type).utf8), .moment(moment))
        case .json: return nil
        }
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The number that the text represents, for comparison with a row's number.
    var number: FilterNumber? { if case .number(let number) = reading { number } else { nil } }

    var boolean: Bool? {
        switch reading {
        case .boolean(let flag): flag
        case .number(.integer(0)) where type == nil && bytes.count == 1: false
        case .number(.integer(1)) where type == nil && bytes.count == 1: true
        default: nil
        }
    }

    /// Reads PostgreSQL's words for booleans, and their unambiguous prefixes.
    static func boolean(_ bytes: some Collection<UInt8>) -> Bool? {
        guard bytes.count <= 5 else { return nil }
        return switch String(decoding: bytes.map { $0 >= 65 && $0 <= 90 ? $0 | 0x20 : $0 }, as: UTF8.self) {
        case "true", "tru", "tr", "t", "yes", "ye", "y", "on", "1": true
        case "false", "fals", "fal", "fa", "f", "no", "n", "off", "of", "0": false
        default: nil
        }
    }

    /// Returns the order of the row's value relative to this one; nil if they cannot be compared, including NULL.
    func order(of value: JSONValue) -> FilterOrder? {
        switch value {
        case .null, .array, .object: return nil
        case .string(let text):
            return text.withUTF8Bytes { utf8 in
                if bytes.withUnsafeBufferPointer({ utf8.isSame(as: $0) }) { return .equal }
                guard isPlainText else { return readOrder(of: utf8) }
                return utf8.lexicographicallyPrecedes(bytes) ? .less : .greater
            }
        case .bool(let flag): return boolean.map { FilterOrder(flag ? 1 : 0, $0 ? 1 : 0) }
        case .integer(let integer):
            if case .number(.integer(let own)) = reading { return FilterOrder(integer, own) }
            return readOrder(of: value)
        case .number: return readOrder(of: value)
        }
    }

    private func readOrder(of value: JSONValue) -> FilterOrder? {
        if case .number(let own) = reading { return FilterNumber(of: value)?.order(against: own) }
        guard case .real(let own) = reading else { return nil }
        return RealNumber.value(of: value, type).map { FilterOrder($0, own) }
    }

    private func readOrder(of text: UnsafeBufferPointer<UInt8>) -> FilterOrder? {
        switch reading {
        case .text: break
        case .uuid:
            guard let lower = UUIDText.lowercased(text) else { break }
            if lower == bytes { return .equal }
            return lower.lexicographicallyPrecedes(bytes) ? .less : .greater
        case .moment(let own):
            guard let type else {
                guard let moment = FilterMoment(text) else { break }
                return FilterOrder(moment.microseconds, own.microseconds)
            }
            return FilterMoment(text, as: type).map { FilterOrder($0.microseconds, own.microseconds) }
        case .number(let own):
            guard type == nil else { return FilterNumber(numeric: text)?.order(against: own) }
            guard let number = FilterNumber(longText: text) else { break }
            return number.order(against: own)
        case .real(let own): return RealNumber.value(of: text, type).map { FilterOrder($0, own) }
        case .boolean: if type != nil { return nil }
        }
        return text.lexicographicallyPrecedes(bytes) ? .less : .greater
    }
}

extension FilterNumber {
    /// Whether it fits the type `numeric`.
    var isNumeric: Bool {
        guard case .long(let digits) = self else { return true }
        return digits.exponent <= 131_072 && digits.significant.count - digits.exponent <= 16_383
    }
}

extension FilterNumber {
    /// Reads the number of a row's column with a numeric type; nil for a value of another kind.
    init?(of value: JSONValue) {
        switch value {
        case .integer(let integer): self = .integer(integer)
        case .number(let real): self.init(real)
        case .string(let text): self.init(numeric: text.utf8)
        default: return nil
        }
    }
}

/// The numbers of the types `real` and `double precision`.
enum RealNumber {
    /// Returns the number of a row's column of the type; nil for a value of another kind.
    static func value(of value: JSONValue, _ type: ColumnType?) -> Double? {
        switch value {
        case .integer(let integer): rounded(Double(integer), type)
        case .number(let real): rounded(real, type)
        case .string(let text): Self.value(of: Array(text.utf8), type)
        default: nil
        }
    }

    /// Returns the nearest number of the type; nil for an invalid number, or one out of range.
    static func value(of text: some Collection<UInt8>, _ type: ColumnType?) -> Double? {
        guard let number = FilterNumber(numeric: text) else { return nil }
        // An exact double needs no second conversion.
        if case .real(let value) = number, type != .real || !value.isFinite { return value }
        let digits = String(decoding: text, as: UTF8.self)
        guard let value = type == .real ? Float(digits).map(Double.init) : Double(digits), value.isFinite,
            value != 0 || number == .integer(0)
        else { return nil }
        return value
    }

    static func rounded(_ value: Double, _ type: ColumnType?) -> Double {
        type == .real ? Double(Float(value)) : value
    }

    static func canonical(_ value: Double, _ type: ColumnType?) -> String {
        if !value.isFinite { return FilterNumber.real(value).canonical }
        if value == 0 { return "0.0" }
        return type == .real ? Float(value).description : value.description
    }
}
