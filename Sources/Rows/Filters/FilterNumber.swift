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
    init?(text bytes: some Collection<UInt8>) {
        guard bytes.allSatisfy({ (48...57).contains($0) || "+-.eE".utf8.contains($0) }) else { return nil }
        let whole = bytes.prefix { $0 != UInt8(ascii: ".") }
        if bytes.dropFirst(whole.count + 1).allSatisfy({ $0 == 48 }),
            let integer = Int64(String(decoding: whole, as: UTF8.self))
        {
            self = .integer(integer)
            return
        }
        let isZero = bytes.prefix { $0 | 0x20 != 0x65 }.allSatisfy { !(49...57).contains($0) }
        guard let value = Double(String(decoding: bytes, as: UTF8.self)), isZero || value != 0 else { return nil }
        self.init(value)
    }

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
