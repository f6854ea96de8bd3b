import CCrypto
import Foundation

/// A P-256 key pair that signs tokens with ES256. It calls libcrypto directly, so that the tests of the service's
/// wrapper do not depend on that wrapper.
///
/// `@unchecked Sendable`: the key never changes after `init`, and libcrypto takes a reference for each signature.
final class IssuerKey: @unchecked Sendable {
    private let key: OpaquePointer

    init() {
        let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &made) == 1, let made
        else { fatalError("libcrypto created no key") }
        key = made
    }

    deinit { EVP_PKEY_free(key) }

    /// The coordinates of the public point.
    var point: (x: Data, y: Data) {
        var bytes = [UInt8](repeating: 0, count: 65)
        var count = 0
        guard EVP_PKEY_get_octet_string_param(key, "encoded-pub-key", &bytes, bytes.count, &count) == 1, count == 65
        else { fatalError("the key has no point") }
        return (Data(bytes[1..<33]), Data(bytes[33...]))
    }

    /// Returns the 64 bytes of a signature in the form of JWS (RFC 7518 §3.4).
    func signature(of message: some Sequence<UInt8>) -> Data {
        let (message, context) = (Array(message), EVP_MD_CTX_new())
        defer { EVP_MD_CTX_free(context) }
        var encoded = [UInt8](repeating: 0, count: 80)
        var count = encoded.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &encoded, &count, message, message.count) == 1
        else { fatalError("libcrypto did not sign") }
        let parsed = encoded.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &start, count)
        }
        defer { ECDSA_SIG_free(parsed) }
        var signature = [UInt8](repeating: 0, count: 64)
        signature.withUnsafeMutableBufferPointer { bytes in
            _ = BN_bn2binpad(ECDSA_SIG_get0_r(parsed), bytes.baseAddress, 32)
            _ = BN_bn2binpad(ECDSA_SIG_get0_s(parsed), bytes.baseAddress! + 32, 32)
        }
        return Data(signature)
    }
}
