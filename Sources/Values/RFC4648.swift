/// The encodings of RFC 4648, without Foundation.
public enum RFC4648 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let values = values(of: alphabet)
    /// Section 5: an alphabet that needs no escaping in addresses and file names.
    @usableFromInline static let urlValues = values(of: alphabet.dropLast(2) + Array("-_".utf8))

    private static func values(of alphabet: [UInt8]) -> [UInt8] {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }

    /// Encodes Base64 (section 4), with padding.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var pending: UInt32 = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[Int(pending >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(pending << UInt32(6 - bits) & 63)]) }
        while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes Base64 (section 4). Returns nil for any text that ``encode(_:)`` does not write: foreign characters,
    /// missing or superfluous padding, or stray bits after the last byte. Two texts never decode to the same bytes.
    public static func decode(_ text: String) -> [UInt8]? {
        let letters = Array(text.utf8)
        guard letters.count % 4 == 0 else { return nil }
        var padding = 0
        while padding < 2, padding < letters.count, letters[letters.count - 1 - padding] == UInt8(ascii: "=") {
            padding += 1
        }
        return decode(letters.dropLast(padding), values)
    }

    /// Encodes Base16 (section 8), with small letters.
    public static func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Decodes Base64 with the alphabet of section 5, without padding, as tokens and cursors use it. Returns nil for
    /// any text that ``encodeURL(_:)`` does not write, so one token has one spelling.
    @inlinable
    public static func decodeURL(_ text: some Collection<UInt8>) -> [UInt8]? { decode(text, urlValues) }

    public static func encodeURL(_ bytes: some Collection<UInt8>) -> String {
        var text = encode(bytes)
        while text.last == "=" { text.removeLast() }
        return String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
    }

    @inlinable
    static func decode(_ letters: some Collection<UInt8>, _ values: [UInt8]) -> [UInt8]? {
        let count = letters.count
        guard count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 3 / 4)
        var pending: UInt32 = 0
        var bits = 0
        for letter in letters {
            let value = values[Int(letter)]
            guard value != 0xFF else { return nil }
            pending = pending << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
            }
        }
        guard pending & (1 << UInt32(bits) - 1) == 0 else { return nil }
        return bytes
    }
}
