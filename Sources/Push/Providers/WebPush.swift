import Cryptography
import OutboundHTTP
import Threads
import Values

/// Web Push: messages to browsers (RFC 8030), encrypted for them (RFC 8291), signed by the service (RFC 8292).
public final class WebPush: PushProvider {
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

    public typealias Address = WebPushSubscription

    public static let name = "webpush"
    public static let addressMember = "subscription"
    public static let showsEachMessage = true
    public static let publicKeyMember: StaticString? = "webPushKey"

    private static let key = PushSetting(
        "vapidKey", "Web Push: private key, from bellhop push keys.", isSecret: true)
    private static let contact = PushSetting(
        "vapidContact", "Web Push: mailto: or https:// address for the operators of push services.",
        need: "a mailto: or https:// address at which the operators of push services reach you")
    private static let hosts = PushSetting(
        "pushHosts",
        "Web Push: hosts that subscriptions may name; *. for subdomains. Not set: Chrome's, Firefox's, Safari's, Edge's."
    )
    public static let settings = [key, contact, hosts]

    /// The push services of Chrome, Firefox, Safari and Edge.
    private static let usualServices = [
        "fcm.googleapis.com", "updates.push.services.mozilla.com", "web.push.apple.com", "*.notify.windows.com",
    ]

    /// How long a signed token is used. It must expire within 24 hours (RFC 8292 §2).
    private static let tokenSeconds: Int64 = 12 * 3600
    /// Push services whose tokens are kept.
    private static let audiencesMax = 64

    private let account: Account
    /// The hosts at which push services may be: a name, or `*.` and a domain.
    public let services: [String]
    private let allowsPrivate: Bool
    /// By the origin of the push service.
    private let tokens = Locked([String: (text: String, madeAt: Timestamp)]())

    init(_ account: Account, services: [String] = [], allowsPrivate: Bool = false) {
        (self.account, self.allowsPrivate) = (account, allowsPrivate)
        self.services = services.isEmpty ? Self.usualServices : services
    }

    public convenience init?(_ values: PushSettingValues) throws {
        let key = try values.value(Self.key) { text in
            guard let scalar = RFC4648.decodeURL(text.utf8), let key = try? PrivateKey(p256: scalar) else {
                throw PushSetting.Fault("must be a private key of P-256 in base64url: bellhop push keys makes one")
            }
            return key
        }
        let contact = try values.value(Self.contact, Self.requirePublic)
        let services = try values.value(Self.hosts) { text in
            try text.split(separator: ",").map { $0.filter { $0 != " " } }.filter { !$0.isEmpty }.map(Self.pattern)
        }
        guard let key, let contact else { return nil }
        self.init(
            Account(key: key, contact: contact), services: services ?? [], allowsPrivate: values.allowsPrivate)
    }

    // MARK: Settings

    private static let contactProblem =
        "must be mailto: or https:// with a public address at which the operators of push services reach you"

    private static func requirePublic(_ text: String) throws(PushSetting.Fault) -> String {
        let isPlain = text.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">")
        }
        guard isPlain, let host = contactHost(text)?.lowercased(), isPublic(host) else {
            throw PushSetting.Fault(contactProblem)
        }
        return text
    }

    private static func contactHost(_ text: String) -> String? {
        if text.hasPrefix("mailto:") {
            let parts = text.dropFirst("mailto:".count).prefix { $0 != "?" }.split(separator: "@")
            return parts.count == 2 ? String(parts[1]) : nil
        }
        return text.hasPrefix("https://") ? try? OutboundURL(text).host : nil
    }

    /// Whether others can have a host of this name. Apple refuses contacts at the others.
    private static func isPublic(_ host: String) -> Bool {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1, labels.allSatisfy({ !$0.isEmpty }), let top = labels.last else { return false }
        return !["localhost", "local", "invalid", "test", "internal"].contains(String(top))
    }

    /// Reads a host, or `*.` and a domain.
    private static func pattern(_ text: String) throws(PushSetting.Fault) -> String {
        let pattern = text.lowercased()
        let host = pattern.hasPrefix("*.") ? String(pattern.dropFirst(2)) : pattern
        guard (try? OutboundURL("https://\(host)/").host) == host else {
            throw PushSetting.Fault("\(text) is not a host, such as push.example.com, nor *. and a domain")
        }
        return pattern
    }

    public var publicKey: String? { account.publicKey }

    // MARK: Devices

    public func address(
        reading fields: inout Fields, of _: PushApp
    ) throws(Failure) -> WebPushSubscription {
        let subscription = try WebPushSubscription(reading: &fields, Self.addressMember)
        if let problem = problem(of: subscription.url) { throw .invalid("/subscription/endpoint", problem) }
        return subscription
    }

    /// An endpoint is input of a user, and the service sends requests to it.
    private func problem(of url: OutboundURL) -> String? {
        guard url.isEncrypted || allowsPrivate else { return "must begin with https://" }
        guard services.contains(where: url.isHost(matching:)) else {
            return "\(url.host) is not the host of a known push service"
        }
        guard !allowsPrivate else { return nil }
        if let address = url.address, !address.isPublic { return "\(url.host) is a private address" }
        return url.port == nil ? nil : "must use port 443"
    }

    public var absentDevice: WebPushSubscription? { nil }

    /// The pattern in place of the host, because anyone may make up names that match it.
    public func service(of subscription: WebPushSubscription) -> String? {
        services.first { subscription.url.isHost(matching: $0) } ?? ""
    }

    // MARK: Requests

    public func send(_ message: PushMessage, to subscription: WebPushSubscription, in attempt: PushAttempt) {
        attempt.send(request(message, to: subscription, at: attempt.now)) { [self] in
            outcome(status: $0, retryAfterSeconds: $1, body: $2)
        }
    }

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
