import Domain
import Threads
import Values

/// The metrics of this process's webhooks, and the state of the outbox at the last count.
final class WebhookMetrics: Sendable {
    private struct State {
        var sent: [WebhookType: Int] = [:]
        /// Failures by reason: a word of the sender, or `status_` and three digits. There are some hundred at most.
        var failed: [String: Int] = [:]
        var dead: [WebhookFailureReason: Int] = [:]
        var figures = WebhooksFeature.Figures()
        var throttled = 0
    }

    private let state = Locked(State())

    init(_ metrics: MetricsRegistry, clock: Clock) {
        metrics.register { [state] text in
            let now = clock.now()
            let state = state.withLock { $0 }
            text.family(
                "bellhop_webhooks_sent_total", .counter, "Webhooks accepted by the receiver, by type.",
                by: "type", WebhookType.allCases.map { ($0.rawValue, state.sent[$0] ?? 0) })
            text.family(
                "bellhop_webhooks_failed_total", .counter, "Failed attempts, by reason.",
                by: "reason", state.failed.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
            text.family(
                "bellhop_webhooks_died_total", .counter, "Webhooks that are no longer retried, by reason.",
                by: "reason", WebhookFailureReason.allCases.map { ($0.rawValue, state.dead[$0] ?? 0) })
            text.single(
                "bellhop_webhooks_waiting", .gauge, "Webhooks waiting to be sent, over all replicas.",
                state.figures.waiting)
            text.single("bellhop_webhooks_dead", .gauge, "Stored dead webhooks.", state.figures.dead)
            text.family(
                "bellhop_tenant_webhooks_waiting", .gauge, "Due webhooks of a tenant, for the tenants with the most.",
                by: "tenant", state.figures.dueByTenant.map { ($0.0.text, $0.1) })
            text.single(
                "bellhop_webhooks_throttled_tenants", .gauge,
                "Tenants whose webhooks wait for the next minute, because the share of this minute is used up.",
                state.throttled)
            let age = state.figures.oldestDueAt.map { max(0, now.seconds - $0.seconds) } ?? 0
            text.single(
                "bellhop_webhooks_oldest_seconds", .gauge, "Seconds for which the oldest due webhook has waited.", age)
        }
    }

    func noteSent(_ type: WebhookType) { state.withLock { $0.sent[type, default: 0] += 1 } }

    func noteFailed(_ reason: String) { state.withLock { $0.failed[reason, default: 0] += 1 } }

    func noteDead(_ dead: [WebhookFailureReason: Int]) { state.withLock { $0.dead.merge(dead, uniquingKeysWith: +) } }

    func note(_ figures: WebhooksFeature.Figures, throttled: Int) {
        state.withLock { ($0.figures, $0.throttled) = (figures, throttled) }
    }
}
