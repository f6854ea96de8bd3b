import CCrypto

/// A public key and the one signature scheme that it is used with.
///
/// `@unchecked Sendable`: `template` never changes after `init`. Each verification works on a copy of it, which
/// libcrypto makes from a `const` context.
public final class PublicKey: @unchecked Sendable {
    /// The bytes are not a key of this kind, or the key is too weak.
    public struct Invalid: Error {}

    /// An elliptic curve of NIST (FIPS 186-5). Each is used with the digest that JWS prescribes (RFC 7518 §3.4).
    public enum Curve: Sendable {
        case p256
        case p384
        case p521

        /// The bytes of a point's coordinate, and of each half of a signature.
        public var coordinateBytes: Int {
            switch self {
            case .p256: 32
            case .p384: 48
            case .p521: 66
            }
        }

        var name: String {
            switch self {
            case .p256: "P-256"
            case .p384: "P-384"
            case .p521: "P-521"
            }
        }

        var digest: Digest {
            switch self {
            case .p256: .sha256
            case .p384: .sha384
            case .p521: .sha512
            }
        }
    }

    /// The padding of an RSA signature (RFC 8017 §8).
    public enum RSAPadding: Sendable {
        case pkcs1
        /// With a salt as long as the digest.
        case pss
    }

    /// A context prepared for verification with this key. Copying it saves setting up the scheme for each signature.
    private let template: OpaquePointer
    /// The curve if signatures are two numbers of a fixed size (RFC 7518 §3.4); nil for other schemes.
    private let curve: Curve?

    /// Takes ownership of `key`.
    private init(
        _ key: OpaquePointer?, _ digest: Digest?, curve: Curve? = nil, padding: RSAPadding? = nil
    ) throws(Invalid) {
        guard let key, let context = EVP_MD_CTX_new() else { throw Invalid() }
        // The context holds a reference of its own.
        defer { EVP_PKEY_free(key) }
        self.curve = curve
        template = context
        var scheme: OpaquePointer?
        guard EVP_DigestVerifyInit(context, &scheme, digest?.implementation, nil, key) == 1 else { throw Invalid() }
        if padding == .pss {
            guard EVP_PKEY_CTX_set_rsa_padding(scheme, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(scheme, RSA_PSS_SALTLEN_DIGEST) == 1
            else { throw Invalid() }
        }
    }

    deinit { EVP_MD_CTX_free(template) }

    /// Creates a key for ECDSA.
    ///
    /// - Parameters x, y: The coordinates of the point, big endian, each ``Curve/coordinateBytes`` long.
    public convenience init(_ curve: Curve, x: [UInt8], y: [UInt8]) throws(Invalid) {
        guard x.count == curve.coordinateBytes, y.count == curve.coordinateBytes else { throw Invalid() }
        let point = [4] + x + y
        try self.init(ccrypto_ec_public_key(curve.name, point, point.count), curve.digest, curve: curve)
    }

    /// Creates a key for Ed25519 (RFC 8032).
    public convenience init(ed25519 bytes: [UInt8]) throws(Invalid) {
        guard bytes.count == 32 else { throw Invalid() }
        try self.init(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count), nil)
    }

    /// Creates a key for RSA.
    ///
    /// - Parameters:
    ///   - modulus: Big endian, 2,048 bits (the minimum of RFC 7518 §3.3) to 16,384 bits, odd.
    ///   - exponent: Big endian, odd, from 3 to 33 bits, the limit of BoringSSL. A larger one makes verification slow.
    public convenience init(
        rsaModulus modulus: [UInt8], exponent: [UInt8], _ digest: Digest, _ padding: RSAPadding
    ) throws(Invalid) {
        let n = Array(modulus.drop { $0 == 0 }.reversed())
        let e = Array(exponent.drop { $0 == 0 }.reversed())
        guard (2048...16_384).contains(Self.bitCount(n)), (2...33).contains(Self.bitCount(e)),
            n[0] & 1 == 1, e[0] & 1 == 1
        else { throw Invalid() }
        // No platform of the service is big endian.
        try self.init(ccrypto_rsa_public_key(n, n.count, e, e.count), digest, padding: padding)
    }

    /// Returns the number of significant bits of a little-endian number.
    private static func bitCount(_ number: [UInt8]) -> Int {
        number.count * 8 - (number.last?.leadingZeroBitCount ?? 0)
    }

    /// Returns whether the holder of the private key made the signature of a message.
    public func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        var signature = signature
        if let curve {
            guard let encoded = Self.encoded(signature, on: curve) else { return false }
            signature = encoded
        }
        let context = require(EVP_MD_CTX_new(), "out of memory")
        defer {
            EVP_MD_CTX_free(context)
            // Each refusal leaves its reasons in an error queue of the thread.
            ERR_clear_error()
        }
        return EVP_MD_CTX_copy_ex(context, template) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// Encodes a signature for libcrypto (RFC 3279 §2.2.3): a DER sequence of two numbers. Nil if it does not have the
    /// size that the curve prescribes.
    private static func encoded(_ signature: [UInt8], on curve: Curve) -> [UInt8]? {
        let half = curve.coordinateBytes
        guard signature.count == 2 * half else { return nil }
        let numbers = der(signature[..<half]) + der(signature[half...])
        // A sequence for P-521 has more than 127 bytes, so its length takes an extra byte.
        return [0x30] + (numbers.count > 127 ? [0x81] : []) + [UInt8(numbers.count)] + numbers
    }

    /// Encodes an unsigned number as a DER integer: without leading zeros, except for one that keeps it positive.
    private static func der(_ number: ArraySlice<UInt8>) -> [UInt8] {
        let digits = number.drop { $0 == 0 }
        let isPadded = digits.first.map { $0 > 127 } ?? true
        return [0x02, UInt8(digits.count + (isPadded ? 1 : 0))] + (isPadded ? [0] : []) + digits
    }
}
