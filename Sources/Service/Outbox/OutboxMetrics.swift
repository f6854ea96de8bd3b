import Domain
import Threads
import Values

/// The metrics of this process's messages, and the state of the outbox at the last count.
final class OutboxMetrics: Sendable {
    private struct Key: Hashable {
        let channel: String
        let word: String
    }

    private struct State {
        /// By channel and type.
        var sent: [Key: Int] = [:]
        /// By channel and reason: a word of a receiver or of the service. There are some hundred at most.
        var failed: [Key: Int] = [:]
        var removed: [String: Int] = [:]
        /// The channels whose receiver did not accept the key or another setting at the last attempt.
        var misconfigured: Set<String> = []
        var ended: [OutboxFamily: [WebhookFailureReason: Int]] = [:]
        var figures: [OutboxFamily: Outbox.Figures] = [:]
        var throttled: [String: Int] = [:]
        /// The number of routes that are down, by channel.
        var down: [String: Int] = [:]
    }

    private let state = Locked(State())

    init(_ metrics: MetricsRegistry, _ channels: [any Channel], clock: Clock) {
        let families = Set(channels.map(\.family))
        let names = channels.filter(\.hasRequests).map(\.name)
        let platforms = channels.filter { $0.family == .push && $0.hasRequests }.map(\.name)
        metrics.register { [state] text in
            let (now, state) = (clock.now(), state.withLock { $0 })
            if families.contains(.webhooks) { Self.write(state, at: now, webhooksTo: &text) }
            if families.contains(.push) { Self.write(state, at: now, platforms, pushTo: &text) }
            text.family(
                "bellhop_outbox_routes_down", .gauge,
                "Receivers for which messages wait although attempts in a row have failed on this replica, by channel.",
                by: "channel",
                samples: names.map { ($0, state.down[$0] ?? 0) })
        }
    }

    // MARK: Text

    private static func write(_ state: State, at now: Timestamp, webhooksTo text: inout MetricsText) {
        let figures = state.figures[.webhooks] ?? Outbox.Figures()
        func sum(_ counts: [Key: Int], _ word: String) -> Int {
            counts[Key(channel: WebhookType.channel, word: word)] ?? 0
        }
        text.family(
            "bellhop_webhooks_sent_total", .counter, "Webhooks accepted by the receiver, by type.",
            by: "type", samples: WebhookType.allCases.map { ($0.rawValue, sum(state.sent, $0.rawValue)) })
        let failed = state.failed.filter { $0.key.channel == WebhookType.channel }
        text.family(
            "bellhop_webhooks_failed_total", .counter, "Failed attempts, by reason.",
            by: "reason", samples: failed.sorted { $0.key.word < $1.key.word }.map { ($0.key.word, $0.value) })
        text.family(
            "bellhop_webhooks_died_total", .counter, "Webhooks that are no longer retried, by reason.", by: "reason",
            samples: WebhookFailureReason.allCases.map { ($0.rawValue, state.ended[.webhooks]?[$0] ?? 0) })
        text.single(
            "bellhop_webhooks_waiting", .gauge, "Webhooks waiting to be sent, over all replicas.",
            value: figures.waiting)
        text.single("bellhop_webhooks_dead", .gauge, "Stored dead webhooks.", value: figures.dead)
        text.family(
            "bellhop_tenant_webhooks_waiting", .gauge,
            "Webhooks of a tenant that were due, also before another attempt, for the tenants with the most.",
            by: "tenant", samples: dueByTenant(figures))
        text.single(
            "bellhop_webhooks_throttled_tenants", .gauge,
            "Tenants whose webhooks wait for the next minute, because the share of this minute is used up.",
            value: state.throttled[WebhookType.channel] ?? 0)
        text.single(
            "bellhop_webhooks_oldest_seconds", .gauge, "Seconds for which the oldest due webhook has waited.",
            value: age(figures, at: now))
    }

