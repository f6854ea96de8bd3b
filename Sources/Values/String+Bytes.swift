/// Comparison of texts by their bytes, as databases and tokens compare them. Swift's `==`, `<` and dictionaries treat
/// canonically equivalent texts as equal: `é` composed and decomposed, the Kelvin sign and `K`.
extension String {
    /// Calls the body with the UTF-8 bytes in place. Native strings, which all strings of this process are, are not
    /// copied.
    @inlinable
    public func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        var copy = self
        return copy.withUTF8(body)
    }

    @inlinable
    public func hasBytes(of other: String) -> Bool {
        withUTF8Bytes { own in other.withUTF8Bytes { own.isSame(as: $0) } }
    }
}

extension String? {
    public func hasBytes(of other: String?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.hasBytes(of: other)
    }
}

extension UInt8 {
    /// Whether the byte is an ASCII digit.
    @inlinable
    public var isDigit: Bool { (48...57).contains(self) }

    /// Whether the byte is an ASCII letter or digit.
    @inlinable
    public var isAlphanumeric: Bool {
        switch self {
        case 48...57, 65...90, 97...122: true
        default: false
        }
    }

    /// Whether the byte is a hexadecimal digit, of either case.
    @inlinable
    public var isHexadecimal: Bool { isDigit || (97...102).contains(self | 0x20) }
}

extension [UInt8] {
    /// Appends a number in decimal digits.
    public mutating func append(decimal number: Int64) {
        // 19 digits and a sign.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var place = 20
            var rest = number.magnitude
            repeat {
                place -= 1
                digits[place] = UInt8(truncatingIfNeeded: 48 + rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                place -= 1
                digits[place] = UInt8(ascii: "-")
            }
            append(contentsOf: UnsafeMutableBufferPointer(rebasing: digits[place...]))
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Returns the first index from `start` on of a byte that a JSON string escapes, or the end. These bytes are the
    /// quotation mark, the backslash and the control characters, including U+007F. It checks eight bytes at a time,
    /// because most of the text that is read and written is plain.
    @inlinable
    public func endOfPlainText(from start: Int) -> Int {
        firstPlace(from: start) { word in
            (word &- 0x2020_2020_2020_2020 | Self.zeros(word ^ 0x2222_2222_2222_2222)
                | Self.zeros(word ^ 0x5C5C_5C5C_5C5C_5C5C) | Self.zeros(word ^ 0x7F7F_7F7F_7F7F_7F7F)) & ~word
        }
    }

    /// Returns the first index from `start` on of a line feed or a carriage return, or the end.
    @inlinable
    public func endOfLine(from start: Int) -> Int {
        firstPlace(from: start) { word in
            Self.zeros(word ^ 0x0A0A_0A0A_0A0A_0A0A) | Self.zeros(word ^ 0x0D0D_0D0D_0D0D_0D0D)
        }
    }

    /// Returns the first index from `start` on of a matching byte, or the end.
    ///
    /// - Parameter marks: Sets the high bit of each matching byte, lowest byte first. Its carry may also mark bytes
    ///   above the first match.
    @inlinable @inline(__always)
    func firstPlace(from start: Int, marks: (UInt64) -> UInt64) -> Int {
        let raw = UnsafeRawBufferPointer(self)
        var index = start
        while index + 8 <= count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let marked = marks(word) & 0x8080_8080_8080_8080
            if marked != 0 { return index + marked.trailingZeroBitCount / 8 }
            index += 8
        }
        var rest: UInt64 = 0
        var place = count
        while place > index {
            place -= 1
            rest = rest << 8 | UInt64(self[place])
        }
        let marked = marks(rest) & 0x8080_8080_8080_8080
        return Swift.min(count, index + marked.trailingZeroBitCount / 8)
    }

    /// Sets the high bit of each byte that is zero.
    @inlinable
    static func zeros(_ word: UInt64) -> UInt64 { (word &- 0x0101_0101_0101_0101) & ~word }

    /// Whether no byte is above 0x7F.
    @inlinable
    public var isASCII: Bool {
        let raw = UnsafeRawBufferPointer(self)
        var (index, bits): (Int, UInt64) = (0, 0)
        while index + 8 <= count {
            bits |= raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            index += 8
        }
        while index < count {
            bits |= UInt64(self[index])
            index += 1
        }
        return bits & 0x8080_8080_8080_8080 == 0
    }

    /// Compares all bytes, eight at a time. Every lookup compares ids.
    @inlinable
    public func isSame(as other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        let left = UnsafeRawBufferPointer(self)
        let right = UnsafeRawBufferPointer(other)
        var index = 0
        while index + 8 <= count {
            guard
                left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                    == right.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            else { return false }
            index += 8
        }
        while index < count {
            guard left[index] == right[index] else { return false }
            index += 1
        }
        return true
    }

    /// Whether the bytes sort before the others, as in `memcmp` and both databases.
    @inlinable
    public func precedes(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        let left = UnsafeRawBufferPointer(self)
        let right = UnsafeRawBufferPointer(other)
        let common = Swift.min(count, other.count)
        var index = 0
        while index + 8 <= common {
            let own = UInt64(bigEndian: left.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let theirs = UInt64(bigEndian: right.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            if own != theirs { return own < theirs }
            index += 8
        }
        while index < common {
            if left[index] != right[index] { return left[index] < right[index] }
            index += 1
        }
        return count < other.count
    }
}
