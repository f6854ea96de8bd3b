/// The derivation of keys with HMAC-SHA-256 (RFC 5869).
public enum HKDF {
    /// Returns key bytes for one purpose.
    ///
    /// - Parameters:
    ///   - secret: The secret from which all keys are derived; not necessarily uniform.
    ///   - salt: Not secret; bytes that make the keys of two derivations differ.
    ///   - purpose: The "info" of the standard.
    ///   - count: At most 255 × 32.
    public static func derive(from secret: [UInt8], salt: [UInt8], purpose: [UInt8], count: Int) -> [UInt8] {
        precondition((1...255 * SHA256.byteCount).contains(count), "HKDF derives 1 to 8,160 bytes")
        let extracted = AuthenticationKey(AuthenticationKey(salt).code(for: secret))
        var (result, block): ([UInt8], [UInt8]) = ([], [])
        for number in 1...UInt8((count + SHA256.byteCount - 1) / SHA256.byteCount) {
            block = extracted.code(for: block + purpose + [number])
            result += block
        }
        return Array(result.prefix(count))
    }
}
