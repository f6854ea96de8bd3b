import Database
import Domain
import MicroHTTP
import Rows
import Values
import Visibility

extension ShopsFeature {
    static let bookingEndpoints = [
        Endpoint(.post, "/v1/bookings", access: .bearer, create),
        Endpoint(
            .get, "/v1/bookings", access: .bearer,
            query: ["shopId", "status", "barberId", "userId", "day", "limit", "cursor"], listBookings),
        Endpoint(.get, "/v1/bookings/{id}", access: .bearer, showBooking),
        Endpoint(.patch, "/v1/bookings/{id}", access: .bearer, change),
        Endpoint(.get, "/v1/bookings/{id}/history", access: .bearer, query: ["limit", "cursor"], showHistory),
    ]

    /// `POST /v1/bookings`: customers book for themselves; the shop and backends for whom they name.
    private static func create(_ call: Call) throws -> Answer {
        let wish = try call.body(BookingDraft.init(reading:))
        return .write(locking: .shop(wish.shopId)) { tx in
            _ = try requireShop(wish.shopId, tx)
            try requireBarber(wish.barberId, of: wish.shopId, tx)
            let actor = actor(in: wish.shopId, tx)
            let booking = Booking(
                id: tx.makeID(Booking.self), userId: try customer(of: wish, actor, tx), shopId: wish.shopId,
                barberId: wish.barberId, service: wish.service, scheduledStart: wish.scheduledStart,
                durationMinutes: wish.durationMinutes, tier: try tier(of: wish, actor, tx), status: .pending,
                source: .online, customerName: wish.customerName, createdAt: tx.now, updatedAt: tx.now)
            try checkOverlap(of: booking, tx)
            try insert(booking, tx)
            tx.record(BookingChanged(booking: booking, previous: nil))
            try tx.settle()
            return try response(201, booking, tx).located(at: "/v1/bookings", booking.id)
        }
    }

    /// `PATCH /v1/bookings/{id}` with `If-Match`: another status, time or barber, or that the customer is there.
    private static func change(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Booking.self)
        let version = try call.requireIfMatch()
        let change = try call.body(BookingChange.init(reading:))
        return .write { tx in
            var booking = try requireBooking(id, tx)
            // Its shop is known only now, and never changes.
            if try tx.lock(.shop(booking.shopId)) { booking = try requireBooking(id, tx) }
            guard booking.version == version else {
                throw Failure(
                    .stale, "precondition.stale",
                    "The booking has changed since: its version is \(booking.version). Read it again.",
                    fields: [Failure.Field("If-Match", "names version \(version)")])
            }
            var next = try change.applied(to: booking, by: actor(in: booking.shopId, tx), at: tx.now)
            // Asking for what is so already changes nothing, and nothing is published.
            guard next != booking else { return try response(200, booking, tx) }
            if next.barberId != booking.barberId { try requireBarber(next.barberId, of: booking.shopId, tx) }
            next.version += 1
            next.updatedAt = tx.now
            try checkOverlap(of: next, tx)
            try update(next, tx)
            tx.record(BookingChanged(booking: next, previous: booking))
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
        var filter = BookingFilter(status: try query.word("status", BookingStatus.self))
        filter.shopId = try query.id("shopId", Shop.self)
        filter.barberId = try query.id("barberId", Barber.self)
        filter.userId = try query.id("userId", User.self)
        filter.day = try query.string("day")
        if filter.day != nil, filter.shopId == nil {
            throw Failure.invalid("?day", "goes with shopId: a day begins when it begins there")
        }
        return .read { [filter] tx in
            let day = try day(of: filter, tx)
            let after = page.after.flatMap { BookingPosition($0) }
            let found = try listBookings(filter, in: day, after: after, limit: page.rowsMax, tx)
            return try page.response(found, by: { BookingPosition($0).text }, showing: { try TimedBooking($0, tx) })
        }
    }

    private static func day(of filter: BookingFilter, _ tx: Transaction) throws -> Range<Timestamp>? {
        guard let name = filter.day, let shopId = filter.shopId else { return nil }
        let shop = try requireShop(shopId, tx)
        guard let day = TimeZones.day(named: name, in: shop.timeZone) else {
            throw Failure.invalid("?day", "must be a date such as 2026-01-10")
        }
        return day
    }

    private static func showHistory(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: pageMax)
        let id = try call.pathID(0, Booking.self)
        return .read { tx in
            _ = try requireBooking(id, tx)
            let after = page.after.flatMap { Int($0) } ?? 0
            return page.response(try listHistory(of: id, after: after, limit: page.rowsMax, tx)) { "\($0.version)" }
        }
    }

    // MARK: Parts

    /// Which moves a caller may make; which rows it may reach is the tables' business.
    static func actor(in shopId: ID<Shop>, _ tx: Transaction) -> BookingActor {
        let keys = tx.scope.keys
        let isStaff =
            keys.contains(AudienceKey.make("shop", shopId.text, "staff"))
            || keys.contains(AudienceKey.make("tenant", "admin"))
            || keys.contains(AudienceKey.make("tenant", "service"))
        return isStaff ? .staff : .customer
    }

    static func requireBarber(_ id: ID<Barber>?, of shopId: ID<Shop>, _ tx: Transaction) throws {
        guard let id, try findBarber(id, of: shopId, tx) == nil else { return }
        throw Failure.invalid("/barberId", "is no barber of this shop")
    }

    private static func customer(of wish: BookingDraft, _ actor: BookingActor, _ tx: Transaction) throws -> ID<User>? {
        switch actor {
        case .customer:
            guard wish.userId == nil || wish.userId == tx.caller.userId else {
                throw Failure.invalid("/userId", "must be yourself: only the shop books for others")
            }
            return tx.caller.userId
        case .staff:
            guard wish.userId != nil || wish.customerName != nil else {
                throw Failure.invalid("/userId", "is missing: say for whom, by userId or customerName")
            }
            return wish.userId
        }
    }

    /// A customer's token may say the tier; then it cannot be chosen.
    private static func tier(of wish: BookingDraft, _ actor: BookingActor, _ tx: Transaction) throws -> Booking.Tier {
        guard actor == .customer, let held = tx.caller.tier else { return wish.tier ?? .standard }
        let tier = Booking.Tier(rawValue: held) ?? .standard
        guard wish.tier != .blackCard || tier == .blackCard else {
            throw Failure.invalid("/tier", "must be \(tier.rawValue), which is what your token says")
        }
        return wish.tier ?? tier
    }

    static func response(
        _ status: Int, _ booking: Booking, _ tx: Transaction
    ) throws -> Response {
        Response.json(status, try TimedBooking(booking, tx), etag: "\(booking.version)")
    }
}

/// A booking with its shop's median service time, from which the end is estimated.
struct TimedBooking: JSONWritable {
    let booking: Booking
    let medianMinutes: Double

    init(_ booking: Booking, _ tx: Transaction) throws {
        self.booking = booking
        medianMinutes = try ShopsFeature.medianMinutes(of: booking, tx)
    }

    var estimatedCompletion: Timestamp? { booking.estimatedCompletion(medianMinutes: medianMinutes) }

    func write(to writer: inout JSONWriter) { booking.write(to: &writer, medianMinutes: medianMinutes) }
}
