/// One booking. A status change plays haptics. The user's own change shows at once, and is reverted if the service
/// refuses it.
public struct BookingMachine: ShownMachine {
    public let bookingId: String
    /// The shown booking; nil until it is known.
    public private(set) var booking: Bellhop.Booking?
    /// The booking as the service last described it, without the user's pending change.
    private var stored: Bellhop.Booking?
    /// A change that arrived before the booking was loaded.
    private var early: Bellhop.BookingStatusChange?
    /// Whether a change by the user is pending.
    public private(set) var isPending = false
    private var pending: Pending?
    /// The number of changes by the user. It names their requests.
    private var count = 0
    /// Number of replayed events that are still expected.
    private var replaying = 0
    private var loading = Loading()
    public private(set) var isLoaded = false
    public private(set) var problem: JSON = .null

    private struct Pending: Sendable, Encodable {
        /// The name of the request, under which its answer arrives.
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

    public mutating func receive(_ input: FeatureInput<BookingCommand>, now: Int) -> [FeatureAction] {
        if case .user(let user, let isSignedIn) = input {
            self = BookingMachine(bookingId: bookingId)
            return begin(for: user, isSignedIn: isSignedIn, now: now)
        }
        let step = loading.advance(input, plan, now: now)
        var actions = step.actions
        if step.isGone { stored = nil }
        if let answer = step.answer {
            if let whole = answer.model(Bellhop.Booking.self) { merge(whole) }
            for event in step.since {
                if case .bookingStatusChange(let change) = event.event.typed { merge(change) }
            }
        }
        switch input {
        case .event(let event): actions += handle(event)
        case .command(.change(let set)): actions += change(set)
        case .restore:
            if let kept = input.restored(Kept.self), loading.restore() { merge(kept.booking) }
        case .waiting(let items):
            for item in items where item.match("PATCH", "/v1/bookings/*") == [bookingId] {
                pending = pending ?? item.body.map { Pending(name: item.answerName, set: $0) }
            }
        case .answer(let name, let status, let body, _):
            actions += answered(name, ClassifiedAnswer(status: status, body: body))
        default: break
        }
        booking = pending.flatMap { stored?.with($0.set) } ?? stored
        (isPending, isLoaded, problem) = (pending != nil, loading.isLoaded, loading.problem)
        return actions
    }

    /// The state to keep on the device.
    private struct Kept: Codable, Sendable {
        let booking: Bellhop.Booking
    }

    public var kept: (any Encodable & Sendable)? { stored.map(Kept.init) }

    private mutating func handle(_ event: FeatureEvent) -> [FeatureAction] {
        // An event replayed after a break must not trigger haptics.
        let isReplayed = replaying > 0 && !event.id.isEmpty
        if case .streamReady(let ready) = event.typed {
            replaying = ready.replayed
        } else if isReplayed {
            replaying -= 1
        }
        guard case .bookingStatusChange(let change) = event.typed, change.bookingId == bookingId else { return [] }
        let before = stored?.status ?? early?.status
        guard merge(change) else { return [] }
        // The event carries the status; the rest of the booking, such as its start time, is fetched.
        let fetch = loading.refresh(plan)
        guard let before, before != change.status, !isReplayed else { return fetch }
        return [played(change.status.rawValue)] + fetch
    }

    /// Plays haptics for a status. A notification reports the same change; the shared key makes the phone vibrate once
    /// for both.
    private func played(_ status: String) -> FeatureAction {
        let success = Bellhop.Haptic(notification: .success, impacts: [], pulses: 1)
        return .play(haptic: success, sound: false, key: "booking:\(bookingId):\(status)")
    }

    private mutating func change(_ set: JSON) -> [FeatureAction] {
        guard let stored, pending == nil else { return [] }
        count += 1
        let name = "change-\(count)"
        pending = Pending(name: name, set: set)
        return [.send(method: "PATCH", path: path, body: set, headers: ["If-Match": stored.versionTag], as: name)]
    }

    private mutating func answered(_ name: String, _ answer: ClassifiedAnswer) -> [FeatureAction] {
        guard let pending, pending.name == name else { return [] }
        self.pending = nil
        if answer.isTaken {
            if let whole = answer.model(Bellhop.Booking.self) { merge(whole) }
            return []
        }
        var problem = answer.problem
        if let allowed = answer.refusal.allowed {
            problem = problem.with(["allowed": .array(allowed.map(JSON.string))])
        }
        let refusal = FeatureAction.publish(
            name: "booking:refused", data: ["bookingId": .string(bookingId), "problem": problem])
        return [refusal] + loading.refresh(plan)
    }

    /// Applies a change, and returns whether it was newer.
    @discardableResult
    private mutating func merge(_ change: Bellhop.BookingStatusChange) -> Bool {
        let version = StateVersion(number: change.version, epoch: change.epoch)
        guard change.bookingId == bookingId, version.replaces(held) else { return false }
        early = stored == nil ? change : nil
        stored?.take(change)
        return true
    }

    /// Applies a whole booking. One of the same version completes the state that an event started.
    private mutating func merge(_ newer: Bellhop.Booking) {
        let version = StateVersion(number: newer.version, epoch: newer.epoch)
        guard newer.id == bookingId else { return }
        if version == held || version.replaces(held) {
            (stored, early) = (newer, nil)
        } else if stored == nil, let change = early {
            stored = newer
            stored?.take(change)
            early = nil
        }
    }

    /// The version of the known state of the booking.
    private var held: StateVersion? {
        stored.map { StateVersion(number: $0.version, epoch: $0.epoch) }
            ?? early.map { StateVersion(number: $0.version, epoch: $0.epoch) }
    }

    public struct Snapshot: Sendable, Hashable {
        /// Nil until the whole booking is known.
        public let booking: Bellhop.Booking?
        public let isLoaded: Bool
        /// Whether a change by the user is pending. It already shows.
        public let isPending: Bool
        public let problem: Bellhop.Problem?
    }

    public var snapshot: Snapshot {
        Snapshot(booking: booking, isLoaded: isLoaded, isPending: isPending, problem: Bellhop.Problem(problem))
    }

    private enum CodingKeys: CodingKey { case bookingId, booking, stored, pending, isPending, isLoaded, problem }
}

/// The commands of the user or the app.
public enum BookingCommand: Sendable, Hashable {
    /// Changes the members of the booking that `set` has.
    case change(set: JSON)
}

extension Bellhop.Booking {
    fileprivate mutating func take(_ change: Bellhop.BookingStatusChange) {
        (status, version, epoch) = (change.status, change.version, change.epoch)
        estimatedCompletion = change.estimatedCompletion
    }
}
