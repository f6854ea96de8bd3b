// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List bookings
    ///
    /// Lists the bookings that the caller can see, the latest start first.
    ///
    /// `GET /v1/bookings`
    ///
    /// - Parameters:
    ///   - shopId: only bookings at this shop.
    ///   - status: only bookings with this status.
    ///   - barberId: only bookings with this barber.
    ///   - userId: only bookings of this user.
    ///   - day: a day in the shop's time zone. Requires `shopId`.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
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

    /// List bookings, page by page; `limit` is the number of items on a page.
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

    /// Create a booking
    ///
    /// Customers book for themselves. The shop's staff, administrators and backends book for a `userId` or a
    /// `customerName`.
    ///
    /// Pending, confirmed and in-progress bookings reserve the barber's time. An overlapping booking is 409
    /// `booking.overlap`. Without a `barberId`, any barber can serve the booking, and no time is reserved.
    ///
    /// Customers can book with the black card only if the tier in their token says so (403 `booking.tier_not_claimed`),
    /// unless `selfDeclared` is set. They cannot book a time in the past (403 `booking.in_past`).
    ///
    /// The customer's notifications have the category `booking`, with `bookingId`, `shopId` and `status` in `data`.
    /// Changes that the customer makes appear in the list but do not count in the badge.
    ///
    /// | when | title | message | priority |
    /// |---|---|---|---|
    /// | it is pending | Booking Requested | Your {service} at {shop} is waiting for confirmation | LOW |
    /// | it is confirmed | Booking Confirmed | Your {service} at {shop} is confirmed | HIGH |
    /// | it is in progress | It's Your Turn | Your {service} at {shop} has started | NORMAL |
    /// | it is completed | Booking Completed | Your {service} at {shop} is complete | NORMAL |
    /// | it is cancelled | Booking Cancelled | Your {service} at {shop} has been cancelled | HIGH |
    /// | the customer did not come | Booking Missed | Your {service} at {shop} was missed | NORMAL |
    /// | its time or barber changes | Booking Changed | Your {service} at {shop} has been changed | HIGH |
    /// | the customer has arrived | You're in Line | {shop} has marked you as arrived | LOW |
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

    /// Get a booking
    ///
    /// The ETag of the booking begins with its version. Send it as `If-Match` to update the booking.
    ///
    /// `GET /v1/bookings/{id}`
    public func getBooking(id: String) async throws -> Bellhop.Answer<Bellhop.Booking> {
        let call = try Bellhop.Call("GET", "/v1/bookings/{id}", ["id": id])
        return try await answer(call)
    }

    /// Get a booking
    ///
    /// The ETag of the booking begins with its version. Send it as `If-Match` to update the booking.
    ///
    /// `GET /v1/bookings/{id}`
    ///
    /// - Returns: nil where the state is still the one that `ifNoneMatch` names (304).
    ///
    /// - Parameters:
    ///   - ifNoneMatch: the ETag of the client's version. While it is current, the answer is 304.
    public func getBooking(id: String, ifNoneMatch: String) async throws -> Bellhop.Answer<Bellhop.Booking>? {
        var call = try Bellhop.Call("GET", "/v1/bookings/{id}", ["id": id])
        try call.header("If-None-Match", ifNoneMatch)
        return try await answerUnlessCurrent(call)
    }

    /// Update a booking
    ///
    /// Changes the status, time or barber, or records the customer's arrival.
    ///
    /// Allowed status changes: pending → confirmed, cancelled; confirmed → in-progress, cancelled, no-show; in-progress
    /// → completed, cancelled. Any other change is 409 `booking.invalid_transition` with `allowed`. Setting the current
    /// status again changes nothing.
    ///
    /// Customers can cancel until the service begins. While the booking is pending, they can also move it to a time
    /// that is not in the past (403 `booking.in_past`). All other changes require a service token, an administrator
    /// token, or a token of the shop's staff.
    ///
    /// One transaction stores the booking, appends to its history, notifies the customer, publishes
    /// `booking:status_change` and recomputes the queue.
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

    /// Get a booking's history
    ///
    /// Lists each change with its time and actor, the oldest first. The history is append-only.
    ///
    /// `GET /v1/bookings/{id}/history`
    ///
    /// - Parameters:
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func getBookingHistory(id: String, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.BookingHistoryEntry>>
    {
        var call = try Bellhop.Call("GET", "/v1/bookings/{id}/history", ["id": id])
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Get a booking's history, page by page; `limit` is the number of items on a page.
    public func bookingHistoryPages(id: String, limit: Int? = nil)
        -> Bellhop.Pages<Bellhop.Page<Bellhop.BookingHistoryEntry>>
    {
        Bellhop.Pages { cursor in try await getBookingHistory(id: id, limit: limit, cursor: cursor) }
    }
}
