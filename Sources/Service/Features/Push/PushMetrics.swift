import Domain
import Threads
import Values

/// The metrics of this process's push messages, and the state of the outbox at the last count.
final class PushMetrics: Sendable {
    private struct Kind: Hashable {
        let platform: Device.Platform
        let word: String
    }

    private struct State {
        /// By type.
        var sent: [Kind: Int] = [:]
        /// By reason: a word of a provider or of the sender. There are some hundred at most.
        var failed: [Kind: Int] = [:]
        var removed: [Device.Platform: Int] = [:]
        /// The platforms whose provider did not accept the key or another setting at the last attempt.
        var misconfigured: Set<Device.Platform> = []
        var unsent = 0
        var figures = PushFeature.Figures()
        var throttled = 0
    }

    /// Different reasons of failures. A provider's word is counted as "other" beyond them.
    private static let reasonsMax = 200

    private let state = Locked(State())

    init(_ metrics: MetricsRegistry, clock: Clock) {
        metrics.register { [state] text in
            let now = clock.now()
            let state = state.withLock { $0 }
            text.family("bellhop_push_sent_total", .counter, "Push messages accepted by the provider.")
            for platform in Device.Platform.allCases {
                for type in PushType.allCases {
                    let count = state.sent[Kind(platform: platform, word: type.rawValue)] ?? 0
                    text.sample(
                        "bellhop_push_sent_total", [("platform", platform.rawValue), ("type", type.rawValue)],
                        Double(count))
                }
            }
            text.family("bellhop_push_failed_total", .counter, "Failed attempts, by the provider's reason.")
            for (kind, count) in state.failed.sorted(by: {
                ($0.key.platform.rawValue, $0.key.word) < ($1.key.platform.rawValue, $1.key.word)
            }) {
                text.sample(
                    "bellhop_push_failed_total", [("platform", kind.platform.rawValue), ("reason", kind.word)],
                    Double(count))
            }
            text.family(
                "bellhop_push_misconfigured", .gauge,
                "1 while the provider does not accept the key or another setting.")
            for platform in Device.Platform.allCases {
                text.sample(
                    "bellhop_push_misconfigured", [("platform", platform.rawValue)],
                    state.misconfigured.contains(platform) ? 1 : 0)
            }
            text.family("bellhop_push_devices_removed_total", .counter, "Devices that a provider no longer knows.")
            for platform in Device.Platform.allCases {
                text.sample(
                    "bellhop_push_devices_removed_total", [("platform", platform.rawValue)],
                    Double(state.removed[platform] ?? 0))
            }
            text.single(
                "bellhop_push_expired_total", .counter, "Push messages that were deleted unsent.", state.unsent)
            text.single("bellhop_push_waiting", .gauge, "Due push messages, over all replicas.", state.figures.waiting)
            text.single("bellhop_push_devices", .gauge, "Registered devices.", state.figures.devices)
            text.family(
                "bellhop_tenant_push_waiting", .gauge, "Due push messages of a tenant, for the tenants with the most.",
                by: "tenant", state.figures.dueByTenant.map { ($0.0.text, $0.1) })
            text.single(
                "bellhop_push_throttled_tenants", .gauge,
                "Tenants whose push messages wait for the next minute, because the share of this minute is used up.",
                state.throttled)
            let age = state.figures.oldestDueAt.map { max(0, now.seconds - $0.seconds) } ?? 0
            text.single(
                "bellhop_push_oldest_seconds", .gauge, "Seconds for which the oldest due push message has waited.", age)
        }
    }

    func noteSent(_ platform: Device.Platform, _ type: PushType) {
        state.withLock { state in
            state.sent[Kind(platform: platform, word: type.rawValue), default: 0] += 1
            state.misconfigured.remove(platform)
        }
    }

    func noteMisconfigured(_ platform: Device.Platform) { state.withLock { _ = $0.misconfigured.insert(platform) } }

    func noteFailed(_ platform: Device.Platform, _ reason: String) {
        state.withLock { state in
            let known = state.failed[Kind(platform: platform, word: reason)] != nil
            let word = known || state.failed.count < Self.reasonsMax ? reason : "other"
            state.failed[Kind(platform: platform, word: word), default: 0] += 1
        }
    }

    func noteRemoved(_ platform: Device.Platform) { state.withLock { $0.removed[platform, default: 0] += 1 } }

    func noteUnsent(_ count: Int) { state.withLock { $0.unsent += count } }

    func note(_ figures: PushFeature.Figures, throttled: Int) {
        state.withLock { ($0.figures, $0.throttled) = (figures, throttled) }
    }
}
