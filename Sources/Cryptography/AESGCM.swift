import CCrypto

/// A key of AES-GCM (NIST SP 800-38D), with nonces of 96 bits and tags of 128 bits.
///
/// A nonce must never be used twice with one key: two messages would reveal each other and the key of their tags.
public struct AESGCM: Sendable {
    public static let nonceBytes = 12
    public static let tagBytes = 16

    private let key: [UInt8]

    /// Creates a key of 128 or 256 bits; nil for another size.
    public init?(_ key: [UInt8]) {
        guard key.count == 16 || key.count == 32 else { return nil }
        self.key = key
    }

    /// Returns random bytes. For messages that are sealed with random nonces, one key suffices for 2³² of them.
    public static func randomBytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { bytes, written in
            require(RAND_bytes(bytes.baseAddress, Int32(count)) == 1, "libcrypto has no random numbers")
            written = count
        }
    }

    /// Returns a message, encrypted, followed by its tag.
    ///
    /// - Parameters:
    ///   - nonce: ``nonceBytes`` long.
    ///   - context: Bytes that are not encrypted, but that the tag covers.
    public func seal(_ message: [UInt8], nonce: [UInt8], context: [UInt8] = []) -> [UInt8] {
        precondition(nonce.count == Self.nonceBytes, "a nonce has 96 bits")
        let cipher = require(EVP_CIPHER_CTX_new(), "out of memory")
        defer { EVP_CIPHER_CTX_free(cipher) }
        require(EVP_EncryptInit_ex2(cipher, implementation, key, nonce, nil) == 1, "AES-GCM cannot start")
        var length: Int32 = 0
        if !context.isEmpty {
            require(EVP_EncryptUpdate(cipher, nil, &length, context, Int32(context.count)) == 1, "AES-GCM failed")
        }
        return [UInt8](unsafeUninitializedCapacity: message.count + Self.tagBytes) { result, count in
            require(
                EVP_EncryptUpdate(cipher, result.baseAddress, &length, message, Int32(message.count)) == 1,
                "AES-GCM failed")
            require(EVP_EncryptFinal_ex(cipher, nil, &length) == 1, "AES-GCM failed")
            let tag = result.baseAddress.map { $0 + message.count }
            require(
                EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagBytes), tag) == 1, "AES-GCM failed")
            count = message.count + Self.tagBytes
        }
    }

    /// Returns the message of sealed bytes; nil if the bytes, the nonce or the context are not those of the seal.
    public func open(_ sealed: [UInt8], nonce: [UInt8], context: [UInt8] = []) -> [UInt8]? {
        guard nonce.count == Self.nonceBytes, sealed.count >= Self.tagBytes else { return nil }
        let cipher = require(EVP_CIPHER_CTX_new(), "out of memory")
        defer {
            EVP_CIPHER_CTX_free(cipher)
            ERR_clear_error()
        }
        require(EVP_DecryptInit_ex2(cipher, implementation, key, nonce, nil) == 1, "AES-GCM cannot start")
        var length: Int32 = 0
        if !context.isEmpty, EVP_DecryptUpdate(cipher, nil, &length, context, Int32(context.count)) != 1 { return nil }
        let count = sealed.count - Self.tagBytes
        var tag = Array(sealed[count...])
        var isAuthentic = false
        let message = [UInt8](unsafeUninitializedCapacity: count) { result, written in
            written = count
            isAuthentic =
                EVP_DecryptUpdate(cipher, result.baseAddress, &length, sealed, Int32(count)) == 1
                && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagBytes), &tag) == 1
                && EVP_DecryptFinal_ex(cipher, nil, &length) == 1
        }
        return isAuthentic ? message : nil
    }

    private var implementation: OpaquePointer {
        key.count == 16 ? Self.implementations.aes128 : Self.implementations.aes256
    }

    /// `nonisolated(unsafe)`: an `EVP_CIPHER` never changes after it was fetched, and these are never freed.
    private nonisolated(unsafe) static let implementations = (
        aes128: require(EVP_CIPHER_fetch(nil, "AES-128-GCM", nil), "libcrypto has no AES-128-GCM"),
        aes256: require(EVP_CIPHER_fetch(nil, "AES-256-GCM", nil), "libcrypto has no AES-256-GCM")
    )
}
