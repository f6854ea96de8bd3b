import Domain
import Foundation
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
    /// The providers that are set up.
    let providers: [any PushProvider]
    let allowsPrivate: Bool
    let certificates: String?
    let timeoutSeconds: Int

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
        if let certificates, (try? Self.contents(of: certificates)) == nil {
            throw settings.$pushCertificates.mistake("names \(certificates), which cannot be read")
        }
        providers = try Self.providers(settings)
        guard !settings.pushKeys.isEmpty else {
            guard providers.isEmpty else {
                throw settings.$pushKeys.mistake(
                    "is missing: it encrypts the addresses of devices. bellhop push keys creates one")
            }
            return nil
        }
        guard let ring = PushKeyRing(settings.pushKeys) else {
            throw settings.$pushKeys.mistake("must be 1 to \(PushKeyRing.keysMax) different keys")
        }
        keys = ring
        guard !providers.isEmpty else {
            let names = PushProviders.all.map { $0.settings[0].name }.joined(separator: ", ")
            throw settings.$pushKeys.mistake("needs a provider: set one of \(names), or unset pushKeys")
        }
    }

    /// Returns the provider of a platform; nil if it is not set up.
    func provider(of platform: String) -> (any PushProvider)? { providers.first { $0.name == platform } }

    private static func providers(_ settings: Settings) throws -> [any PushProvider] {
        let keys = settings.pushProviders
        let texts = keys.compactMap { key in key.wrappedValue.map { (key.name, $0) } }
        let values = PushSettingValues(
            Dictionary(uniqueKeysWithValues: texts), allowsPrivate: settings.pushPrivate, read: contents)
        do {
            return try PushProviders.all.compactMap { provider in
                let made = try provider.init(values)
                try values.requireWhole(provider.settings)
                return made
            }
        } catch let mistake as PushSetting.Mistake {
            guard let key = keys.first(where: { $0.name == mistake.setting }) else { throw mistake }
            throw key.mistake(mistake.problem)
        }
    }

    private static func contents(of path: String) throws -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw PushSetting.Fault("\(path) cannot be read: \(error.localizedDescription)")
        }
    }

    /// Reads a key that encrypts the addresses of devices.
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
}
