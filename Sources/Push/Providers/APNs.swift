import Cryptography
import OutboundHTTP
import Threads
import Values

/// Apple's push notification service: the requests, and the meaning of its answers.
public final class APNs: PushProvider {
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

    /// The address of an app on a device.
    public struct Address: PushAddress {
        let token: String
        let app: PushApp

        public static let letter = UInt8(ascii: "a")

        public var parts: [UInt8] { Array("\(app.isSandbox ? 1 : 0)\(app.id ?? "")\u{0}\(token)".utf8) }

        /// A token is a number, whose digits may have either case. The app and the environment say how to reach the device.
        public var device: [UInt8] { Array(token.lowercased().utf8) }

        init(token: String, of app: PushApp = PushApp(id: nil, isSandbox: false)) {
            (self.token, self.app) = (token, app)
        }

        public init?(parts: ArraySlice<UInt8>) {
            guard let first = parts.first, let end = parts.firstIndex(of: 0), end > parts.startIndex else { return nil }
            let id = String(decoding: parts[(parts.startIndex + 1)..<end], as: UTF8.self)
            self.init(
                token: String(decoding: parts[(end + 1)...], as: UTF8.self),
                of: PushApp(id: id.isEmpty ? nil : id, isSandbox: first == UInt8(ascii: "1")))
        }

        public func payload(of message: PushMessage) -> [UInt8] { APNs.payload(message) }
    }

    public static let name = "apns"
    public static let addressMember = "token"
    public static let hasApps = true

    private static let key = PushSetting("apnsKey", "APNs: file with the .p8 key of Apple's developer account.")
    private static let keyId = PushSetting(
        "apnsKeyId", "APNs: id of that key.", need: "the id of the key, 10 characters")
    private static let team = PushSetting(
        "apnsTeam", "APNs: id of the team.", need: "the id of the team, 10 characters")
    private static let topic = PushSetting(
        "apnsTopic", "APNs: bundle id of the app, for devices that name none.", need: "the bundle id of the app")
    private static let url = PushSetting("apnsURL", "APNs: another address, for tests and proxies.")
    public static let settings = [key, keyId, team, topic, url]

    /// How long a provider token is used. Apple accepts one for at most 60 minutes, and at most one new one in 20.
    private static let tokenSeconds: Int64 = 40 * 60

    private let account: Account
    private let token = Locked<(text: String, madeAt: Timestamp)?>(nil)

    init(_ account: Account) { self.account = account }

    public convenience init?(_ values: PushSettingValues) throws {
        let key = try values.value(inFileOf: Self.key) { text in
            guard let key = try? PrivateKey(pem: text), key.algorithm == .es256 else {
                throw PushSetting.Fault("is not a .p8 file of Apple: a private key of P-256 in PEM")
            }
            return key
        }
        let topic = try values.value(Self.topic) { text in
            guard PushApp.isBundleID(text) else {
                throw PushSetting.Fault(
                    "must be a bundle id such as com.example.app: letters, digits, hyphens and dots")
            }
            return text
        }
        let url = try values.address(Self.url)
        guard let key, let topic, let keyId = values.text(Self.keyId), let team = values.text(Self.team) else {
            return nil
        }
        self.init(Account(key: key, keyId: keyId, team: team, topic: topic, url: url))
    }

    // MARK: Devices

    /// A token becomes part of a path. Anything but hexadecimal digits would be another path.
    public func address(reading fields: inout Fields, of app: PushApp) -> Address {
        let token = fields.string(Self.addressMember, bytesMax: AddressLimits.tokenBytesMax)
        if !token.utf8.allSatisfy(\.isHexadecimal) {
            fields.reject(Self.addressMember, "must have hexadecimal digits only, as APNs device tokens do")
        } else if !token.utf8.count.isMultiple(of: 2) {
            fields.reject(Self.addressMember, "must have two hexadecimal digits for each byte")
        }
        return Address(token: token, of: app)
    }

    public var absentDevice: Address? { Address(token: String(repeating: "0", count: 64)) }

    public func service(of address: Address) -> String? { address.app.isSandbox ? "sandbox" : nil }

    // MARK: Requests

    public func send(_ message: PushMessage, to address: Address, in attempt: PushAttempt) {
        let request = request(message, to: address, at: attempt.now)
        let used = request.headers.first { $0.name == "authorization" }?.value
        attempt.send(request) { [self] in outcome(status: $0, retryAfterSeconds: $1, body: $2, used: used) }
    }

    func request(_ message: PushMessage, to address: Address, at now: Timestamp) -> OutboundPost {
        let isBackground = if case .withdrawal = message.content { true } else { false }
        let isAlert = if case .alert = message.content { true } else { false }
        var headers = [
            (name: "authorization", value: "bearer \(providerToken(at: now))"),
            (name: "apns-topic", value: address.app.id ?? account.topic),
            (name: "apns-push-type", value: isBackground ? "background" : "alert"),
            // Apple delivers a background message only with priority 5, which saves power.
            (name: "apns-priority", value: isAlert ? "10" : "5"),
            (name: "apns-expiration", value: "\(now.seconds + message.secondsToLive)"),
        ]
        // The number alone has no tag.
        if !isBackground, !message.tag.isEmpty {
            headers.append((name: "apns-collapse-id", value: Self.collapseId(message.tag)))
        }
        let url = address.app.isSandbox ? account.sandboxURL : account.url
        return OutboundPost(url: "\(url)/3/device/\(address.token)", headers: headers, body: Self.payload(message))
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
