import Database
import Domain
import MicroHTTP
import Values

extension ShopsFeature {
    static let bookingEndpoints = [
        Endpoint(.post, "/v1/bookings", access: .bearer, adds: true, create),
        Endpoint(
            .get, "/v1/bookings", access: .bearer,
            query: ["shopId", "status", "barberId", "userId", "day", "limit", "cursor"], listBookings),
        Endpoint(.get, "/v1/bookings/{id}", access: .bearer, showBooking),
        Endpoint(.patch, "/v1/bookings/{id}", access: .bearer, change),
        Endpoint(.get, "/v1/bookings/{id}/history", access: .bearer, query: ["limit", "cursor"], showHistory),
    ]

    /// `POST /v1/bookings`: customers book for themselves; the shop and backends name the customer.
    private static func create(_ call: Call) throws -> Answer {
        let draft = try call.body(BookingDraft.init(reading:))
        return .write(locking: .shop(draft.shopId)) { tx in
            try requireShop(draft.shopId, tx)
            try requireBarber(draft.barberId, of: draft.shopId, tx)
            let actor = actor(in: draft.shopId, tx)
            try BookingMoves.checkStart(draft.scheduledStart, by: actor, at: tx.now)
            let booking = Booking(
                id: tx.makeID(Booking.self), userId: try customer(of: draft, actor, tx), shopId: draft.shopId,
                barberId: draft.barberId, service: draft.service, scheduledStart: draft.scheduledStart,
                durationMinutes: draft.durationMinutes, tier: try tier(of: draft, actor, tx), status: .pending,
                source: .online, customerName: draft.customerName, createdAt: tx.now, updatedAt: tx.now)
            try checkOverlap(of: booking, tx)
            return try add(booking, tx)
        }
    }

    /// Stores a new booking with all its consequences.
    static func add(_ booking: Booking, _ tx: Transaction) throws -> Response {
        try insert(booking, tx)
        tx.record(.bookingChanged(booking, previous: nil))
        try tx.settle()
        return try response(201, booking, tx).located(at: "/v1/bookings", booking.id)
    }

