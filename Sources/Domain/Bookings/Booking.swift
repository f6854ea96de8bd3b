import Values

/// A booking: a customer's reserved time with a barber, or the place of a walk-in customer in the line.
public struct Booking: Sendable, Hashable {
    /// How the booking was made.
    public enum Source: String, CaseIterable, Sendable, Hashable, MemberValue {
        case online
        /// A customer without a booking. A walk-in has a place in the line, but no reserved time.
        case walkIn
    }

    public enum Tier: String, CaseIterable, Sendable, Hashable, MemberValue {
        case standard
        case blackCard

        public var lane: QueueLane { self == .blackCard ? .blackCard : .standard }
    }

    public var id: ID<Booking> = ""
    /// Nil for a customer without an account.
    public var userId: ID<User>?
    public var shopId: ID<Shop> = ""
    /// Nil means any barber.
    public var barberId: ID<Barber>?
    public var service = ""
    public var scheduledStart = Timestamp(microseconds: 0)
    public var durationMinutes = 0
    public var tier = Tier.standard
    public var status = BookingStatus.pending
    /// The version, which grows with every change. Clients send it in `If-Match`.
    public var version = 1
    public var source = Source.online
    public var customerName: String?
    public var arrivedAt: Timestamp?
    public var startedAt: Timestamp?
    public var completedAt: Timestamp?
    public var createdAt = Timestamp(microseconds: 0)
    public var updatedAt = Timestamp(microseconds: 0)

    public init() {}

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
        write(membersTo: &writer)
        writer.member("epoch", epoch)
        if let medianMinutes {
            writer.member("estimatedCompletion", estimatedCompletion(medianMinutes: medianMinutes))
        }
    }
}

extension Booking: Record {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("userId", &userId)
        members.member("shopId", &shopId)
        members.member("barberId", &barberId)
        members.member("service", &service)
        members.member("scheduledStart", &scheduledStart)
        members.member("durationMinutes", &durationMinutes)
        members.member("tier", &tier)
        members.member("status", &status)
        members.member("version", &version)
        members.member("source", &source)
        members.member("customerName", &customerName)
        members.member("arrivedAt", &arrivedAt)
        members.member("startedAt", &startedAt)
        members.member("completedAt", &completedAt)
        members.member("createdAt", &createdAt)
        members.member("updatedAt", &updatedAt)
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
