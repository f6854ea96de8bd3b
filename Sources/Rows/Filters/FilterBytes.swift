import Values

/// The bytes with a meaning in the grammar of filters.
enum FilterBytes {
    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }

    /// Returns the text without spaces at its ends. Nearly all texts are returned as they are.
    static func trimmed(_ text: [UInt8]) -> [UInt8] {
        guard let first = text.first, let last = text.last, isSpace(first) || isSpace(last) else { return text }
        var rest = text[...].drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return Array(rest)
    }

    /// Whether only a quoted value may contain the byte.
    static func isReserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "\""), UInt8(ascii: "\\"): true
        default: false
        }
    }
}

/// Comparison of UUIDs ignoring the case of letters, as the type `uuid` does. Databases write them in lower case,
/// Swift's `UUID` in upper case.
enum UUIDText {
    /// Returns the text in lower case if it is a UUID with a capital letter; nil for every other text.
    static func lowercased(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count == 36, text[8] == 0x2D else { return nil }
        // Nearly all texts have no capitals, and every lookup checks. So this comes first, in a loop without branches.
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

    /// Converts any of PostgreSQL's spellings (in braces, with hyphens after any four digits, or without hyphens) to
    /// its output form; nil if it is not a UUID.
    static func canonical(_ text: [UInt8]) -> [UInt8]? {
        var rest = text[...]
        if rest.first == UInt8(ascii: "{"), rest.last == UInt8(ascii: "}") { rest = rest.dropFirst().dropLast() }
        var uuid: [UInt8] = []
        var (digits, isBehindHyphen) = (0, false)
        for byte in rest {
            if byte == 0x2D, digits % 4 == 0, digits > 0, digits < 32, !isBehindHyphen {
                isBehindHyphen = true
                continue
            }
            isBehindHyphen = false
            guard byte.isHexadecimal, digits < 32 else { return nil }
            uuid.append(byte >= 65 && byte <= 70 ? byte | 0x20 : byte)
            digits += 1
            if [8, 12, 16, 20].contains(digits) { uuid.append(0x2D) }
        }
        return digits == 32 ? uuid : nil
    }
}

/// The form in which filters compare a text whose column has no declared type.
enum ComparedText {
    /// Returns the canonical spelling of a UUID, of a date or time, or of a number that JSON would have rounded; nil if
    /// the text is already canonical.
    static func rewritten(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count >= 10 else { return nil }
        if let uuid = UUIDText.lowercased(text) { return uuid }
        if let moment = FilterMoment(text) { return Array(moment.canonical(.timestamptz).utf8) }
        return FilterNumber(longText: text).map { Array($0.canonical.utf8) }
    }
}

extension String {
    /// Calls the body with the bytes that filters compare for a text whose column has no declared type.
    func withComparedBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withUTF8Bytes { bytes in
            ComparedText.rewritten(bytes)?.withUnsafeBufferPointer(body) ?? body(bytes)
        }
    }
}

extension JSONValue {
    /// Whether both values have the same bytes, so that no filter can distinguish them.
    ///
    /// This is not `==`, which treats canonically equivalent texts as equal. It is false for arrays and objects, whose
    /// comparison could cost more than it saves.
    func isSame(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)):
            left.hasBytes(of: right)
        default: false
        }
    }
}
