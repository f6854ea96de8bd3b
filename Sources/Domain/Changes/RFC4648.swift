/// The encodings of RFC 4648, without Foundation.
enum RFC4648 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }()

    /// Base64 (section 4), with padding.
    static func encode(_ bytes: some Collection<UInt8>) -> String {
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

    /// Base64 (section 4); nil for anything that ``encode(_:)`` does not write, such as other letters, missing or
    /// superfluous padding, or bits behind the last byte. Two texts never decode to the same bytes.
    static func decode(_ text: String) -> [UInt8]? {
        let letters = Array(text.utf8)
        guard letters.count % 4 == 0 else { return nil }
        var padding = 0
        while padding < 2, padding < letters.count, letters[letters.count - 1 - padding] == UInt8(ascii: "=") {
            padding += 1
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(letters.count / 4 * 3)
        var pending: UInt32 = 0
        var bits = 0
        for letter in letters.dropLast(padding) {
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
