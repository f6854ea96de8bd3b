import OutboundHTTP

/// A check of the receiver of webhooks: whether it is reached from here, with a certificate that is accepted.
struct WebhookCheck {
    private let webhook: WebhookSettings

    init(_ webhook: WebhookSettings) { self.webhook = webhook }

    /// Sends a GET, which no receiver takes for a webhook. Any answer shows that it is reached.
    func examine() -> Finding {
        let client = OutboundClient(allowsPrivate: webhook.allowsPrivate, timeoutSeconds: webhook.timeoutSeconds)
        let answer = client.watch(OutboundProbe(url: webhook.url)) { _ in false }
        guard answer.status == 0 else { return .good("webhooks", "\(webhook.host) answers") }
        let reason = answer.failure?.rawValue ?? "no_answer"
        return .fault(
            "webhooks", "\(webhook.host) cannot be reached: \(reason)",
            "correct \(Settings.variable(\.$webhookURL)), or let the service connect to it")
    }
}
