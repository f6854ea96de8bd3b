import Values

/// The bytes with a meaning in the grammar of filters.
enum FilterBytes {
    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }

    /// Bytes that only a quoted value may contain.
    static func isReserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "\""), UInt8(ascii: "\\"): true
        default: false
        }
    }
}

extension String {
    /// The bytes in place: no copy for native strings, which all strings of this process are.
    func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        var copy = self
        return copy.withUTF8(body)
    }
}

/// UUIDs are equal whatever the case of their letters, as the type `uuid` has it: databases write them in lower case,
/// Swift's `UUID` in upper case.
enum UUIDText {
    /// The text in lower case if it is a UUID with a capital letter in it; nil for every other text.
    static func lowercased(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count == 36, text[8] == 0x2D else { return nil }
        // Nearly all texts have none, and every lookup checks: so this comes first, in a loop without branches.
        var capitals: UInt8 = 0
        for byte in text { capitals |= byte &- 0x41 < 6 ? 1 : 0 }
        guard capitals != 0 else { return nil }
        for (index, byte) in text.enumerated() {
            switch (index, byte) {
            case (8, 0x2D), (13, 0x2D), (18, 0x2D), (23, 0x2D): continue
            case (8, _), (13, _), (18, _), (23, _): return nil
            case (_, 0x30...0x39), (_, 0x41...0x46), (_, 0x61...0x66): continue
            default: return nil
            }
        }
        return text.map { $0 >= 0x41 && $0 <= 0x46 ? $0 | 0x20 : $0 }
    }

    /// The text as filters store it.
    static func normalized(_ text: [UInt8]) -> [UInt8] { text.withUnsafeBufferPointer(lowercased) ?? text }
}

extension String {
    /// The bytes by which filters compare a text.
    func withComparedBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withUTF8Bytes { bytes in
            UUIDText.lowercased(bytes)?.withUnsafeBufferPointer(body) ?? body(bytes)
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Byte by byte equal, eight at a time: ids are compared at every lookup.
    func isSame(as other: UnsafeBufferPointer<UInt8>) -> Bool {
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
}

extension JSONValue {
    /// Whether both are the same value in the same bytes, so that no filter can tell them apart.
    ///
    /// Not `==`, for which canonically equivalent texts are equal. False for arrays and objects, whose comparison could
    /// cost more than it saves.
    func isSame(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)):
            left.withUTF8Bytes { left in right.withUTF8Bytes { left.isSame(as: $0) } }
        default: false
        }
    }
}
