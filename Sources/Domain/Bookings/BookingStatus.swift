import Values

/// The status of a booking (R-CUT-B-1).
public enum BookingStatus: String, CaseIterable, Sendable, Hashable, MemberValue {
    case pending
    case confirmed
    case inProgress = "in-progress"
    case completed
    case cancelled
    case noShow = "no-show"

    /// Whether the booking occupies the barber's time, so that no other booking can have that time.
    public var isActive: Bool {
        switch self {
        case .pending, .confirmed, .inProgress: true
        case .completed, .cancelled, .noShow: false
        }
    }

    /// Whether the booking counts for the shop's queue (R-CUT-Q-2).
    public var isQueued: Bool { self == .confirmed || self == .inProgress }
}

/// The party that changes the status of a booking.
public enum BookingActor: String, CaseIterable, Sendable, Hashable {
    case customer
    /// The shop's staff, administrators and trusted backends.
    case staff
}

/// The allowed transitions of a booking's status. All others are refused.
public enum BookingMoves {
    /// Returns the statuses that can follow a status.
    public static func all(from status: BookingStatus) -> [BookingStatus] {
        switch status {
        case .pending: [.confirmed, .cancelled]
        case .confirmed: [.inProgress, .cancelled, .noShow]
        case .inProgress: [.completed, .cancelled]
        case .completed, .cancelled, .noShow: []
        }
    }

    /// Returns the transitions that an actor may make. A customer may cancel until the service begins; staff may make
    /// all.
    public static func allowed(from status: BookingStatus, by actor: BookingActor) -> [BookingStatus] {
        switch actor {
        case .staff: all(from: status)
        case .customer: status == .inProgress ? [] : all(from: status).filter { $0 == .cancelled }
        }
    }

    /// Checks that an actor may make a transition.
    ///
    /// - Throws: 409 `booking.invalid_transition` if the transition does not exist, 403 `booking.staff_only` if only
    ///   staff may make it.
    public static func check(
        from status: BookingStatus, to next: BookingStatus, by actor: BookingActor
    ) throws(Failure) {
        let allowed = allowed(from: status, by: actor)
        guard !allowed.contains(next) else { return }
        if all(from: status).contains(next) {
            throw .forbidden(
                "Only the shop may change a booking from \(status.rawValue) to \(next.rawValue).",
                code: "booking.staff_only")
        }
        throw Failure(
            .conflict, "booking.invalid_transition",
            "A booking cannot change from \(status.rawValue) to \(next.rawValue).",
            allowed: allowed.map(\.rawValue))
    }

    /// Checks that an actor may choose this start. Only staff may record a start in the past.
    ///
    /// - Throws: 403 `booking.in_past`.
    public static func checkStart(_ start: Timestamp, by actor: BookingActor, at now: Timestamp) throws(Failure) {
        guard actor == .customer, start.adding(seconds: BookingLimits.lateSecondsMax) < now else { return }
        throw Failure(
            .forbidden, "booking.in_past", "Only the shop may create a booking in the past.",
            fields: [Failure.Field("/scheduledStart", "must not be in the past")])
    }
}
