import Cryptography
import OutboundHTTP
import Threads
import Values

/// Web Push: messages to browsers (RFC 8030), encrypted for them (RFC 8291), signed by the service (RFC 8292).
public final class WebPush: Sendable {
    /// The key pair that identifies the service to browsers and their push services (VAPID).
    public struct Account: Sendable {
        let key: PrivateKey
        /// An address for the push services' operators: `mailto:` or `https:`.
        let contact: String

        /// - Parameter key: A key of P-256.
        public init(key: PrivateKey, contact: String) {
            (self.key, self.contact) = (key, contact)
        }

        /// The public key, as a page passes it to `PushManager.subscribe`.
        public var publicKey: String { RFC4648.encodeURL(key.publicPoint) }
    }

    /// The push services of Chrome, Firefox, Safari and Edge.
    public static let hosts = [
        "fcm.googleapis.com", "updates.push.services.mozilla.com", "web.push.apple.com", "*.notify.windows.com",
    ]

    /// How long a signed token is used. It must expire within 24 hours (RFC 8292 §2).
    private static let tokenSeconds: Int64 = 12 * 3600
    /// Push services whose tokens are kept.
    private static let audiencesMax = 64

    private let account: Account
    /// By the origin of the push service.
    private let tokens = Locked([String: (text: String, madeAt: Timestamp)]())

    public init(_ account: Account) { self.account = account }

    // MARK: Requests

    func request(_ message: PushMessage, to subscription: WebPushSubscription, at now: Timestamp) -> OutboundPost {
        let headers = [
            (
                name: "authorization",
                value: "vapid t=\(token(for: subscription.url.origin, at: now)), k=\(account.publicKey)"
            ),
            (name: "content-encoding", value: "aes128gcm"),
            (name: "ttl", value: "\(message.secondsToLive)"),
            (name: "urgency", value: message.isUrgent ? "high" : "normal"),
            (name: "topic", value: Self.topic(message.tag)),
        ]
        let body = Self.encrypted(
            Self.payload(message), for: subscription, key: PrivateKey(), salt: AESGCM.randomBytes(Self.saltBytes))
        return OutboundPost(
            url: subscription.endpoint, contentType: "application/octet-stream", headers: headers, body: body)
    }

    /// Returns the name under which the push service keeps only the latest message (RFC 8030 §5.4): 32 characters.
    private static func topic(_ tag: String) -> String { String(RFC4648.encodeURL(SHA256.hash(tag.utf8)).prefix(32)) }

    static func payload(_ message: PushMessage) -> [UInt8] {
        JSONWriter.object { writer in
            switch message.content {
            case .alert(let title, let body, let isSilent):
                writer.member("title", title.clipped(to: PushLimits.titleBytesMax))
                writer.member("body", body.clipped(to: PushLimits.bodyBytesMax))
                writer.member("silent", isSilent)
                writer.member("withdrawn", message.withdrawn)
            case .badge: break
            case .withdrawal: writer.member("withdrawn", message.withdrawn)
            }
            writer.member("badge", message.badge)
            writer.member("tag", message.tag)
            writer.member("data", json: message.data)
        }
    }

    private func token(for origin: String, at now: Timestamp) -> String {
        tokens.withLock { tokens in
            if let known = tokens[origin], known.madeAt <= now, now < known.madeAt.adding(seconds: Self.tokenSeconds) {
                return known.text
            }
            let text = JSONWebToken.signed(by: account.key, keyId: nil) { claims in
                claims.member("aud", origin.lowercased())
                claims.member("exp", now.seconds + 2 * Self.tokenSeconds - 3600)
                claims.member("sub", account.contact)
            }
            if tokens.count >= Self.audiencesMax { tokens = [:] }
            tokens[origin] = (text, now)
            return text
        }
    }

    // MARK: Encryption

    /// The size of a record. A message is one record, and its body has at most this many bytes.
    private static let recordBytes = UInt32(PushLimits.payloadBytesMax)
    private static let saltBytes = 16
    /// The salt, the size of the record, the key with its length, the mark of the last record, and the tag of the cipher.
    private static let overheadBytes = saltBytes + 4 + 1 + PrivateKey.pointBytes + 1 + AESGCM.tagBytes
    static let payloadBytesMax = PushLimits.payloadBytesMax - overheadBytes

    /// Returns a message that only the subscription's browser can read (RFC 8291 §3, RFC 8188 §2).
    ///
    /// - Parameters:
    ///   - key: A new key for each message.
    ///   - salt: 16 random bytes.
    static func encrypted(
        _ message: [UInt8], for subscription: WebPushSubscription, key: PrivateKey, salt: [UInt8]
    ) -> [UInt8] {
        guard let shared = try? key.sharedSecret(with: subscription.key) else {
            preconditionFailure("a subscription has a key of P-256")
        }
        let purpose = Array("WebPush: info\u{0}".utf8) + subscription.key + key.publicPoint
        let secret = HKDF.derive(from: shared, salt: subscription.secret, purpose: purpose, count: 32)
        let contentKey = HKDF.derive(
            from: secret, salt: salt, purpose: Array("Content-Encoding: aes128gcm\u{0}".utf8), count: 16)
        let nonce = HKDF.derive(
            from: secret, salt: salt, purpose: Array("Content-Encoding: nonce\u{0}".utf8), count: AESGCM.nonceBytes)
        guard let cipher = AESGCM(contentKey) else { preconditionFailure("the key has 128 bits") }
        let size = (0..<4).map { UInt8(truncatingIfNeeded: recordBytes >> (24 - 8 * UInt32($0))) }
        let head = salt + size + [UInt8(PrivateKey.pointBytes)] + key.publicPoint
        // 2 marks the last record.
        return head + cipher.seal(message + [2], nonce: nonce)
    }

    // MARK: Answers

    func outcome(status: Int, retryAfterSeconds: Int?, body: [UInt8] = []) -> PushOutcome {
        var reason = "status_\(status)"
        // Apple says why.
        if case .object(let members) = try? JSONValue(parsing: body),
            let word = PushReason.word(members.string("reason"))
        {
            reason = word
        }
        switch status {
        case 200..<300: return .accepted
        case 404, 410: return .gone(reason: reason, since: nil)
        // The browser may have subscribed with another key.
        case 401, 403: return .mismatched(reason: reason)
        // Edge's push service throttles with 406.
        case 406, 429, 500...: return .failed(reason: reason, retryAfterSeconds: retryAfterSeconds)
        default: return .refused(reason: reason)
        }
    }
}
