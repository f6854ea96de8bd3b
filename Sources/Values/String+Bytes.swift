/// Texts as databases and tokens tell them apart: by their bytes. For Swift's `==`, `<` and dictionaries canonically
/// equivalent texts are one: `é` composed and decomposed, the Kelvin sign and `K`.
extension String {
    /// The bytes in place: no copy for native strings, which all strings of this process are.
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
    /// Whether it is a letter or a digit of ASCII.
    @inlinable
    public var isAlphanumeric: Bool {
        switch self {
        case 48...57, 65...90, 97...122: true
        default: false
        }
    }
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
    /// The first place from `start` on where the text of a JSON string does not stand for itself: a quotation mark, a
    /// backslash or a control character, U+007F among them; the end without one. Eight bytes at a time: most of what is
    /// read and written is such text.
    @inlinable
    public func endOfPlainText(from start: Int) -> Int {
        firstPlace(from: start) { word in
            (word &- 0x2020_2020_2020_2020 | Self.zeros(word ^ 0x2222_2222_2222_2222)
                | Self.zeros(word ^ 0x5C5C_5C5C_5C5C_5C5C) | Self.zeros(word ^ 0x7F7F_7F7F_7F7F_7F7F)) & ~word
        }
    }

    /// The first place from `start` on of a line feed or a carriage return; the end without one.
    @inlinable
    public func endOfLine(from start: Int) -> Int {
        firstPlace(from: start) { word in
            Self.zeros(word ^ 0x0A0A_0A0A_0A0A_0A0A) | Self.zeros(word ^ 0x0D0D_0D0D_0D0D_0D0D)
        }
    }

    /// The first place from `start` on of a byte that is looked for; the end without one.
    ///
    /// - Parameter marks: sets the high bit of each byte that is looked for, lowest byte first. Those above the first one
    ///   may be marked by its carry.
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

    /// Has the high bit of each byte set that is zero.
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

    /// Byte by byte equal, eight at a time: ids are compared at every lookup.
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

    /// In the order of bytes, as `memcmp` and both databases have it.
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
