import Domain
import OutboundHTTP
import Rows

/// The destination, the content and the signing of webhooks.
struct WebhookSettings: Sendable {
    let url: String
    /// The host of the address, the only part of it that is logged.
    let host: String
    /// Each secret adds a signature.
    let secrets: [WebhookSignature.Secret]
    let priorities: Set<Priority>
    let sendsMessages: Bool
    /// Seconds after which an unseen notification or message is sent.
    let afterSeconds: Int
    /// Whether notifications of users without an open stream are sent without waiting.
    let isImmediate: Bool
    let allowsPrivate: Bool
    let timeoutSeconds: Int

    /// Reads the settings.
    ///
    /// - Returns: Nil if no address is set. Then nothing is sent.
    init?(_ settings: Settings) throws {
        secrets = settings.webhookSecrets
        priorities = Set(settings.webhookPriorities)
        sendsMessages = settings.webhookMessages
        afterSeconds = settings.webhookAfterSeconds
        isImmediate = settings.webhookAtOnce
        allowsPrivate = settings.webhookPrivate
        timeoutSeconds = settings.webhookTimeoutSeconds
        guard let url = settings.webhookURL else { return nil }
        self.url = url
        host = try settings.$webhookURL.reportingFaults {
            try Self.host(of: url, allowsPrivate: settings.webhookPrivate)
        }
        guard (1...WebhookSignature.secretsMax).contains(secrets.count) else {
            throw settings.$webhookSecrets.mistake(
                """
                must have 1 to \(WebhookSignature.secretsMax) secrets, which prove the sender to the receiver. Create one with \
                echo whsec_$(head -c 32 /dev/urandom | base64)
                """)
        }
    }

    private static func host(of url: String, allowsPrivate: Bool) throws -> String {
        let address = try SettingRule.outboundURL(url, suchAs: "https://app.example/hooks")
        guard !allowsPrivate else { return address.host }
        let setting = Settings.variable(\.$webhookPrivate)
        guard address.isEncrypted else {
            throw Settings.Fault("must begin with https://, unless \(setting) allows receivers on private networks")
        }
        if let number = address.address, !number.isPublic {
            throw Settings.Fault("\(address.host) is a private address: set \(setting)=true to allow it")
        }
        return address.host
    }
}
