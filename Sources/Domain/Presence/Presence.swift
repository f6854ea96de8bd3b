import Values

/// The presence of a user at a shop, for a limited time (CUT D-2, decision 13).
public struct Presence: Sendable, Hashable {
    /// How the presence was shown.
    public enum Source: String, CaseIterable, Sendable, Hashable {
        /// By the code that the shop shows.
        case code
        /// By the user's claim, where the shop requires no code.
        case claim
        /// By a booking that is in progress.
        case booking
    }

    public let shopId: ID<Shop>
    public let source: Source
    public let since: Timestamp
    public let expiresAt: Timestamp

    public init(shopId: ID<Shop>, source: Source, since: Timestamp, expiresAt: Timestamp) {
        self.shopId = shopId
        self.source = source
        self.since = since
        self.expiresAt = expiresAt
    }

    /// A presence that begins now.
    public init(shopId: ID<Shop>, source: Source, at now: Timestamp) {
        self.init(
            shopId: shopId, source: source, since: now,
            expiresAt: now.adding(seconds: PresenceLimits.lifetimeSeconds))
    }

    /// The presence that follows from a booking; nil for one that is not in progress.
    public init?(of booking: Booking) {
        guard booking.status == .inProgress, booking.userId != nil, let startedAt = booking.startedAt else {
            return nil
        }
        self.init(
            shopId: booking.shopId, source: .booking, since: startedAt,
            expiresAt: startedAt.adding(seconds: PresenceLimits.bookingSeconds))
    }
}

/// The wrong codes that a user has entered recently.
public struct PresenceAttempts: Sendable, Hashable {
    public private(set) var failures: Int
    /// The first of them.
    public private(set) var since: Timestamp

    public init(failures: Int = 0, since: Timestamp = Timestamp(microseconds: 0)) {
        self.failures = failures
        self.since = since
    }

    private var endsAt: Timestamp { since.adding(seconds: PresenceLimits.wrongCodesSeconds) }

    /// Not if they began further in the future than they count: the clock was set back since.
    private func isPresent(at now: Timestamp) -> Bool {
        now < endsAt && since < now.adding(seconds: PresenceLimits.wrongCodesSeconds)
    }

    /// Whole seconds until the next code is checked; nil if that is now. The right code waits too: otherwise an
    /// attacker would recognize it.
    public func waitSeconds(at now: Timestamp) -> Int? {
        guard failures >= PresenceLimits.wrongCodesMax, isPresent(at: now) else { return nil }
        return Int((endsAt.microseconds - now.microseconds + 999_999) / 1_000_000)
    }

    /// A right code in between does not reset the count: a guest of one shop could otherwise guess another's code for
    /// ever.
    public func addingFailure(at now: Timestamp) -> PresenceAttempts {
        isPresent(at: now)
            ? PresenceAttempts(failures: failures + 1, since: since) : PresenceAttempts(failures: 1, since: now)
    }
}