    /// `PATCH /v1/bookings/{id}` with `If-Match`: changes status, time or barber, or records that the customer has
    /// arrived.
    private static func change(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Booking.self)
        let versions = try call.requireIfMatch()
        let change = try call.body(BookingChange.init(reading:))
        return .write { tx in
            var booking = try requireBooking(id, tx)
            // Its shop is known only now, and never changes.
            if try tx.lock(.shop(booking.shopId)) { booking = try requireBooking(id, tx) }
            guard versions.contains(booking.version) else {
                throw Failure(
                    .stale, "precondition.stale",
                    "The booking has changed; its current version is \(booking.version). Read it again.",
                    fields: [Failure.Field("If-Match", "names \(versions), and not the current version")])
            }
            var next = try change.applied(to: booking, by: actor(in: booking.shopId, tx), at: tx.now)
            // A request for the current state changes nothing, and nothing is published.
            guard next != booking else { return try response(200, booking, tx) }
            if next.barberId != booking.barberId { try requireBarber(next.barberId, of: booking.shopId, tx) }
            next.version += 1
            next.updatedAt = tx.now
            try checkOverlap(of: next, tx)
            try update(next, tx)
            tx.record(.bookingChanged(next, previous: booking))
            try tx.settle()
            return try response(200, next, tx)
        }
    }

    private static func showBooking(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Booking.self)
        return .read { tx in try response(200, try requireBooking(id, tx), tx) }
    }

    private static func listBookings(_ call: Call) throws -> Answer {
        let query = call.query
        let page = try call.page(limitMax: pageMax)
        let status = try query.word("status", BookingStatus.self)
        let shopId = try query.id("shopId", Shop.self)
        let conditions: [SQL?] = [
            shopId.map { "shop_id = \($0)" }, status.map { "status = \($0.rawValue)" },
            try query.id("barberId", Barber.self).map { "barber_id = \($0)" },
            try query.id("userId", User.self).map { "user_id = \($0)" },
        ]
        let dayName = try query.string("day")
        if dayName != nil, shopId == nil {
            throw Failure.invalid("?day", "requires shopId, because the day depends on the shop's time zone")
        }
        return .read { tx in
            var day: Range<Timestamp>?
            if let dayName, let shopId {
                day = TimeZones.day(named: dayName, in: try requireShop(shopId, tx).timeZone)
                if day == nil { throw Failure.invalid("?day", "must be a date such as 2026-01-10") }
            }
            let found = try listBookings(conditions, in: day, after: page.after, limit: page.rowsMax, tx)
            return try page.response(found, by: position, showing: { try TimedBooking($0, tx) })
        }
    }

    private static func showHistory(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: pageMax)
        let id = try call.pathID(0, Booking.self)
        return .read { tx in
            try requireBooking(id, tx)
            let after = page.after.flatMap { Int($0) } ?? 0
            return page.response(try listHistory(of: id, after: after, limit: page.rowsMax, tx)) { "\($0.version)" }
        }
    }

    // MARK: Parts

    /// Returns the actor, which decides which transitions the caller may make. The tables' policies decide which rows
    /// it may reach.
    static func actor(in shopId: ID<Shop>, _ tx: Transaction) -> BookingActor {
        let keysOfStaff = shops.write.audience { $0 == "shop_id" ? shopId.text : nil }
        return keysOfStaff.contains(where: tx.scope.keys.contains) ? .staff : .customer
    }

    static func requireBarber(_ id: ID<Barber>?, of shopId: ID<Shop>, _ tx: Transaction) throws {
        guard let id, try findBarber(id, of: shopId, tx) == nil else { return }
        throw Failure.invalid("/barberId", "is not a barber of this shop")
    }

    private static func customer(of draft: BookingDraft, _ actor: BookingActor, _ tx: Transaction) throws -> ID<User>? {
        switch actor {
        case .customer:
            guard draft.userId == nil || draft.userId == tx.caller.userId else {
                throw Failure.invalid("/userId", "must be your own user id: only the shop may book for other users")
            }
            return tx.caller.userId
        case .staff:
            guard draft.userId != nil || draft.customerName != nil else {
                throw Failure.invalid("/userId", "is missing: name the customer with userId or customerName")
            }
            return draft.userId
        }
    }

    /// Returns the tier. If a customer's token contains it, it cannot be chosen.
    private static func tier(of draft: BookingDraft, _ actor: BookingActor, _ tx: Transaction) throws -> Booking.Tier {
        guard actor == .customer else { return draft.tier ?? .standard }
        guard let claimed = tx.caller.tier else {
            guard draft.tier != .blackCard || tx.settings.selfDeclared else {
                throw Failure.forbidden(
                    "The black-card lane requires a token with the tier claim.",
                    code: "booking.tier_not_claimed")
            }
            return draft.tier ?? .standard
        }
        let tier = Booking.Tier(rawValue: claimed) ?? .standard
        guard draft.tier != .blackCard || tier == .blackCard else {
            throw Failure.invalid("/tier", "must be \(tier.rawValue), the tier in your token")
        }
        return draft.tier ?? tier
    }

    private static func response(_ status: Int, _ booking: Booking, _ tx: Transaction) throws -> Response {
        Response.json(status, try TimedBooking(booking, tx), tag: tx.tag(booking.version))
    }
}

/// A booking with its shop's median service time, from which the end is estimated.
private struct TimedBooking: JSONObjectWritable {
    let booking: Booking
    let medianMinutes: Double
    let epoch: String

    init(_ booking: Booking, _ tx: Transaction) throws {
        self.booking = booking
        medianMinutes = try ShopsFeature.medianMinutes(of: booking, tx)
        epoch = tx.epoch
    }

    func write(membersTo writer: inout JSONWriter) {
        booking.write(membersTo: &writer, medianMinutes: medianMinutes, epoch: epoch)
    }
}
