import Domain
import Foundation
import OutboundHTTP
import Rows
import Values

/// The destination, the content and the signing of webhooks.
struct WebhookSettings: Sendable {
    let url: String
    /// The host of the address, the only part of it that is logged.
    let host: String
    /// Each secret adds a signature.
    let secrets: [WebhookSignature.Secret]
    let priorities: Set<Priority>
    /// Seconds after which an unseen notification is sent.
    let afterSeconds: Int
    /// Whether notifications of users without an open stream are sent without waiting.
    let isImmediate: Bool
    let allowsPrivate: Bool
    let timeoutSeconds: Int

    /// Reads the settings.
    ///
    /// - Returns: Nil if no address is set. Then nothing is sent, but the other settings are checked nevertheless.
    init?(_ values: SettingsReader) throws {
        secrets = try values.secrets("webhookSecrets")
        priorities = Set(
            try values.list("webhookPriorities").map { word throws(Settings.Mistake) in
                guard let priority = Priority(rawValue: word) else {
                    let known = Priority.allCases.map(\.rawValue).joined(separator: ", ")
                    throw Settings.Mistake("webhookPriorities", "\(word) is not one of \(known)")
                }
                return priority
            })
        afterSeconds = try values.int("webhookAfterSeconds", in: 0...86_400)
        isImmediate = try values.bool("webhookAtOnce")
        allowsPrivate = try values.bool("webhookPrivate")
        timeoutSeconds = try values.int("webhookTimeoutSeconds", in: 1...60)
        guard let url = values.optionalText("webhookURL") else { return nil }
        self.url = url
        host = try Self.host(of: url, allowsPrivate: allowsPrivate)
        guard (1...WebhookSignature.secretsMax).contains(secrets.count) else {
            throw Settings.Mistake(
                "webhookSecrets",
                """
                must have 1 to \(WebhookSignature.secretsMax) secrets, which prove the sender to the receiver. Create one with \
                echo whsec_$(head -c 32 /dev/urandom | base64)
                """)
        }
    }

    private static func host(of url: String, allowsPrivate: Bool) throws(Settings.Mistake) -> String {
        func mistake(_ problem: String) -> Settings.Mistake { Settings.Mistake("webhookURL", problem) }
        let isPlain = url.utf8.count <= 2048 && url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isPlain, let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            scheme == "https" || scheme == "http", let host = parts.host, !host.isEmpty
        else { throw mistake("must be a URL such as https://app.example/hooks") }
        guard parts.user == nil, parts.password == nil else {
            throw mistake("must not contain a user or password: the signature proves the sender")
        }
        guard parts.fragment == nil else { throw mistake("must not contain a fragment (#)") }
        guard !allowsPrivate else { return host }
        let setting = Settings.Key.variable("webhookPrivate")
        guard scheme == "https" else {
            throw mistake("must begin with https://, unless \(setting) allows receivers on private networks")
        }
        if let address = RemoteAddress(host.trimmingCharacters(in: ["[", "]"])), !address.isPublic {
            throw mistake("\(host) is a private address: set \(setting)=true to allow it")
        }
        return host
    }
}

extension SettingsReader {
    /// Reads secrets of webhooks, `whsec_…`.
    func secrets(_ name: String) throws(Settings.Mistake) -> [WebhookSignature.Secret] {
        try list(name).map { text throws(Settings.Mistake) in
            do throws(Failure) {
                return try WebhookSignature.Secret(text)
            } catch {
                throw Settings.Mistake(name, error.detail)
            }
        }
    }
}
