import Values

/// The presence of a user at a shop, for a limited time (R-CUT-D-2; R-13).
public struct Presence: Sendable, Hashable {
    /// The proof of the presence.
    public enum Source: String, CaseIterable, Sendable, Hashable {
        /// The code that the shop displays.
        case code
        /// The user's own claim, at a shop that requires no code.
        case claim
        /// A booking in progress.
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

    /// Creates a presence that begins now.
    public init(shopId: ID<Shop>, source: Source, at now: Timestamp) {
        self.init(
            shopId: shopId, source: source, since: now,
            expiresAt: now.adding(seconds: PresenceLimits.lifetimeSeconds))
    }

    /// Creates the presence that follows from a booking; nil unless the booking is in progress.
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
    /// The moment of the first wrong code.
    public private(set) var since: Timestamp

    public init(failures: Int = 0, since: Timestamp = Timestamp(microseconds: 0)) {
        self.failures = failures
        self.since = since
    }

    private var endsAt: Timestamp { since.adding(seconds: PresenceLimits.wrongCodesSeconds) }

    /// Whether the failures still count. They do not if they lie in the future by more than the window: then the clock
    /// was set back.
    private func isPresent(at now: Timestamp) -> Bool {
        now < endsAt && since < now.adding(seconds: PresenceLimits.wrongCodesSeconds)
    }

    /// Returns the whole seconds until the next code is checked; nil if codes are checked now. The right code waits
    /// too, because an attacker would otherwise recognize it.
    public func waitSeconds(at now: Timestamp) -> Int? {
        guard failures >= PresenceLimits.wrongCodesMax, isPresent(at: now) else { return nil }
        return Int((endsAt.microseconds - now.microseconds + 999_999) / 1_000_000)
    }

    /// Returns the attempts with one more failure. A right code in between does not reset the count. Otherwise a guest
    /// of one shop could guess another shop's code without limit.
    public func addingFailure(at now: Timestamp) -> PresenceAttempts {
        isPresent(at: now)
            ? PresenceAttempts(failures: failures + 1, since: since) : PresenceAttempts(failures: 1, since: now)
    }
}
