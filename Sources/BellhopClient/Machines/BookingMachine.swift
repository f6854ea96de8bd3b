/// One booking. A status change plays haptics. The user's own change shows at once, and is reverted if the service
/// refuses it.
public struct BookingMachine: FeatureMachine {
    public let bookingId: String
    /// The shown booking; null until it is known.
    public private(set) var booking: JSON = .null
    private var stored: JSON = .null
    /// Whether a change by the user is pending.
    public var isPending: Bool { pending != nil }
    private var pending: Pending?
    private var count = 0
    /// Number of replayed events that are still expected.
    private var replaying = 0
    private var loading = Loading()
    public var isLoaded: Bool { loading.isLoaded }
    public var problem: JSON { loading.problem }

    private struct Pending: Sendable, Encodable {
        let name: String
        let set: JSON
    }

    public init(bookingId: String) {
        self.bookingId = bookingId
    }

    private var path: String { "/v1/bookings/\(bookingId.pathSegment)" }
    private var plan: Loading.Plan {
        Loading.Plan(name: "booking", path: path, events: ["booking:status_change"])
    }

    public mutating func receive(_ input: FeatureInput, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = BookingMachine(bookingId: bookingId)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let step = loading.advance(input, plan, now: now)
        var actions = step.actions
        if let body = step.body {
            merge(body)
            for event in step.since { merge(BookingMachine.fields(event.data)) }
        }
        switch input {
        case .event(let name, let data, let id): actions += handle(name, data, id, now: now)
        case .command("change", let arguments): actions += change(arguments["set"])
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body), now: now)
        default: break
        }
        booking = stored.isNull ? .null : pending.map { stored.with($0.set.object ?? [:]) } ?? stored
        return actions
    }

    private mutating func handle(_ name: String, _ data: JSON, _ id: String, now: Int) -> [FeatureAction] {
        // An event replayed after a break must not trigger haptics.
        let isReplayed = replaying > 0 && !id.isEmpty
        if name == "stream:ready" {
            replaying = data["replayed"].int ?? 0
        } else if isReplayed {
            replaying -= 1
        }
        guard name == "booking:status_change", data["bookingId"].string == bookingId else { return [] }
        let before = stored
        merge(BookingMachine.fields(data))
        guard stored != before else { return [] }
        // The event carries the status; the rest of the booking, such as its start time, is fetched.
        let fetch = loading.advance(.command("refresh", .null), plan, now: now).actions
        guard !before.isNull, before["status"] != data["status"], !isReplayed else { return fetch }
        return [played(data["status"].string ?? "")] + fetch
    }

    /// Plays haptics for a status. A notification reports the same change; the shared key makes the phone vibrate once
    /// for both.
    private func played(_ status: String) -> FeatureAction {
        let success: JSON = ["notification": "success", "impacts": [], "pulses": 1]
        return .play(haptic: success, sound: false, key: "booking:\(bookingId):\(status)")
    }

    private mutating func change(_ set: JSON) -> [FeatureAction] {
        guard !stored.isNull, pending == nil else { return [] }
        count += 1
        let name = "change-\(count)"
        pending = Pending(name: name, set: set)
        let seen = "\"\(stored["version"].int ?? 0)-\(stored["epoch"].string ?? "")\""
        return [.send(method: "PATCH", path: path, body: set, headers: ["If-Match": seen], as: name)]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer, now: Int) -> [FeatureAction] {
        guard let pending, pending.name == name else { return [] }
        self.pending = nil
        if answer.isTaken {
            merge(answer.body)
            return []
        }
        var problem = answer.problem
        if !answer.body["allowed"].isNull { problem = problem.with(["allowed": answer.body["allowed"]]) }
        let refusal = FeatureAction.tell(
            name: "booking:refused", data: ["bookingId": .string(bookingId), "problem": problem])
        return [refusal] + loading.advance(.command("refresh", .null), plan, now: now).actions
    }

    /// Returns the members of an event that belong to a booking.
    private static func fields(_ data: JSON) -> JSON {
        [
            "id": data["bookingId"], "status": data["status"], "version": data["version"], "epoch": data["epoch"],
            "estimatedCompletion": data["estimatedCompletion"],
        ]
    }

    private mutating func merge(_ newer: JSON) {
        guard newer["id"].string == bookingId else { return }
        // A whole booking of the same version completes the state that an event started.
        let isSame = newer["version"] == stored["version"] && newer["epoch"] == stored["epoch"]
        guard isNewer(stored, newer) || (isSame && !newer["createdAt"].isNull) else { return }
        stored = stored.with(newer.object ?? [:])
    }

    private enum CodingKeys: CodingKey { case bookingId, booking, stored, pending, isPending, isLoaded, problem }

    public func encode(to encoder: any Encoder) throws {
        var state = encoder.container(keyedBy: CodingKeys.self)
        try state.encode(bookingId, forKey: .bookingId)
        try state.encode(booking, forKey: .booking)
        try state.encode(stored, forKey: .stored)
        try state.encode(pending, forKey: .pending)
        try state.encode(isPending, forKey: .isPending)
        try state.encode(isLoaded, forKey: .isLoaded)
        try state.encode(problem, forKey: .problem)
    }
}
