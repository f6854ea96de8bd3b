/// The token of an `Authorization` header.
enum BearerToken {
    /// What follows `Bearer `, whose case does not matter (RFC 9110, 11.1); nil where it does not begin so.
    static func of(_ header: UnsafeBufferPointer<UInt8>?) -> UnsafeBufferPointer<UInt8>? {
        guard let header, header.count > 7, header[6] == UInt8(ascii: " ") else { return nil }
        for (index, letter) in "bearer".utf8.enumerated() where header[index] | 0x20 != letter { return nil }
        var token = header[7...]
        while token.first == UInt8(ascii: " ") { token = token.dropFirst() }
        while token.last == UInt8(ascii: " ") { token = token.dropLast() }
        return UnsafeBufferPointer(rebasing: token)
    }
}
