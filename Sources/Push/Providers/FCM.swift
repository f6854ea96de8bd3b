import Cryptography
import OutboundHTTP
import Values

/// Firebase Cloud Messaging, HTTP v1: the requests, and the meaning of its answers.
public final class FCM: PushProvider {
    /// A service account of a Firebase project.
    public struct Account: Sendable {
        let key: PrivateKey
        let keyId: String?
        let email: String
        let project: String
        /// Exchanges a signed assertion for an access token.
        let tokenURL: String
        /// The address of FCM; another one for tests and proxies.
        public var url = Self.url

        public static let url = "https://fcm.googleapis.com"

        /// A service account file is unusable.
        public struct Invalid: Error, CustomStringConvertible {
            public let description: String
        }

        /// Reads a service account file.
        public init(json: [UInt8]) throws(Invalid) {
            guard case .object(let members) = try? JSONValue(parsing: json) else {
                throw Invalid(description: "is not a JSON object")
            }
            func text(_ name: String) throws(Invalid) -> String {
                guard let text = members.string(name), !text.isEmpty else {
                    throw Invalid(
                        description: "has no \(name): create a key of the service account in the Firebase console")
                }
                return text
            }
            let pem = try text("private_key")
            guard let key = try? PrivateKey(pem: pem), key.algorithm == .rs256 else {
                throw Invalid(description: "has no RSA key in private_key")
            }
            self.key = key
            keyId = members.string("private_key_id")
            (email, project) = (try text("client_email"), try text("project_id"))
            // Google: lower-case letters, digits and hyphens; older ids begin with a domain and a colon.
            guard project.utf8.allSatisfy({ $0 < 0x80 && ($0.isAlphanumeric || "-.:".utf8.contains($0)) }) else {
                throw Invalid(description: "has a malformed project_id")
            }
            tokenURL = try text("token_uri")
            do { _ = try OutboundURL(tokenURL) } catch { throw Invalid(description: "has a token_uri that \(error)") }
        }
    }

    /// The registration token of an app on a device.
    public struct Address: PushAddress {
        let token: String

        public static let letter = UInt8(ascii: "f")

        public var parts: [UInt8] { Array(token.utf8) }
        public var device: [UInt8] { parts }

        init(token: String) { self.token = token }

        public init?(parts: ArraySlice<UInt8>) { token = String(decoding: parts, as: UTF8.self) }

        public func payload(of message: PushMessage) -> [UInt8] { FCM.payload(message, token) }
    }

    public static let name = "fcm"
    public static let addressMember = "token"

    private static let file = PushSetting("fcmAccount", "FCM: file with the service account's key (JSON).")
    private static let url = PushSetting("fcmURL", "FCM: another address, for tests and proxies.")
    public static let settings = [file, url]

    private let account: Account
    private let access = FCMAccess()

    init(_ account: Account) { self.account = account }

    public convenience init?(_ values: PushSettingValues) throws {
        let account = try values.value(inFileOf: Self.file) { text in
            let account: Account
            do { account = try Account(json: Array(text.utf8)) } catch { throw PushSetting.Fault("\(error)") }
            if let url = try? OutboundURL(account.tokenURL), let problem = values.problem(of: url) {
                throw PushSetting.Fault("has a token_uri that \(problem)")
            }
            return account
        }
        let url = try values.address(Self.url)
        guard var account else { return nil }
        account.url = url ?? account.url
        self.init(account)
    }

    // MARK: Devices

