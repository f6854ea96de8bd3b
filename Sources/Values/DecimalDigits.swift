/// A decimal number of any length: its digits, without zeros at either end, and the position of the point.
///
/// `-0.00120e5` is −0.12 × 10³, with the digits 12 and the exponent 3. Zero has no digits, and no sign.
public struct DecimalDigits: Sendable, Hashable {
    public let isNegative: Bool
    /// The digits in ASCII.
    public let significant: [UInt8]
    public let exponent: Int

    /// The largest exponent that is read. A database can store at most 131,072 digits before the point.
    private static let exponentMax = 1_000_000

    /// Reads a decimal number: a sign, digits with at most one point among them, an exponent. Nil if malformed.
    public init?(_ text: some Collection<UInt8>) {
        let read =
            text.withContiguousStorageIfAvailable { DecimalDigits(bytes: $0) }
            ?? Array(text).withUnsafeBufferPointer { DecimalDigits(bytes: $0) }
        guard let read else { return nil }
        self = read
    }

    /// Reads each byte once.
    private init?(bytes: UnsafeBufferPointer<UInt8>) {
        var index = 0
        var isNegative = false
        if let sign = bytes.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
            isNegative = sign == UInt8(ascii: "-")
            index = 1
        }
        var significant: [UInt8] = []
        // Growing step by step would cost more than reading the digits.
        significant.reserveCapacity(min(bytes.count, 64))
        var (exponent, digitCount, hasPoint) = (0, 0, false)
        while index < bytes.count, bytes[index] | 0x20 != UInt8(ascii: "e") {
            let byte = bytes[index]
            index += 1
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
        if index < bytes.count {
            guard let written = Self.writtenExponent(bytes[(index + 1)...]) else { return nil }
            exponent += written
        }
        while significant.last == 48 { significant.removeLast() }
        self.significant = significant
        self.exponent = significant.isEmpty ? 0 : exponent
        self.isNegative = isNegative && !significant.isEmpty
    }

    /// Returns the digits after the `e`; nil if they are not a number, or exceed ``exponentMax``.
    private static func writtenExponent(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        var digits = text
        let sign = digits.first
        if sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { digits = digits.dropFirst() }
        guard !digits.isEmpty else { return nil }
        var value = 0
        for byte in digits {
            guard byte >= 48, byte <= 57 else { return nil }
            value = value * 10 + Int(byte - 48)
            guard value <= exponentMax else { return nil }
        }
        return sign == UInt8(ascii: "-") ? -value : value
    }

    /// The integer value; nil if the number has a fraction, or does not fit 64 bits.
    public var integer: Int64? {
        guard exponent >= significant.count, exponent <= 19 else { return significant.isEmpty ? 0 : nil }
        // Accumulated below zero, where the range is larger by one.
        var value: Int64 = 0
        for place in 0..<exponent {
            let digit = place < significant.count ? Int64(significant[place] - 48) : 0
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, isTooSmall) = product.subtractingReportingOverflow(digit)
            guard !isTooLarge, !isTooSmall else { return nil }
            value = sum
        }
        guard !isNegative else { return value }
        let (magnitude, isTooLarge) = Int64(0).subtractingReportingOverflow(value)
        return isTooLarge ? nil : magnitude
    }

    /// The double whose shortest spelling has exactly these digits, if one exists.
    public var exactDouble: Double? {
        // No shortest spelling is longer.
        guard significant.count <= 17 else { return nil }
        if significant.count <= 15, (-290...300).contains(exponent) {
            // Two different numbers of 15 digits never share a double, so the shortest spelling need not be compared.
            return Self.power(exponent - significant.count).map(scaled) ?? Double(scientific)
        }
        guard let double = Double(scientific), double.isFinite, DecimalDigits(double.description.utf8) == self else {
            return nil
        }
        return double
    }

    /// The number as digits and an exponent, made in one piece.
    private var scientific: String {
        var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
        text.reserveCapacity(significant.count + 12)
        text += significant.isEmpty ? [48] : significant
        text.append(UInt8(ascii: "e"))
        text += String(exponent - significant.count).utf8
        return String(decoding: text, as: UTF8.self)
    }

    /// Multiplies or divides by an exact power of ten. Both factors are exact, so the result is rounded once and is
    /// correct.
    private func scaled(by power: (factor: Double, isDivisor: Bool)) -> Double {
        let whole = Double(significant.reduce(into: Int64(0)) { $0 = $0 * 10 + Int64($1 - 48) })
        let magnitude = power.isDivisor ? whole / power.factor : whole * power.factor
        return isNegative ? -magnitude : magnitude
    }

    /// Returns a power of ten that a double represents exactly; nil for others.
    private static func power(_ exponent: Int) -> (factor: Double, isDivisor: Bool)? {
        guard (-22...22).contains(exponent) else { return nil }
        return (powers[exponent < 0 ? -exponent : exponent], exponent < 0)
    }

    private static let powers: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]
}

extension DecimalDigits: CustomStringConvertible {
    /// The canonical spelling: digits with a point or zeros, or with an exponent (`12e98`) if that is shorter.
    ///
    /// It is at most two bytes longer than the shortest text that reads as this number.
    public var description: String {
        guard !significant.isEmpty else { return "0" }
        let power = String(exponent - significant.count)
        let plainCount =
            exponent <= 0 ? 2 - exponent + significant.count : max(exponent, significant.count + 1)
        guard exponent == significant.count || plainCount <= significant.count + 1 + power.utf8.count else {
            return (isNegative ? "-" : "") + String(decoding: significant, as: UTF8.self) + "e" + power
        }
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

    /// Compares the magnitudes.
    private func isSmaller(than other: DecimalDigits) -> Bool {
        guard !significant.isEmpty, !other.significant.isEmpty, exponent != other.exponent else {
            return significant.isEmpty || other.significant.isEmpty
                ? significant.isEmpty && !other.significant.isEmpty
                : significant.lexicographicallyPrecedes(other.significant)
        }
        return exponent < other.exponent
    }
}
