import Cryptography
import OutboundHTTP
import Values

/// The address of a browser at its push service, and the keys that only the browser has (RFC 8291 §2).
public struct WebPushSubscription: Sendable, Equatable {
    public let url: OutboundURL
    /// The public key of P-256, uncompressed.
    public let key: [UInt8]
    public let secret: [UInt8]

    /// The bytes of `secret`.
    public static let secretBytes = 16

    /// The address as the browser gave it.
    public var endpoint: String { url.text }

    /// - Throws: If the endpoint is no address, the key is not a point of P-256, or the secret does not have 16 bytes;
    ///   names the member.
    public init(endpoint: String, key: [UInt8], secret: [UInt8]) throws(Failure) {
        guard key.count == PrivateKey.pointBytes, key[0] == 4,
            (try? PublicKey(.p256, x: Array(key[1..<33]), y: Array(key[33...]))) != nil
        else {
            throw .invalid("/subscription/keys/p256dh", "must be a public key of P-256, uncompressed, in base64url")
        }
        guard secret.count == Self.secretBytes else {
            throw .invalid("/subscription/keys/auth", "must have 16 bytes in base64url")
        }
        do { url = try OutboundURL(endpoint) } catch { throw .invalid("/subscription/endpoint", "\(error)") }
        (self.key, self.secret) = (key, secret)
    }

    public static func == (a: Self, b: Self) -> Bool {
        a.endpoint == b.endpoint && a.key == b.key && a.secret == b.secret
    }
}
