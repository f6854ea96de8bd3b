/// A decimal number of any length: its digits, without zeros at either end, and where the point stands.
///
/// `-0.00120e5` is −0.12 × 10³, with the digits 12 and the exponent 3. Zero has no digits, and no sign.
public struct DecimalDigits: Sendable, Hashable {
    public let isNegative: Bool
    /// ASCII.
    public let significant: [UInt8]
    public let exponent: Int

    /// The largest exponent that is read: what a database can store has at most 131,072 digits before its point.
    private static let exponentMax = 1_000_000

    /// Nil for what is no decimal number: a sign, digits with at most one point among them, an exponent.
    public init?(_ text: some Collection<UInt8>) {
        var rest = text[...]
        var isNegative = false
        if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
            isNegative = sign == UInt8(ascii: "-")
            rest = rest.dropFirst()
        }
        var significant: [UInt8] = []
        var (exponent, digitCount, hasPoint) = (0, 0, false)
        while let byte = rest.first, byte | 0x20 != UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if byte == UInt8(ascii: "."), !hasPoint {
                hasPoint = true
                continue
            }
            guard byte >= 48, byte <= 57 else { return nil }
            digitCount += 1
            if byte != 48 || !significant.isEmpty {
                significant.append(byte)
                if !hasPoint { exponent += 1 }
            } else if hasPoint {
                exponent -= 1
            }
        }
        guard digitCount > 0 else { return nil }
        if !rest.isEmpty {
            guard let written = Int(String(decoding: rest.dropFirst(), as: UTF8.self)),
                abs(written) <= Self.exponentMax
            else { return nil }
            exponent += written
        }
        while significant.last == 48 { significant.removeLast() }
        self.significant = significant
        self.exponent = significant.isEmpty ? 0 : exponent
        self.isNegative = isNegative && !significant.isEmpty
    }

    /// Nil where the number has a fraction, or more digits than 64 bits hold.
    public var integer: Int64? {
        guard exponent >= significant.count, exponent <= 19 else { return significant.isEmpty ? 0 : nil }
        return Int64(description)
    }

    /// The double whose shortest spelling has the very same digits; nil if there is none.
    public var exactDouble: Double? {
        // No shortest spelling is longer.
        guard significant.count <= 17, let double = Double(scientific), double.isFinite,
            DecimalDigits(double.description.utf8) == self
        else { return nil }
        return double
    }

    private var scientific: String {
        (isNegative ? "-" : "") + "0." + String(decoding: significant, as: UTF8.self) + "e\(exponent)"
    }
}

extension DecimalDigits: CustomStringConvertible {
    /// The one spelling of the number: without an exponent, unless that would take many zeros.
    public var description: String {
        guard !significant.isEmpty else { return "0" }
        guard (-20...1200).contains(exponent) else { return scientific }
        var digits = significant
        if exponent <= 0 { digits.insert(contentsOf: repeatElement(48, count: 1 - exponent), at: 0) }
        let whole = max(exponent, 1)
        if digits.count < whole { digits += repeatElement(48, count: whole - digits.count) }
        if digits.count > whole { digits.insert(UInt8(ascii: "."), at: whole) }
        return (isNegative ? "-" : "") + String(decoding: digits, as: UTF8.self)
    }
}

extension DecimalDigits: Comparable {
    public static func < (left: DecimalDigits, right: DecimalDigits) -> Bool {
        if left.isNegative != right.isNegative { return left.isNegative }
        return left.isNegative ? right.isSmaller(than: left) : left.isSmaller(than: right)
    }

    /// By magnitude.
    private func isSmaller(than other: DecimalDigits) -> Bool {
        guard !significant.isEmpty, !other.significant.isEmpty, exponent != other.exponent else {
            return significant.isEmpty || other.significant.isEmpty
                ? significant.isEmpty && !other.significant.isEmpty
                : significant.lexicographicallyPrecedes(other.significant)
        }
        return exponent < other.exponent
    }
}
