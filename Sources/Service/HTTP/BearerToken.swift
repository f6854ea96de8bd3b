/// The token of an `Authorization` header.
enum BearerToken {
    private static let scheme: StaticString = "bearer "

    /// Returns the text after `Bearer `, which is case-insensitive (RFC 9110 §11.1); nil for another scheme.
    static func of(_ header: UnsafeBufferPointer<UInt8>?) -> UnsafeBufferPointer<UInt8>? {
        guard let header, header.count > scheme.utf8CodeUnitCount else { return nil }
        for index in 0..<scheme.utf8CodeUnitCount where header[index] | 0x20 != scheme.utf8Start[index] { return nil }
        var token = header[scheme.utf8CodeUnitCount...]
        while token.first == UInt8(ascii: " ") { token = token.dropFirst() }
        while token.last == UInt8(ascii: " ") { token = token.dropLast() }
        return UnsafeBufferPointer(rebasing: token)
    }
}
