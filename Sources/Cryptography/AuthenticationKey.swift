import CCrypto

/// A secret key for HMAC-SHA256 (RFC 2104).
///
/// `@unchecked Sendable`: `template` is never changed after `init`. Each computation works on a copy of it, which
/// libcrypto makes from a `const` context.
public final class AuthenticationKey: @unchecked Sendable {
    /// A context that holds the key and no message yet. Copying it saves hashing the key for each message.
    private let template: OpaquePointer

    /// `nonisolated(unsafe)`: an `EVP_MAC` never changes after it was fetched, and this one is never freed.
    private nonisolated(unsafe) static let hmac = require(EVP_MAC_fetch(nil, "HMAC", nil), "libcrypto has no HMAC")

    /// Creates a key.
    ///
    /// - Parameter secret: Any number of bytes. Fewer than 32 weaken the key.
    public init(_ secret: some Sequence<UInt8>) {
        template = require(EVP_MAC_CTX_new(Self.hmac), "out of memory")
        withContiguousBytes(secret) { secret in
            let isReady = ccrypto_hmac_sha256_init(template, secret.baseAddress, secret.count)
            require(isReady == 1, "HMAC-SHA256 cannot start")
        }
    }

    deinit { EVP_MAC_CTX_free(template) }

    /// Returns the 32 bytes that authenticate a message.
    public func code(for message: some Sequence<UInt8>) -> [UInt8] {
        let context = require(EVP_MAC_CTX_dup(template), "out of memory")
        defer { EVP_MAC_CTX_free(context) }
        withContiguousBytes(message) { message in
            require(EVP_MAC_update(context, message.baseAddress, message.count) == 1, "HMAC-SHA256 failed")
        }
        return [UInt8](unsafeUninitializedCapacity: SHA256.byteCount) { result, count in
            require(EVP_MAC_final(context, result.baseAddress, &count, result.count) == 1, "HMAC-SHA256 failed")
        }
    }

    /// Returns whether `code` authenticates a message, compared in constant time.
    public func isValid(_ code: some Sequence<UInt8>, for message: some Sequence<UInt8>) -> Bool {
        constantTimeEqual(code, self.code(for: message))
    }
}

/// Returns whether two byte strings are equal, in a time that depends only on their lengths.
public func constantTimeEqual(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Bool {
    withContiguousBytes(left) { left in
        withContiguousBytes(right) { right in
            guard left.count == right.count else { return false }
            guard let first = left.baseAddress, let second = right.baseAddress else { return true }
            return CRYPTO_memcmp(first, second, left.count) == 0
        }
    }
}
