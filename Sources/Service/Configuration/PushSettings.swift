import Cryptography
import Domain
import Foundation
import OutboundHTTP
import Push
import Values

/// The providers, the content and the encryption of push messages.
struct PushSettings: Sendable {
    /// How much of a notification or a message a push message contains.
    enum Content: String, CaseIterable, Sendable {
        /// The text for locked screens, which reveals nothing.
        case generic
        /// Title and text.
        case full
    }

    let keys: PushKeyRing
    let content: Content
    let priorities: Set<Priority>
    /// The types of notifications that are sent whatever their priority.
    let types: Set<NotificationType>
    /// Seconds for which a notification or a message must stay unseen before it is sent.
    let afterSeconds: Int
    let apns: APNs.Account?
    let fcm: FCM.Account?
    let webPush: WebPush.Account?
    /// The hosts at which browsers' push services may be: a name, or `*.` and a domain.
    let hosts: [String]
    let allowsPrivate: Bool
    let certificates: String?
    let timeoutSeconds: Int

    /// The platforms that can be used.
    var platforms: [Device.Platform] {
        [(Device.Platform.apns, apns != nil), (.fcm, fcm != nil), (.webPush, webPush != nil)].filter(\.1).map(\.0)
    }

    /// Reads the settings.
    ///
    /// - Returns: Nil without a provider: then no device can be registered.
    init?(_ settings: Settings) throws {
        content = settings.pushContent
        priorities = Set(settings.pushPriorities)
        types = Set(settings.pushTypes)
        afterSeconds = settings.pushAfterSeconds
        allowsPrivate = settings.pushPrivate
        certificates = settings.pushCertificates
        timeoutSeconds = settings.pushTimeoutSeconds
        hosts = settings.pushHosts.isEmpty ? WebPush.hosts : settings.pushHosts
        apns = try Self.apns(settings)
        fcm = settings.fcmAccount.map { account in
            var account = account
            account.url = settings.fcmURL ?? account.url
            return account
        }
        webPush = try settings.vapidKey.map { key in
            guard let contact = settings.vapidContact else {
                throw settings.$vapidContact.mistake(Self.contactProblem)
            }
            return WebPush.Account(key: key, contact: contact)
        }
        guard !settings.pushKeys.isEmpty else {
            guard apns == nil, fcm == nil, webPush == nil else {
                throw settings.$pushKeys.mistake(
                    "is missing: it encrypts the addresses of devices. bellhop push keys creates one")
            }
            return nil
        }
        guard let ring = PushKeyRing(settings.pushKeys) else {
            throw settings.$pushKeys.mistake("must be 1 to \(PushKeyRing.keysMax) different keys")
        }
        keys = ring
        guard apns != nil || fcm != nil || webPush != nil else {
            throw settings.$pushKeys.mistake("needs a provider: set apnsKey, fcmAccount or vapidKey, or unset pushKeys")
        }
    }

    private static func apns(_ settings: Settings) throws -> APNs.Account? {
        guard let key = settings.apnsKey else { return nil }
        func required(_ setting: Setting<String?>, _ what: String) throws -> String {
            guard let text = setting.wrappedValue else { throw setting.mistake("is missing: apnsKey needs \(what)") }
            return text
        }
        return APNs.Account(
            key: key, keyId: try required(settings.$apnsKeyId, "the id of the key, 10 characters"),
            team: try required(settings.$apnsTeam, "the id of the team, 10 characters"),
            topic: try required(settings.$apnsTopic, "the bundle id of the app"), url: settings.apnsURL)
    }
}

/// The rules of the settings' texts. Each throws a ``Settings/Fault``.
extension PushSettings {
    static func encryptionKey(_ text: String) throws -> [UInt8] {
        guard let key = RFC4648.decode(text), key.count == PushKeyRing.keyBytes else {
            throw Settings.Fault(
                """
                must be keys of \(PushKeyRing.keyBytes) bytes in base64. Create one with \
                head -c \(PushKeyRing.keyBytes) /dev/urandom | base64
                """)
        }
        return key
    }

    static func appleKey(_ path: String?) throws -> PrivateKey? {
        guard let path else { return nil }
        let text = try contents(of: path)
        guard let key = try? PrivateKey(pem: text), key.algorithm == .es256 else {
            throw Settings.Fault("\(path) is not a .p8 file of Apple: a private key of P-256 in PEM")
        }
        return key
    }

    static func googleAccount(_ path: String?) throws -> FCM.Account? {
        guard let path else { return nil }
        do {
            return try FCM.Account(json: Array(try contents(of: path).utf8))
        } catch let error as FCM.Account.Invalid {
            throw Settings.Fault("\(path) \(error)")
        }
    }

    static func applicationKey(_ text: String?) throws -> PrivateKey? {
        guard let text else { return nil }
        guard let scalar = RFC4648.decodeURL(text.utf8), let key = try? PrivateKey(p256: scalar) else {
            throw Settings.Fault("must be a private key of P-256 in base64url: bellhop push keys makes one")
        }
        return key
    }

    static func requireBundleID(_ text: String) throws {
        guard Device.isBundleID(text) else {
            throw Settings.Fault("must be a bundle id such as com.example.app: letters, digits, hyphens and dots")
        }
    }

    private static let contactProblem =
        "must be mailto: or https:// with a public address at which the operators of push services reach you"

    static func requireContact(_ text: String) throws {
        let isPlain = text.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">")
        }
        guard isPlain, let host = contactHost(text)?.lowercased(), isPublic(host) else {
            throw Settings.Fault(contactProblem)
        }
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
    static func hostPattern(_ text: String) throws -> String {
        let pattern = text.lowercased()
        let host = pattern.hasPrefix("*.") ? String(pattern.dropFirst(2)) : pattern
        guard (try? OutboundURL("https://\(host)/").host) == host else {
            throw Settings.Fault("\(text) is not a host, such as push.example.com, nor *. and a domain")
        }
        return pattern
    }

    /// Reads another address of a provider.
    static func address(_ text: String?) throws -> String? {
        guard let text else { return nil }
        guard try SettingRule.outboundURL(text, suchAs: "https://push.example").query == nil else {
            throw Settings.Fault("must not contain a query (?)")
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }

    private static func contents(of path: String) throws -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw Settings.Fault("\(path) cannot be read: \(error.localizedDescription)")
        }
    }
}