    private static func write(_ state: State, at now: Timestamp, _ platforms: [String], pushTo text: inout MetricsText)
    {
        let figures = state.figures[.push] ?? Outbox.Figures()
        text.family("bellhop_push_sent_total", .counter, "Push messages accepted by the provider.")
        for platform in platforms {
            for type in PushType.allCases {
                let count = state.sent[Key(channel: platform, word: type.rawValue)] ?? 0
                text.sample(
                    "bellhop_push_sent_total", [("platform", platform), ("type", type.rawValue)], Double(count))
            }
        }
        text.family("bellhop_push_failed_total", .counter, "Failed attempts, by the provider's reason.")
        for (key, count) in state.failed.sorted(by: { ($0.key.channel, $0.key.word) < ($1.key.channel, $1.key.word) })
        where platforms.contains(key.channel) {
            text.sample(
                "bellhop_push_failed_total", [("platform", key.channel), ("reason", key.word)], Double(count))
        }
        text.family(
            "bellhop_push_misconfigured", .gauge, "1 while the provider does not accept the key or another setting.",
            by: "platform", samples: platforms.map { ($0, state.misconfigured.contains($0) ? 1 : 0) })
        text.family(
            "bellhop_push_devices_removed_total", .counter, "Devices that a provider no longer knows.", by: "platform",
            samples: platforms.map { ($0, state.removed[$0] ?? 0) })
        text.single(
            "bellhop_push_expired_total", .counter, "Push messages that were deleted unsent.",
            value: state.ended[.push]?.values.reduce(0, +) ?? 0)
        text.single("bellhop_push_waiting", .gauge, "Due push messages, over all replicas.", value: figures.due)
        text.family(
            "bellhop_tenant_push_waiting", .gauge,
            "Push messages of a tenant that were due, also before another attempt, for the tenants with the most.",
            by: "tenant", samples: dueByTenant(figures))
        text.single(
            "bellhop_push_throttled_tenants", .gauge,
            "Tenants whose push messages wait for the next minute, because the share of this minute is used up.",
            value: platforms.compactMap { state.throttled[$0] }.max() ?? 0)
        text.single(
            "bellhop_push_oldest_seconds", .gauge, "Seconds for which the oldest due push message has waited.",
            value: age(figures, at: now))
    }

    private static func dueByTenant(_ figures: Outbox.Figures) -> [(String, Int)] {
        TenantShares.largest(figures.dueByTenant.map { ($0.key, $0.value) }).map { ($0.0.text, $0.1) }
    }

    private static func age(_ figures: Outbox.Figures, at now: Timestamp) -> Int64 {
        figures.oldestDueAt.map { max(0, now.seconds - $0.seconds) } ?? 0
    }

    // MARK: Counts

    func note(_ outcome: OutboxOutcome, _ result: OutboxResult, _ type: String, of channel: any Channel) {
        state.withLock { state in
            if outcome == .accepted {
                state.sent[Key(channel: channel.name, word: type), default: 0] += 1
                state.misconfigured.remove(channel.name)
            }
            if case .misconfigured(_, isGeneral: true) = outcome { state.misconfigured.insert(channel.name) }
            if case .removed = result { state.removed[channel.name, default: 0] += 1 }
            if case .ended(_, .expired) = result {
                state.ended[channel.family, default: [:]][.expired, default: 0] += 1
            }
            guard let reason = outcome.reason else { return }
            let known = state.failed[Key(channel: channel.name, word: reason)] != nil
            let word = known || state.failed.count < OutboxLimits.reasonsMax ? reason : "other"
            state.failed[Key(channel: channel.name, word: word), default: 0] += 1
        }
    }

    /// Notes messages that were given up without an attempt.
    func note(_ counts: [OutboxFamily: Int], _ why: WebhookFailureReason) {
        state.withLock { state in
            for (family, count) in counts where count > 0 {
                state.ended[family, default: [:]][why, default: 0] += count
            }
        }
    }

    func note(_ figures: [OutboxFamily: Outbox.Figures]) { state.withLock { $0.figures = figures } }

    /// The number of routes of each channel that are down.
    func note(down counts: [String: Int]) { state.withLock { $0.down = counts } }

    /// The tenants of each channel that have used up the present minute.
    var throttled: [String: Int] {
        get { state.withLock { $0.throttled } }
        set { state.withLock { $0.throttled = newValue } }
    }
}
