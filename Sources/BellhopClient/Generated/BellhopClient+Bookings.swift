// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// The bookings the caller may see, latest start first.
    ///
    /// `GET /v1/bookings`
    ///
    /// - Parameters:
    ///   - day: a day in the shop's time zone; goes with shopId.
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listBookings(
        shopId: String? = nil, status: Bellhop.BookingStatus? = nil, barberId: String? = nil, userId: String? = nil,
        day: String? = nil, limit: Int? = nil, cursor: String? = nil
    ) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.Booking>> {
        var call = try Bellhop.Call("GET", "/v1/bookings")
        call.query("shopId", shopId)
        call.query("status", status)
        call.query("barberId", barberId)
        call.query("userId", userId)
        call.query("day", day)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// The bookings the caller may see, latest start first. All pages, one after another; `limit` is how many items one
    /// of them has.
    public func bookingPages(
        shopId: String? = nil, status: Bellhop.BookingStatus? = nil, barberId: String? = nil, userId: String? = nil,
        day: String? = nil, limit: Int? = nil
    ) -> Bellhop.Pages<Bellhop.Page<Bellhop.Booking>> {
        Bellhop.Pages { cursor in
            try await listBookings(
                shopId: shopId, status: status, barberId: barberId, userId: userId, day: day, limit: limit,
                cursor: cursor)
        }
    }

    /// Books a time.
    ///
    /// Customers book for themselves; the shop's people and backends for a `userId` or a `customerName`. A barber's
    /// time is taken from the request on, by bookings that are pending, confirmed or in progress: 409
    /// `booking.overlap`. Without a `barberId` any barber will do, and no time is reserved. Customers have the black
    /// card if their token's tier says so (403 `booking.tier_not_claimed`, unless `selfDeclared` is set), and book what
    /// is not over (403 `booking.in_past`).
    ///
    /// The customer's notifications are of category `booking`, with `bookingId`, `shopId` and `status` in their `data`;
    /// one's own changes are listed, and light no badge.
    ///
    /// | when | title | message | priority |
    /// |---|---|---|---|
    /// | it is pending | Booking Requested | Your {service} at {shop} is waiting for confirmation | LOW |
    /// | it is confirmed | Booking Confirmed | Your {service} at {shop} is confirmed | HIGH |
    /// | it is in progress | It's Your Turn | Your {service} at {shop} has started | NORMAL |
    /// | it is completed | Booking Completed | Your {service} at {shop} is complete | NORMAL |
    /// | it is cancelled | Booking Cancelled | Your {service} at {shop} has been cancelled | HIGH |
    /// | nobody came | Booking Missed | Your {service} at {shop} was missed | NORMAL |
    /// | its time or barber changes | Booking Changed | Your {service} at {shop} has been changed | HIGH |
    /// | the customer has arrived | You're in Line | {shop} has noted that you are there | LOW |
    ///
    /// `POST /v1/bookings`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func createBooking(_ body: Bellhop.CreateBookingBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Booking>
    {
        var call = try Bellhop.Call("POST", "/v1/bookings")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// One booking; its ETag begins with its version.
    ///
    /// `GET /v1/bookings/{id}`
    public func getBooking(id: String) async throws -> Bellhop.Answer<Bellhop.Booking> {
        let call = try Bellhop.Call("GET", "/v1/bookings/{id}", ["id": id])
        return try await answer(call)
    }

    /// One booking; its ETag begins with its version.
    ///
    /// `GET /v1/bookings/{id}`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    public func getBooking(id: String, ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.Booking>? {
        var call = try Bellhop.Call("GET", "/v1/bookings/{id}", ["id": id])
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }

    /// Another status, time or barber, or that the customer is there.
    ///
    /// The moves: pending → confirmed, cancelled; confirmed → in-progress, cancelled, no-show; in-progress → completed,
    /// cancelled. Customers may cancel until the service begins, and change the time while it is pending, to one that
    /// is not over (403 `booking.in_past`); the rest is the shop's. Any other move is 409 `booking.invalid_transition`
    /// with `allowed`. Asking for the present status again changes nothing.
    ///
    /// In one transaction the booking is stored, its history written, the customer notified, `booking:status_change`
    /// sent, and the queue computed anew.
    ///
    /// `PATCH /v1/bookings/{id}`
    ///
    /// - Parameters:
    ///   - ifMatch: the `etag` of the state that is meant to change; another one by now is a problem 412.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func changeBooking(
        id: String, ifMatch: String, _ body: Bellhop.ChangeBookingBody, idempotencyKey: String? = nil
    ) async throws -> Bellhop.Answer<Bellhop.Booking> {
        var call = try Bellhop.Call("PATCH", "/v1/bookings/{id}", ["id": id])
        try call.json(body)
        try call.header("If-Match", ifMatch)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Who changed what, when; oldest first. Nothing in it is ever changed.
    ///
    /// `GET /v1/bookings/{id}/history`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func getBookingHistory(id: String, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.BookingHistoryEntry>>
    {
        var call = try Bellhop.Call("GET", "/v1/bookings/{id}/history", ["id": id])
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Who changed what, when; oldest first. Nothing in it is ever changed. All pages, one after another; `limit` is
    /// how many items one of them has.
    public func bookingHistoryPages(id: String, limit: Int? = nil)
        -> Bellhop.Pages<Bellhop.Page<Bellhop.BookingHistoryEntry>>
    {
        Bellhop.Pages { cursor in try await getBookingHistory(id: id, limit: limit, cursor: cursor) }
    }
}
