import Push
import Values

/// A check of the push services: whether each is reached and accepts the key.
struct PushCheck {
    private let push: PushSettings

    init(_ push: PushSettings) { self.push = push }

    /// Sends a message to a device that does not exist. A provider that accepts the key answers that it does not know
    /// the device.
    func examine(_ report: (Finding) -> Void) async {
        let client = PushClient(push, clock: Clock.system)
        client.start()
        defer { client.stop() }
        for provider in push.providers {
            guard let target = provider.absentTarget else {
                let services = provider.services.joined(separator: ", ")
                report(.good("push", "\(provider.name) has a key; services: \(services)"))
                continue
            }
            let outcome = await withCheckedContinuation { continuation in
                client.send(Self.message, to: target) { continuation.resume(returning: $0) }
            }
            report(Self.finding(provider.name, outcome))
        }
    }

    private static let message = PushMessage(
        .badge, badge: 0, tag: "doctor", data: EncodedJSON.emptyObject.bytes, isUrgent: false, secondsToLive: 0)

    private static func finding(_ name: String, _ outcome: PushOutcome) -> Finding {
        switch outcome {
        case .accepted, .gone, .refused, .mismatched: return .good("push", "\(name) is reached and accepts the key")
        case .misconfigured(let reason):
            return .fault("push", "\(name) does not accept the key or another setting: \(reason)", "see Docs/push.md")
        case .failed(let reason, _):
            return .fault("push", "\(name) cannot be asked: \(reason)", "allow HTTPS to the push service, or try again")
        case .interrupted: return .fault("push", "\(name) was not asked", "try again")
        }
    }
}
