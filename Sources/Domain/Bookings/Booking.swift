import Values

/// A booking: a customer's reserved time with a barber, or the place of a walk-in customer in the line.
public struct Booking: Sendable, Hashable {
    /// How the booking was made.
    public enum Source: String, CaseIterable, Sendable, Hashable {
        case online
        /// A customer without a booking. A walk-in has a place in the line, but no reserved time.
        case walkIn
    }

    public enum Tier: String, CaseIterable, Sendable, Hashable {
        case standard
        case blackCard

        public var lane: QueueLane { self == .blackCard ? .blackCard : .standard }
    }

    public let id: ID<Booking>
    /// Nil for a customer without an account.
    public let userId: ID<User>?
    public let shopId: ID<Shop>
    /// Nil means any barber.
    public var barberId: ID<Barber>?
    public let service: String
    public var scheduledStart: Timestamp
    public var durationMinutes: Int
    public let tier: Tier
    public var status: BookingStatus
    /// The version, which grows with every change. Clients send it in `If-Match`.
    public var version: Int
    public let source: Source
    public let customerName: String?
    public var arrivedAt: Timestamp?
    public var startedAt: Timestamp?
    public var completedAt: Timestamp?
    public let createdAt: Timestamp
    public var updatedAt: Timestamp

    public init(
        id: ID<Booking>, userId: ID<User>?, shopId: ID<Shop>, barberId: ID<Barber>?, service: String,
        scheduledStart: Timestamp, durationMinutes: Int, tier: Tier, status: BookingStatus, version: Int = 1,
        source: Source, customerName: String?, arrivedAt: Timestamp? = nil, startedAt: Timestamp? = nil,
        completedAt: Timestamp? = nil, createdAt: Timestamp, updatedAt: Timestamp
    ) {
        self.id = id
        self.userId = userId
        self.shopId = shopId
        self.barberId = barberId
        self.service = service
        self.scheduledStart = scheduledStart
        self.durationMinutes = durationMinutes
        self.tier = tier
        self.status = status
        self.version = version
        self.source = source
        self.customerName = customerName
        self.arrivedAt = arrivedAt
        self.startedAt = startedAt
        self.completedAt = completedAt
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    /// The exclusive end. Bookings are half-open intervals: one may begin at the moment when another ends.
    public var endsAt: Timestamp { scheduledStart.adding(minutes: Int64(durationMinutes)) }

    /// Whether the booking reserves its barber's time. A walk-in waits in the line and reserves no time.
    public var isReserving: Bool { barberId != nil && status.isActive && source == .online }

    /// Returns the expected end of the service: its start plus the median service time (R-CUT-B-3). Returns nil if the
    /// service will not take place.
    public func estimatedCompletion(medianMinutes: Double) -> Timestamp? {
        switch status {
        case .completed: completedAt
        case .cancelled, .noShow: nil
        case .pending, .confirmed, .inProgress:
            (startedAt ?? scheduledStart).adding(seconds: Int64((medianMinutes * 60).rounded()))
        }
    }

    /// Changes the status, and sets the timestamps that belong to it.
    public mutating func move(to next: BookingStatus, at now: Timestamp) {
        status = next
        switch next {
        case .inProgress:
            startedAt = now
            arrivedAt = arrivedAt ?? now
        case .completed: completedAt = now
        default: break
        }
    }

    /// Writes the booking as JSON. The estimated completion depends on the shop's median service time and is left out
    /// if that is unknown.
    public func write(membersTo writer: inout JSONWriter, medianMinutes: Double?, epoch: String) {
        writer.member("id", id)
        writer.member("userId", userId)
        writer.member("shopId", shopId)
        writer.member("barberId", barberId)
        writer.member("service", service)
        writer.member("scheduledStart", scheduledStart)
        writer.member("durationMinutes", durationMinutes)
        writer.member("tier", tier.rawValue)
        writer.member("status", status.rawValue)
        writer.version(version, in: epoch)
        writer.member("source", source.rawValue)
        writer.member("customerName", customerName)
        writer.member("arrivedAt", arrivedAt)
        writer.member("startedAt", startedAt)
        writer.member("completedAt", completedAt)
        if let medianMinutes {
            writer.member("estimatedCompletion", estimatedCompletion(medianMinutes: medianMinutes))
        }
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
    }
}

/// The limits of bookings.
public enum BookingLimits {
    /// A service takes at least five minutes. More than eight hours is a day off; it would also make the overlap search
    /// of every booking look back further.
    public static let durationMinutes = 5...480
    static let durationMinutesDefault = 30
    /// How long ago a customer's booking may begin. A request that says "now" takes a moment to arrive, and clocks
    /// differ.
    static let lateSecondsMax: Int64 = 120
    /// One line on a phone.
    static let serviceBytesMax = 100
    static let customerNameBytesMax = 100
}
