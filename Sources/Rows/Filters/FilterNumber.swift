/// A number as filters compare it: by value, whatever its spelling (`5`, `5.0`, `+05`, `5e0`).
///
/// Whole numbers of 64 bits are exact. Everything else is the nearest `Double`, which is how ``JSONValue`` reads the
/// row's own numbers, so the same decimal is equal on both sides.
enum FilterNumber: Sendable, Hashable {
    case integer(Int64)
    /// Finite, and never a whole number in the range of `Int64`: such a one is an `integer`.
    case real(Double)

    init?(_ value: Double) {
        guard value.isFinite else { return nil }
        if let integer = Int64(exactly: value) { self = .integer(integer) } else { self = .real(value) }
    }

    /// Nil if the text is no decimal number, or one outside the range of `Double` (`1e400`, `1e-400`).
    init?(text: some BidirectionalCollection<UInt8>) {
        var rest = text[...]
        if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { rest.removeFirst() }
        let whole = rest.prefix(while: FilterNumber.isDigit)
        rest = rest[whole.endIndex...]
        var fraction = rest[rest.startIndex..<rest.startIndex]
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix(while: FilterNumber.isDigit)
            rest = rest[fraction.endIndex...]
        }
        guard !(whole.isEmpty && fraction.isEmpty) else { return nil }
        let isNegative = text.first == UInt8(ascii: "-")
        if rest.isEmpty, fraction.allSatisfy({ $0 == 48 }) {
            let digits = String(decoding: whole, as: UTF8.self)
            if let integer = Int64((isNegative ? "-" : "") + (digits.isEmpty ? "0" : digits)) {
                self = .integer(integer)
                return
            }
        }
        if let exponent = rest.first {
            guard exponent | 0x20 == 0x65 else { return nil }
            rest.removeFirst()
            if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { rest.removeFirst() }
            guard !rest.isEmpty, rest.allSatisfy(FilterNumber.isDigit) else { return nil }
        }
        let isZero = whole.allSatisfy { $0 == 48 } && fraction.allSatisfy { $0 == 48 }
        guard let value = Double(String(decoding: text, as: UTF8.self)), isZero || value != 0 else { return nil }
        self.init(value)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 48 && byte <= 57 }

    /// The one spelling that equal numbers have in a hash table.
    var canonical: String {
        switch self {
        case .integer(let value): String(value)
        case .real(let value): value.description
        }
    }

    func order(against other: FilterNumber) -> FilterOrder {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): FilterOrder(left, right)
        case (.real(let left), .real(let right)): FilterOrder(left, right)
        case (.integer(let left), .real(let right)): FilterNumber.order(left, right)
        case (.real(let left), .integer(let right)): FilterNumber.order(right, left).reversed
        }
    }

    /// Exact: a real here either lies outside of `Int64` or has a fraction, and then its floor is exact.
    private static func order(_ integer: Int64, _ real: Double) -> FilterOrder {
        if real >= 0x1p63 { return .less }
        if real < -0x1p63 { return .greater }
        return integer <= Int64(real.rounded(.down)) ? .less : .greater
    }
}

/// How a row's value stands to a filter's.
enum FilterOrder: Sendable, Hashable {
    case less, equal, greater

    init<Value: Comparable>(_ left: Value, _ right: Value) {
        self = left < right ? .less : left == right ? .equal : .greater
    }

    var reversed: FilterOrder {
        switch self {
        case .less: .greater
        case .equal: .equal
        case .greater: .less
        }
    }
}
