import CCrypto

/// A private key: of the curve P-256, for signatures (ES256) and for agreeing on a secret, or of RSA, for signatures
/// (RS256).
///
/// `@unchecked Sendable`: `key` never changes after `init`; libcrypto reads it from several threads.
public final class PrivateKey: @unchecked Sendable {
    /// The text or the bytes are not a usable private key.
    public struct Invalid: Error {}

    /// The bytes of the number that is a private key of P-256.
    public static let scalarBytes = Int(ccrypto_p256_scalar_count)
    /// The bytes of a public key of P-256 in uncompressed form.
    public static let pointBytes = Int(ccrypto_p256_point_count)

    /// The algorithm of ``sign(_:)``, as JWS names it (RFC 7518 §3.1).
    public enum Algorithm: String, Sendable {
        case es256 = "ES256"
        case rs256 = "RS256"
    }

    public let algorithm: Algorithm
    /// The public key of P-256 in uncompressed form: 4, x, y. Empty for RSA.
    public let publicPoint: [UInt8]
    private let key: OpaquePointer

    /// Takes ownership of `key`.
    private init(_ key: OpaquePointer?) throws(Invalid) {
        ERR_clear_error()
        guard let key else { throw Invalid() }
        self.key = key
        var point = [UInt8](repeating: 0, count: Self.pointBytes)
        if ccrypto_p256_point(key, &point) == 1 {
            (algorithm, publicPoint) = (.es256, point)
        } else if EVP_PKEY_is_a(key, "RSA") == 1, (2048...16_384).contains(EVP_PKEY_get_bits(key)) {
            (algorithm, publicPoint) = (.rs256, [])
        } else {
            EVP_PKEY_free(key)
            throw Invalid()
        }
        ERR_clear_error()
    }

    deinit { EVP_PKEY_free(key) }

    /// Creates a new key of P-256.
    public convenience init() {
        // Only a broken installation of libcrypto makes no key.
        try! self.init(require(ccrypto_new_p256_key(), "libcrypto cannot generate a key"))
    }

    /// Reads a key of P-256, or of RSA with 2,048 bits or more, from PEM (RFC 7468), without a password.
    public convenience init(pem: String) throws(Invalid) {
        let bytes = Array(pem.utf8)
        guard let count = Int32(exactly: bytes.count) else { throw Invalid() }
        try self.init(ccrypto_private_key(bytes, count))
    }

    /// Creates a key of P-256 from its number, big endian, ``scalarBytes`` long.
    public convenience init(p256 scalar: [UInt8]) throws(Invalid) {
        guard scalar.count == Self.scalarBytes else { throw Invalid() }
        try self.init(ccrypto_p256_private_key(scalar))
    }

    /// The number of a key of P-256, big endian; nil for RSA.
    public var scalar: [UInt8]? {
        guard algorithm == .es256 else { return nil }
        var scalar = [UInt8](repeating: 0, count: Self.scalarBytes)
        require(ccrypto_p256_scalar(key, &scalar) == 1, "libcrypto does not return a private key")
        return scalar
    }

    /// Returns the signature of a message in the form of JWS: for ES256 two numbers of 32 bytes.
    public func sign(_ message: [UInt8]) -> [UInt8] {
        let context = require(EVP_MD_CTX_new(), "out of memory")
        defer { EVP_MD_CTX_free(context) }
        require(
            EVP_DigestSignInit(context, nil, Digest.sha256.implementation, nil, key) == 1, "libcrypto cannot sign")
        var count = 0
        require(EVP_DigestSign(context, nil, &count, message, message.count) == 1, "libcrypto cannot sign")
        var signature = [UInt8](repeating: 0, count: count)
        require(EVP_DigestSign(context, &signature, &count, message, message.count) == 1, "libcrypto cannot sign")
        signature.removeLast(signature.count - count)
        guard algorithm == .es256 else { return signature }
        var fixed = [UInt8](repeating: 0, count: 2 * Self.scalarBytes)
        require(
            ccrypto_fixed_signature(signature, signature.count, &fixed, Int32(Self.scalarBytes)) == 1,
            "libcrypto made no signature")
        return fixed
    }

    /// Returns the secret that this key of P-256 and another one share (ECDH, SP 800-56A): the x coordinate.
    ///
    /// - Parameter point: The other's public key in uncompressed form.
    /// - Throws: If that is not a point of the curve, or this is not a key of P-256.
    public func sharedSecret(with point: [UInt8]) throws(Invalid) -> [UInt8] {
        guard algorithm == .es256, point.count == Self.pointBytes, point[0] == 4,
            let other = ccrypto_ec_public_key("P-256", point, point.count)
        else {
            ERR_clear_error()
            throw Invalid()
        }
        defer { EVP_PKEY_free(other) }
        let context = require(EVP_PKEY_CTX_new(key, nil), "out of memory")
        defer {
            EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        var secret = [UInt8](repeating: 0, count: Self.scalarBytes)
        var count = secret.count
        guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, other) == 1,
            EVP_PKEY_derive(context, &secret, &count) == 1, count == secret.count
        else { throw Invalid() }
        return secret
    }
}
