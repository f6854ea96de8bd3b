import Cryptography
import OutboundHTTP
import Threads
import Values

/// Apple's push notification service: the requests, and the meaning of its answers.
public final class APNs: Sendable {
    /// What an operator has from Apple's developer account.
    public struct Account: Sendable {
        let key: PrivateKey
        let keyId: String
        let team: String
        /// The bundle id of the app, for devices that name none.
        let topic: String
        let url: String
        let sandboxURL: String

        public static let url = "https://api.push.apple.com"
        public static let sandboxURL = "https://api.sandbox.push.apple.com"

        /// - Parameters:
        ///   - key: A key of P-256 (the `.p8` file).
        ///   - url: Another address for both environments, for tests and proxies.
        public init(key: PrivateKey, keyId: String, team: String, topic: String, url: String? = nil) {
            (self.key, self.keyId, self.team, self.topic) = (key, keyId, team, topic)
            (self.url, sandboxURL) = (url ?? Self.url, url ?? Self.sandboxURL)
        }
    }

    /// How long a provider token is used. Apple accepts one for at most 60 minutes, and at most one new one in 20.
    private static let tokenSeconds: Int64 = 40 * 60

    private let account: Account
    private let token = Locked<(text: String, madeAt: Timestamp)?>(nil)

    public init(_ account: Account) { self.account = account }

    // MARK: Requests

    func request(
        _ message: PushMessage, token: String, topic: String?, isSandbox: Bool, at now: Timestamp
    ) -> OutboundPost {
        let isBackground = if case .withdrawal = message.content { true } else { false }
        let isAlert = if case .alert = message.content { true } else { false }
        var headers = [
            (name: "authorization", value: "bearer \(providerToken(at: now))"),
            (name: "apns-topic", value: topic ?? account.topic),
            (name: "apns-push-type", value: isBackground ? "background" : "alert"),
            // Apple delivers a background message only with priority 5, which saves power.
            (name: "apns-priority", value: isAlert ? "10" : "5"),
            (name: "apns-expiration", value: "\(now.seconds + message.secondsToLive)"),
        ]
        // The number alone has no tag.
        if !isBackground, !message.tag.isEmpty {
            headers.append((name: "apns-collapse-id", value: Self.collapseId(message.tag)))
        }
        let url = isSandbox ? account.sandboxURL : account.url
        return OutboundPost(url: "\(url)/3/device/\(token)", headers: headers, body: Self.payload(message))
    }

    /// Returns the id under which the device shows a message. It removes the message by the same id.
    ///
    /// The id is a header. An app may choose the id of a conversation, with letters that a header cannot carry.
    static func collapseId(_ tag: String) -> String {
        let isHeader = tag.utf8.count <= PushLimits.tagBytesMax && tag.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return isHeader ? tag : RFC4648.encodeURL(SHA256.hash(tag.utf8))
    }

    static func payload(_ message: PushMessage) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("aps") { aps in
                switch message.content {
                case .alert(let title, let body, let isSilent):
                    aps.member("alert") { alert in
                        alert.member("title", title.clipped(to: PushLimits.titleBytesMax))
                        alert.member("body", body.clipped(to: PushLimits.bodyBytesMax))
                    }
                    aps.member("badge", message.badge)
                    if !isSilent { aps.member("sound", "default") }
                    aps.member("thread-id", collapseId(message.tag))
                    aps.member("mutable-content", 1)
                case .badge:
                    aps.member("badge", message.badge)
                case .withdrawal:
                    aps.member("content-available", 1)
                }
            }
            writer.member("bellhop") { own in
                if case .withdrawal = message.content {
                    own.member("badge", message.badge)
                    own.member("withdrawn", message.withdrawn.map(collapseId))
                } else {
                    own.member("tag", collapseId(message.tag))
                    own.member("data", json: message.data)
                }
            }
        }
    }

    private func providerToken(at now: Timestamp) -> String {
        token.withLock { token in
            if let known = token, known.madeAt <= now, now < known.madeAt.adding(seconds: Self.tokenSeconds) {
                return known.text
            }
            let text = JSONWebToken.signed(by: account.key, keyId: account.keyId) { claims in
                claims.member("iss", account.team)
                claims.member("iat", now.seconds)
            }
            token = (text, now)
            return text
        }
    }

    // MARK: Answers

    /// - Parameter used: The request's `authorization`. An answer about a token that was renewed meanwhile leaves the
    ///   new one, because Apple accepts at most one new token in 20 minutes.
    func outcome(status: Int, retryAfterSeconds: Int?, body: [UInt8], used: String? = nil) -> PushOutcome {
        guard status != 200 else { return .accepted }
        let answer = Self.object(body)
        let reason = PushReason.word(answer.string("reason")) ?? "status_\(status)"
        switch (status, reason) {
        case (410, _):
            // Milliseconds, until the year 9999. Another number means nothing.
            let since = answer.integer("timestamp").flatMap { (0..<253_402_300_800_000).contains($0) ? $0 : nil }
            return .gone(reason: reason, since: since.map { Timestamp(microseconds: $0 * 1000) })
        // A wrong environment or topic in the settings has the same answers as a wrong token or app.
        case (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"), (400, "BadTopic"), (400, "TopicDisallowed"):
            return .mismatched(reason: reason)
        case (403, "ExpiredProviderToken"):
            token.withLock { token in
                if used == nil || used == token.map({ "bearer \($0.text)" }) { token = nil }
            }
            return .failed(reason: reason, retryAfterSeconds: nil)
        case (403, _), (400, "MissingTopic"), (404, _):
            return .misconfigured(reason: reason)
        // The connection was idle for too long, and the message did not arrive.
        case (400, "IdleTimeout"): return .failed(reason: reason, retryAfterSeconds: nil)
        case (429, _), (500..., _): return .failed(reason: reason, retryAfterSeconds: retryAfterSeconds)
        default: return .refused(reason: reason)
        }
    }

    private static func object(_ body: [UInt8]) -> [String: JSONValue] {
        if case .object(let members) = try? JSONValue(parsing: body) { members } else { [:] }
    }
}
