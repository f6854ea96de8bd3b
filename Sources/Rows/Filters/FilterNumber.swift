import Values

/// A number as filters compare it: by value, regardless of spelling (`5`, `5.0`, `+05`, `5e0`) and length.
///
/// Comparisons are exact: a ``JSONValue`` is a `Double` only if the double has exactly the digits that were sent.
enum FilterNumber: Sendable, Hashable {
    case integer(Int64)
    /// Never an integer in the range of `Int64`, which is an `integer`.
    case real(Double)
    /// A number that neither of the two represents exactly.
    indirect case long(DecimalDigits)

    init?(_ value: Double) {
        guard value.isFinite else { return nil }
        if let integer = Int64(exactly: value) { self = .integer(integer) } else { self = .real(value) }
    }

    /// Reads a decimal number; nil for other texts.
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

    /// Reads a value as PostgreSQL does for the type `numeric`, including the words for special values.
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

    /// Reads a row's text as a number if the column has no declared type, and JSON would have lost digits of the number
    /// (``JSONValue/exactNumber(_:)``). Every other text stays a text.
    init?(longText bytes: UnsafeBufferPointer<UInt8>) {
        guard Self.isLongText(bytes), let number = FilterNumber(text: bytes), number.isLong else { return nil }
        self = number
    }

    /// Whether a text is a long number as JSON would write it. A text with leading zeros or a point at an end is not
    /// JSON: it is a code, and stays a text.
    static func isLongText(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        // Nearly all texts end here.
        guard bytes.count > 15, bytes[0] == UInt8(ascii: "-") || (48...57).contains(bytes[0]) else { return false }
        let first = bytes[0] == UInt8(ascii: "-") ? 1 : 0
        return (48...57).contains(bytes[first]) && (48...57).contains(bytes[bytes.count - 1])
            && (bytes[first] != 48 || bytes[first + 1] == UInt8(ascii: "."))
    }

    var isLong: Bool { if case .long = self { true } else { false } }

    /// The canonical spelling that equal numbers share in a hash table.
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

    /// Compares exactly. A real here is either outside the range of `Int64` or has a fraction, and then its floor is
    /// exact.
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

/// The order of a row's value relative to a filter's.
enum FilterOrder: Sendable, Hashable {
    case less, equal, greater

    init<Value: Comparable>(_ left: Value, _ right: Value) {
        self = left < right ? .less : left == right ? .equal : .greater
    }

    /// Compares as databases do: NaN is equal to itself and greater than all numbers.
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
