import Values

/// One value of a filter, as its text and as everything that text can be read as.
///
/// A filter does not know the types of the columns: the row's value decides how it is compared.
/// - A **number** is compared by value with the text read as a decimal number.
/// - A **boolean** is compared with PostgreSQL's words (`true`, `t`, `yes`, `y`, `on`, `1` and their opposites, in any
///   case); false is less than true.
/// - A **text** is compared byte by byte, in UTF-8. Times, UUIDs and numbers that a feed writes as text are texts:
///   RFC 3339 times in one form and zone are in order, `"10"` is less than `"9"`. Only of a UUID the case of its
///   letters does not count (``UUIDText``).
/// - With an **array** or an **object**, or where the text cannot be read as the row's kind, there is no order at all.
public struct FilterValue: Sendable, Hashable {
    /// UTF-8. Bytes and not a `String`, for whose `==` canonically equivalent texts are equal.
    let bytes: [UInt8]
    let number: FilterNumber?
    let boolean: Bool?

    init(_ text: [UInt8]) {
        let bytes = UUIDText.normalized(text)
        self.bytes = bytes
        self.number = FilterNumber(text: bytes)
        self.boolean = FilterValue.boolean(bytes)
    }

    public init(_ text: String) {
        self.init(Array(text.utf8))
    }

    public var text: String { String(decoding: bytes, as: UTF8.self) }

    static func boolean(_ bytes: some Collection<UInt8>) -> Bool? {
        guard bytes.count <= 5 else { return nil }
        return switch String(decoding: bytes.map { $0 >= 65 && $0 <= 90 ? $0 | 0x20 : $0 }, as: UTF8.self) {
        case "true", "t", "yes", "y", "on", "1": true
        case "false", "f", "no", "n", "off", "0": false
        default: nil
        }
    }

    /// How the row's value stands to this one; nil where they cannot be compared, NULL included.
    func order(of value: JSONValue) -> FilterOrder? {
        switch value {
        case .null, .array, .object: return nil
        case .bool(let flag): return boolean.map { FilterOrder(flag ? 1 : 0, $0 ? 1 : 0) }
        case .integer(let integer): return number.map { FilterNumber.integer(integer).order(against: $0) }
        case .number(let real):
            guard let number, let own = FilterNumber(real) else { return nil }
            return own.order(against: number)
        case .string(let text):
            return text.withComparedBytes { utf8 in
                if bytes.withUnsafeBufferPointer({ utf8.isSame(as: $0) }) { return .equal }
                return utf8.lexicographicallyPrecedes(bytes) ? .less : .greater
            }
        }
    }
}
