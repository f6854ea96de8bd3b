/// The text form of one key of an audience or a scope: segments joined by `:`.
///
/// A value may contain any character, so each segment is percent-encoded: `%`, `:` and every byte outside printable
/// ASCII become `%XX` (upper-case hex of the UTF-8 byte). Therefore:
/// - A key has exactly one reading. User `a:staff` is `user:a%3Astaff` and cannot be read as `user:{id}:staff`.
/// - Keys are ASCII. So Swift's `==` (which treats canonically equivalent texts as equal) and SQLite's comparison of
///   bytes agree.
public enum AudienceKey {
    /// Returns the key of the given segments: `AudienceKey.make("shop", shopId, "staff")`.
    ///
    /// Use it for every value from outside (a token's claim). In a key that is concatenated with `:`, the value could
    /// add further segments.
    public static func make(_ segments: String...) -> String {
        var key = ""
        for (index, segment) in segments.enumerated() {
            if index > 0 { key += ":" }
            appendEncoded(segment, to: &key)
        }
        return key
    }

    static func appendEncoded(_ value: String, to key: inout String) {
        if value.utf8.allSatisfy(isPlain) {
            key += value
            return
        }
        for byte in value.utf8 {
            if isPlain(byte) {
                key.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                key += "%"
                key.unicodeScalars.append(Unicode.Scalar(hexDigits[Int(byte >> 4)]))
                key.unicodeScalars.append(Unicode.Scalar(hexDigits[Int(byte & 15)]))
            }
        }
    }

    /// Whether a text is a key in the form that ``make(_:)`` writes.
    public static func isKey(_ text: String) -> Bool {
        text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).allSatisfy { segment in
            !segment.isEmpty && (segment.allSatisfy(isPlain) || decode(segment) != nil)
        }
    }

    /// Returns the value of an encoded segment; nil unless `appendEncoded` writes exactly this segment for some text.
    static func decode(_ segment: Substring.UTF8View) -> String? {
        if segment.allSatisfy(isPlain) { return String(Substring(segment)) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(segment.count)
        var rest = segment[...]
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                guard isPlain(byte) else { return nil }
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue),
                !isPlain(high << 4 | low)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        hexDigits.firstIndex(of: byte).map { UInt8($0) }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "%") && byte != UInt8(ascii: ":")
    }
}
