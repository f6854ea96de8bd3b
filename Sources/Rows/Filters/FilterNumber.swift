import Values

/// A number as filters compare it: by value, whatever its spelling (`5`, `5.0`, `+05`, `5e0`) and however long it is.
///
/// Comparisons are exact: a ``JSONValue`` is a `Double` only where the double's digits are those that were sent.
enum FilterNumber: Sendable, Hashable {
    case integer(Int64)
    /// Never a whole number in the range of `Int64`: such a one is an `integer`.
    case real(Double)
    /// What neither of the two has to its last digit.
    indirect case long(DecimalDigits)

    init?(_ value: Double) {
        guard value.isFinite else { return nil }
        if let integer = Int64(exactly: value) { self = .integer(integer) } else { self = .real(value) }
    }

    /// Nil if the text is no decimal number.
    init?(text bytes: some Collection<UInt8>) {
        guard let digits = DecimalDigits(bytes) else { return nil }
        if let integer = digits.integer {
            self = .integer(integer)
        } else if let real = digits.exactDouble {
            self = .real(real)
        } else {
            self = .long(digits)
        }
    }

    /// As PostgreSQL reads a value of the type `numeric`: also the words for what is no number.
    init?(numeric bytes: some Collection<UInt8>) {
        // Nearly all values end here.
        if let number = FilterNumber(text: bytes) {
            self = number
            return
        }
        guard bytes.count <= 9 else { return nil }
        switch String(decoding: bytes, as: UTF8.self).lowercased() {
        case "nan": self = .real(.nan)
        case "infinity", "inf", "+infinity", "+inf": self = .real(.infinity)
        case "-infinity", "-inf": self = .real(-.infinity)
        default: return nil
        }
    }

    /// The number that a row's text is, where the column's type is not declared: one that JSON would have lost digits
    /// of (``JSONValue/exactNumber(_:)``). Every other text is a text.
    init?(longText bytes: UnsafeBufferPointer<UInt8>) {
        guard Self.isLongText(bytes), let number = FilterNumber(text: bytes), number.isLong else { return nil }
        self = number
    }

    /// Whether a text is written as a long number is in JSON. Zeros in front, and a point at an end, are no JSON: it is a
    /// code, and a text.
    static func isLongText(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        // Nearly all texts end here.
        guard bytes.count > 15, bytes[0] == UInt8(ascii: "-") || (48...57).contains(bytes[0]) else { return false }
        let first = bytes[0] == UInt8(ascii: "-") ? 1 : 0
        return (48...57).contains(bytes[first]) && (48...57).contains(bytes[bytes.count - 1])
            && (bytes[first] != 48 || bytes[first + 1] == UInt8(ascii: "."))
    }

    var isLong: Bool { if case .long = self { true } else { false } }

    /// The one spelling that equal numbers have in a hash table.
    var canonical: String {
        switch self {
        case .integer(let value): String(value)
        case .real(let value) where value.isNaN: "NaN"
        case .real(let value) where value.isInfinite: value < 0 ? "-Infinity" : "Infinity"
        case .real(let value): value.description
        case .long(let digits): digits.description
        }
    }

    func order(against other: FilterNumber) -> FilterOrder {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): FilterOrder(left, right)
        case (.real(let left), .real(let right)): FilterOrder(left, right)
        case (.integer(let left), .real(let right)): FilterNumber.order(left, right)
        case (.real(let left), .integer(let right)): FilterNumber.order(right, left).reversed
        case (.long(let left), _): FilterNumber.order(left, other)
        case (_, .long(let right)): FilterNumber.order(right, self).reversed
        }
    }

    /// Exact: a real here either lies outside of `Int64` or has a fraction, and then its floor is exact.
    private static func order(_ integer: Int64, _ real: Double) -> FilterOrder {
        if real >= 0x1p63 || real.isNaN { return .less }
        if real < -0x1p63 { return .greater }
        return integer <= Int64(real.rounded(.down)) ? .less : .greater
    }

    private static func order(_ digits: DecimalDigits, _ other: FilterNumber) -> FilterOrder {
        switch other {
        case .long(let right): return FilterOrder(digits, right)
        case .real(let right) where !right.isFinite: return right < 0 ? .greater : .less
        case .integer, .real:
            guard let right = DecimalDigits(other.canonical.utf8) else { return .less }
            return FilterOrder(digits, right)
        }
    }
}

/// How a row's value stands to a filter's.
enum FilterOrder: Sendable, Hashable {
    case less, equal, greater

    init<Value: Comparable>(_ left: Value, _ right: Value) {
        self = left < right ? .less : left == right ? .equal : .greater
    }

    /// As databases order them: what is no number is equal to itself and greater than all numbers.
    init(_ left: Double, _ right: Double) {
        if left.isNaN || right.isNaN {
            self = FilterOrder(left.isNaN ? 1 : 0, right.isNaN ? 1 : 0)
        } else {
            self = left < right ? .less : left == right ? .equal : .greater
        }
    }

    var reversed: FilterOrder {
        switch self {
        case .less: .greater
        case .equal: .equal
        case .greater: .less
        }
    }
}
