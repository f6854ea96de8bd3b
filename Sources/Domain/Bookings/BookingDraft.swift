import Values

/// The body of `POST /v1/bookings`: the booking to create.
public struct BookingDraft: Sendable, Hashable {
    public let shopId: ID<Shop>
    public let barberId: ID<Barber>?
    public let service: String
    public let scheduledStart: Timestamp
    public let durationMinutes: Int
    public let tier: Booking.Tier?
    public let userId: ID<User>?
    public let customerName: String?

    public init(reading fields: inout Fields) {
        shopId = fields.id("shopId")
        barberId = fields.optionalID("barberId")
        service = fields.string("service", bytesMax: BookingLimits.serviceBytesMax)
        scheduledStart = fields.timestamp("scheduledStart")
        durationMinutes = fields.int("durationMinutes", in: BookingLimits.durationMinutes)
        tier = fields.optionalWord("tier")
        userId = fields.optionalID("userId")
        customerName = fields.optionalString("customerName", bytesMax: BookingLimits.customerNameBytesMax)
    }
}

/// The body of `POST /v1/shops/{id}/queue/entries`: a customer waiting in the shop.
public struct WalkIn: Sendable, Hashable {
    public let barberId: ID<Barber>?
    public let service: String
    public let durationMinutes: Int
    public let tier: Booking.Tier
    public let userId: ID<User>?
    public let customerName: String?

    public init(reading fields: inout Fields) {
        barberId = fields.optionalID("barberId")
        service = fields.string("service", bytesMax: BookingLimits.serviceBytesMax)
        durationMinutes =
            fields.optionalInt("durationMinutes", in: BookingLimits.durationMinutes)
            ?? BookingLimits.durationMinutesDefault
        tier = fields.optionalWord("tier") ?? .standard
        userId = fields.optionalID("userId")
        customerName = fields.optionalString("customerName", bytesMax: BookingLimits.customerNameBytesMax)
    }
}

/// The body of `PATCH /v1/bookings/{id}`: the changes to a booking. Members that are left out stay unchanged.
public struct BookingChange: Sendable, Hashable {
    public var status: BookingStatus?
    public var scheduledStart: Timestamp?
    public var durationMinutes: Int?
    /// Outer nil: unchanged. Inner nil: any barber.
    public var barberId: ID<Barber>??
    public var arrived: Bool?

    public init(reading fields: inout Fields) {
        status = fields.optionalWord("status")
        scheduledStart = fields.optionalTimestamp("scheduledStart")
        durationMinutes = fields.optionalInt("durationMinutes", in: BookingLimits.durationMinutes)
        if fields.has("barberId") { barberId = .some(fields.optionalID("barberId")) }
        arrived = fields.optionalBool("arrived")
        if arrived == false { fields.reject("arrived", "must be true: an arrival cannot be undone") }
        if status == nil, !isRescheduling, arrived == nil, fields.names.isEmpty {
            fields.reject("", "must change at least one field")
        }
    }

    var isRescheduling: Bool { scheduledStart != nil || durationMinutes != nil || barberId != nil }

    /// Returns the booking with the changes applied.
    ///
    /// - Throws: The failures of ``BookingMoves``, and 409 `booking.not_changeable` if the time of the booking can no
    ///   longer be changed.
    public func applied(to booking: Booking, by actor: BookingActor, at now: Timestamp) throws(Failure) -> Booking {
        var next = booking
        if isRescheduling {
            next.scheduledStart = scheduledStart ?? booking.scheduledStart
            next.durationMinutes = durationMinutes ?? booking.durationMinutes
            if let barberId { next.barberId = barberId }
            if next != booking { try checkRescheduling(of: booking, by: actor) }
            if next.scheduledStart != booking.scheduledStart {
                try BookingMoves.checkStart(next.scheduledStart, by: actor, at: now)
            }
        }
        if let status, status != booking.status {
            try BookingMoves.check(from: booking.status, to: status, by: actor)
            next.move(to: status, at: now)
        }
        if arrived == true, next.arrivedAt == nil {
            guard actor == .staff else {
                throw .forbidden("Only the shop may mark a customer as arrived.", code: "booking.staff_only")
            }
            guard next.status.isActive else { throw Self.notChangeable(booking) }
            next.arrivedAt = now
        }
        return next
    }

    private func checkRescheduling(of booking: Booking, by actor: BookingActor) throws(Failure) {
        switch (booking.status, actor) {
        case (.pending, _), (.confirmed, .staff), (.inProgress, .staff): return
        case (.confirmed, .customer):
            throw .forbidden("Only the shop may change a confirmed booking.", code: "booking.staff_only")
        default: throw Self.notChangeable(booking)
        }
    }

    private static func notChangeable(_ booking: Booking) -> Failure {
        Failure(
            .conflict, "booking.not_changeable", "A booking that is \(booking.status.rawValue) cannot be changed.")
    }
}