    public func address(reading fields: inout Fields, of _: PushApp) -> Address {
        let token = fields.string(Self.addressMember, bytesMax: AddressLimits.tokenBytesMax)
        if !token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
            fields.reject(Self.addressMember, "must have no spaces or control characters")
        }
        return Address(token: token)
    }

    public var absentDevice: Address? { Address(token: "no-such-device") }

    // MARK: Access tokens

    private func askForAccess(in attempt: PushAttempt) {
        attempt.ask(accessRequest(at: attempt.now)) { [access] outcome, body in
            let now = attempt.now
            switch outcome {
            case .answered(200, _):
                if let token = FCM.accessToken(body) {
                    return access.received(.token(token.text), seconds: token.seconds, at: now)
                }
                access.received(.failure(.failed(reason: "access_token", retryAfterSeconds: nil)), at: now)
            case .answered(400..<500, let seconds):
                let isBusy = outcome == .answered(status: 429, retryAfterSeconds: seconds)
                access.received(
                    .failure(
                        isBusy
                            ? .failed(reason: "access_token", retryAfterSeconds: seconds)
                            : .misconfigured(reason: "access_token")), at: now)
            case .answered(_, let seconds):
                access.received(.failure(.failed(reason: "access_token", retryAfterSeconds: seconds)), at: now)
            case .failed(.stopped): access.received(.failure(.interrupted), at: now)
            case .failed(let failure):
                access.received(.failure(.failed(reason: failure.rawValue, retryAfterSeconds: nil)), at: now)
            }
        }
    }

    /// Returns the request for an access token (RFC 7523).
    func accessRequest(at now: Timestamp) -> OutboundPost {
        let assertion = JSONWebToken.signed(by: account.key, keyId: account.keyId) { claims in
            claims.member("iss", account.email)
            claims.member("scope", "https://www.googleapis.com/auth/firebase.messaging")
            claims.member("aud", account.tokenURL)
            claims.member("iat", now.seconds)
            claims.member("exp", now.seconds + 3600)
        }
        let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"
        return OutboundPost(
            url: account.tokenURL, contentType: "application/x-www-form-urlencoded", headers: [],
            body: Array(form.utf8))
    }

    /// Reads the answer to ``accessRequest(at:)``: the token and the seconds for which it is valid.
    static func accessToken(_ body: [UInt8]) -> (text: String, seconds: Int64)? {
        guard case .object(let members) = try? JSONValue(parsing: body), let text = members.string("access_token"),
            !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let seconds = members.integer("expires_in")
        else { return nil }
        return (text, min(max(seconds, 0), 86_400))
    }

    // MARK: Messages

    public func send(_ message: PushMessage, to address: Address, in attempt: PushAttempt) {
        let post: @Sendable (String) -> Void = { [self] accessToken in
            let request = request(message, to: address, accessToken: accessToken)
            attempt.send(request) { [self] status, seconds, body in
                let outcome = outcome(status: status, retryAfterSeconds: seconds, body: body, used: accessToken)
                if outcome == .accepted { access.noteServed() }
                return outcome
            }
        }
        let need = access.need(at: attempt.now) { answer in
            switch answer {
            case .token(let accessToken): post(accessToken)
            case .failure(let outcome): attempt.end(outcome)
            }
        }
        switch need {
        case .token(let accessToken): post(accessToken)
        case .ask: askForAccess(in: attempt)
        case .wait: break
        case .refused: attempt.end(.failed(reason: "access_token", retryAfterSeconds: nil))
        }
    }

    func request(_ message: PushMessage, to address: Address, accessToken: String) -> OutboundPost {
        OutboundPost(
            url: "\(account.url)/v1/projects/\(account.project)/messages:send",
            headers: [(name: "authorization", value: "Bearer \(accessToken)")], body: address.payload(of: message))
    }

    static func payload(_ message: PushMessage, _ token: String) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("message") { fcm in
                fcm.member("token", token)
                if case .alert(let title, let body, _) = message.content {
                    fcm.member("notification") { alert in
                        alert.member("title", title.clipped(to: PushLimits.titleBytesMax))
                        alert.member("body", body.clipped(to: PushLimits.bodyBytesMax))
                    }
                }
                fcm.member("data") { writeData(of: message, to: &$0) }
                fcm.member("android") { writeAndroid(message, to: &$0) }
            }
        }
    }

    /// Writes the members for the app. FCM takes only texts.
    private static func writeData(of message: PushMessage, to writer: inout JSONWriter) {
        writer.member("badge", "\(message.badge)")
        if case .withdrawal = message.content {
            writer.member("withdrawn", String(decoding: Self.json(message.withdrawn), as: UTF8.self))
        } else {
            writer.member("tag", message.tag)
            writer.member("data", String(decoding: message.data, as: UTF8.self))
        }
    }

    private static func json(_ texts: [String]) -> [UInt8] {
        var writer = JSONWriter()
        writer.array(texts)
        return writer.bytes
    }

    private static func writeAndroid(_ message: PushMessage, to writer: inout JSONWriter) {
        writer.member("ttl", "\(message.secondsToLive)s")
        guard case .alert(_, _, let isSilent) = message.content else { return writer.member("priority", "normal") }
        writer.member("priority", "high")
        writer.member("notification") { shown in
            shown.member("tag", message.tag)
            shown.member("notification_count", message.badge)
            if !isSilent { shown.member("sound", "default") }
        }
    }

    // MARK: Answers

    /// - Parameter used: The access token of the request.
    func outcome(status: Int, retryAfterSeconds: Int?, body: [UInt8], used: String? = nil) -> PushOutcome {
        guard status != 200 else { return .accepted }
        let (code, isAboutToken) = Self.error(body)
        /// Google asks to wait a minute if it does not say how long.
        let asked = retryAfterSeconds ?? (status == 429 ? 60 : nil)
        let reason = code ?? "status_\(status)"
        switch (status, code) {
        case (_, "UNREGISTERED"): return .gone(reason: reason, since: nil)
        // The token belongs to another project, or the settings do.
        case (403, "SENDER_ID_MISMATCH"): return .mismatched(reason: reason)
        case (400, _): return isAboutToken ? .gone(reason: reason, since: nil) : .refused(reason: reason)
        // The key of APNs or of Web Push that the project has at Firebase. It is not about the access token.
        case (401, "THIRD_PARTY_AUTH_ERROR"): return .misconfigured(reason: reason)
        case (401, _):
            // The token was revoked, or expired early. A new one shows whether the account is the reason.
            return access.discard(used)
                ? .failed(reason: reason, retryAfterSeconds: nil) : .misconfigured(reason: reason)
        case (403, _), (404, _): return .misconfigured(reason: reason)
        case (429, _), (500..., _): return .failed(reason: reason, retryAfterSeconds: asked)
        default: return .refused(reason: reason)
        }
    }

    /// Reads the code of an error, and whether it is about the device's token.
    private static func error(_ body: [UInt8]) -> (code: String?, isAboutToken: Bool) {
        guard case .object(let members) = try? JSONValue(parsing: body), let error = members.object("error") else {
            return (nil, false)
        }
        let details = error.objects("details") ?? []
        let own = details.lazy.compactMap { $0.string("errorCode") }.first
        let fields = details.flatMap { $0.objects("fieldViolations") ?? [] }.compactMap { $0.string("field") }
        // A malformed request names its field. An invalid token has the error of FCM alone.
        let isInvalidToken = own == "INVALID_ARGUMENT" && fields.isEmpty
        return (PushReason.word(own ?? error.string("status")), isInvalidToken || fields.contains("message.token"))
    }
}
