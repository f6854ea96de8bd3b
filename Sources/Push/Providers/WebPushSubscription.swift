import Cryptography
import OutboundHTTP
import Values

/// The address of a browser at its push service, and the keys that only the browser has (RFC 8291 §2).
public struct WebPushSubscription: PushAddress {
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

    /// Reads a subscription as `PushSubscription.toJSON()` of a browser returns it.
    ///
    /// - Throws: All mistakes of the registration.
    init(reading fields: inout Fields, _ name: String) throws(Failure) {
        if fields.value(name) == nil { fields.reject(name, "is missing") }
        let parts = fields.object(name) { subscription in
            let endpoint = subscription.string("endpoint", bytesMax: AddressLimits.endpointBytesMax)
            switch subscription.value("expirationTime") {
            case nil, .null, .integer, .number: break
            case let other?: subscription.reject("expirationTime", "must be a number, not \(other.typeName)")
            }
            if subscription.value("keys") == nil { subscription.reject("keys", "is missing") }
            let keys = subscription.object("keys") { keys in
                (key: Self.bytes("p256dh", of: &keys), secret: Self.bytes("auth", of: &keys))
            }
            return (endpoint: endpoint, key: keys?.key ?? [], secret: keys?.secret ?? [])
        }
        try fields.finish()
        try self.init(endpoint: parts?.endpoint ?? "", key: parts?.key ?? [], secret: parts?.secret ?? [])
    }

    private static func bytes(_ name: String, of keys: inout Fields) -> [UInt8] {
        let text = keys.string(name)
        if let bytes = RFC4648.decodeURL(text.utf8) { return bytes }
        keys.reject(name, "must be base64url")
        return []
    }

    // MARK: The stored address

    public static let letter = UInt8(ascii: "w")
    public static var payloadBytesMax: Int { WebPush.payloadBytesMax }

    public var parts: [UInt8] { secret + key + Array(endpoint.utf8) }

    /// The endpoint alone, because a browser may renew the keys.
    public var device: [UInt8] { Array(url.canonical.utf8) }

    public init?(parts: ArraySlice<UInt8>) {
        let (secret, key) = (Self.secretBytes, PrivateKey.pointBytes)
        guard parts.count > secret + key,
            let subscription = try? WebPushSubscription(
                endpoint: String(decoding: parts.dropFirst(secret + key), as: UTF8.self),
                key: Array(parts.dropFirst(secret).prefix(key)), secret: Array(parts.prefix(secret)))
        else { return nil }
        self = subscription
    }

    public func payload(of message: PushMessage) -> [UInt8] { WebPush.payload(message) }

    public static func == (a: Self, b: Self) -> Bool {
        a.endpoint == b.endpoint && a.key == b.key && a.secret == b.secret
    }
}
