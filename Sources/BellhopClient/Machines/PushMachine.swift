/// The registration of a device for push messages, and what a device does with a message.
///
/// The app registers the token at each start, because the platform may have changed it. While the device is registered,
/// messages that were seen elsewhere leave its screen, and the number on the icon follows the counts of the stream.
public struct PushMachine: ShownMachine {
    public enum Status: String, Sendable, Hashable, Codable {
        /// The device is not registered.
        case off
        /// The service has not answered yet.
        case registering
        /// The device receives push messages.
        case on
        /// The user has refused the permission.
        case denied
        /// The device has no push messages.
        case unsupported
        /// The service sends no push messages.
        case unavailable
        /// The service has refused the device.
        case refused

        /// Whether it holds for every user of the device.
        fileprivate var isLasting: Bool { [.denied, .unsupported, .unavailable].contains(self) }
    }

    public private(set) var deviceId: String
    public private(set) var status = Status.off
    public private(set) var problem: JSON = .null
    private var draft: JSON = .null
    /// The name of the request without an answer.
    private var request: String?
    private var count = 0
    private var failures = 0

    /// The part of an event that names the notifications that were seen or removed.
    private struct Settled: Decodable {
        let ids: [String]
        let state: Bellhop.NotificationStateChange?
    }

    /// The part of `conversation:read` that says what the user has read.
    private struct Read: Decodable {
        let conversationId: String
        let unread: Int
    }

    public init(deviceId: String = "") { self.deviceId = deviceId }

    /// The path of the device, if the service may know it.
    private var registeredPath: String? { draft.isNull ? nil : path }

    private var path: String { PushMachine.path(of: deviceId) }

    static func path(of deviceID: String) -> String { "/v1/devices/\(deviceID.pathSegment)" }

    private static func timer(_ at: Int?) -> FeatureAction { .timer(name: "push", at: at) }

    public mutating func receive(_ input: FeatureInput<PushCommand>, now: Int) -> [FeatureAction] {
        switch input {
        case .command(let command): return self.command(command)
        case .timer: return !draft.isNull && request == nil ? put() : []
        case .connection(let isLive): return isLive && status == .registering && request == nil ? put() : []
        case .user:
            // The registration of the former user ended with the sign-out, or ends when another user registers the token.
            var other = PushMachine(deviceId: deviceId)
            (other.status, other.count) = (status.isLasting ? status : .off, count)
            self = other
            return [PushMachine.timer(nil)]
        case .answer(let name, let status, let body, let retryAfterSeconds):
            guard name == request else { return [] }
            request = nil
            return answered(
                ClassifiedAnswer(status: status, body: body, retryAfterSeconds: retryAfterSeconds), now: now)
        case .event(let event): return status == .on ? PushMachine.settled(by: event).map(FeatureAction.push) : []
        default: return []
        }
    }

    private mutating func command(_ command: PushCommand) -> [FeatureAction] {
        switch command {
        case .message(let payload): return PushPayload(payload).actions.map(FeatureAction.push)
        case .device(let id): deviceId = id
        case .status(let status): (self.status, problem) = (status, .null)
        case .register(let draft):
            (self.draft, problem, failures) = (draft, .null, 0)
            return put()
        case .unregister:
            let path = registeredPath
            let count = count
            self = PushMachine(deviceId: deviceId)
            self.count = count
            guard let path else { return [PushMachine.timer(nil)] }
            return [
                PushMachine.timer(nil), .call(method: "DELETE", path: path, body: nil, as: "unregister"),
            ]
        }
        return []
    }

    private mutating func put() -> [FeatureAction] {
        count += 1
        let name = "register-\(count)"
        (request, status) = (name, .registering)
        return [PushMachine.timer(nil), .call(method: "PUT", path: path, body: draft, as: name)]
    }

    private mutating func answered(_ answer: ClassifiedAnswer, now: Int) -> [FeatureAction] {
        if answer.isTaken {
            (status, problem, failures) = (.on, .null, 0)
            return []
        }
        problem = answer.problem
        if answer.isFinal {
            (status, draft) = (answer.refusal.code == "push.off" ? .unavailable : .refused, .null)
            return []
        }
        failures += 1
        let wait = ClassifiedAnswer.waitMilliseconds(failures: failures, retryAfterSeconds: answer.retryAfterSeconds)
        return [PushMachine.timer(now + wait)]
    }

    /// Returns the changes of the screen for messages that were seen elsewhere.
    private static func settled(by event: FeatureEvent) -> [PushAction] {
        switch event.name {
        case "badges:update": return BadgeCounts(event.data).map { [.badge($0.total)] } ?? []
        case "notification:updated", "notification:removed":
            guard let settled = event.data.model(Settled.self), !settled.ids.isEmpty else { return [] }
            let isSeen = settled.state.map { [$0.seen, $0.read, $0.archived].contains(true) } ?? true
            return isSeen ? [.close(settled.ids)] : []
        case "conversation:read":
            guard let read = event.data.model(Read.self), read.unread == 0 else { return [] }
            return [.close(["conversation:\(read.conversationId)"])]
        default: return []
        }
    }

    public struct Snapshot: Sendable, Hashable {
        public let status: Status
        public let problem: Bellhop.Problem?
        /// The id under which the service knows this device; empty until it is first registered.
        public let deviceId: String
    }

    public var snapshot: Snapshot {
        Snapshot(status: status, problem: Bellhop.Problem(problem), deviceId: deviceId)
    }

    private enum CodingKeys: CodingKey { case deviceId, status, problem, draft }
}

/// The commands of the user or the app.
public enum PushCommand: Sendable, Hashable {
    case device(id: String)
    /// Notes what the platform says before there is a token.
    case status(status: PushMachine.Status)
    case register(draft: JSON)
    case unregister
    case message(payload: JSON)
}
