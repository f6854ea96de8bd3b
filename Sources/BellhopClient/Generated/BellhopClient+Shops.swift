// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List shops
    ///
    /// Lists the shops of the caller's tenant, ordered by id.
    ///
    /// `GET /v1/shops`
    ///
    /// - Parameters:
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listShops(limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Shop>>
    {
        var call = try Bellhop.Call("GET", "/v1/shops")
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List shops, page by page; `limit` is the number of items on a page.
    public func shopPages(limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Shop>> {
        Bellhop.Pages { cursor in try await listShops(limit: limit, cursor: cursor) }
    }

    /// Get a shop
    ///
    /// `GET /v1/shops/{id}`
    public func getShop(id: String) async throws -> Bellhop.Answer<Bellhop.Shop> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}", ["id": id])
        return try await answer(call)
    }

    /// Create or replace a shop
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff.
    ///
    /// `PUT /v1/shops/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replaceShop(id: String, _ body: Bellhop.ReplaceShopBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Shop>
    {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// List barbers
    ///
    /// Lists all barbers of the shop, ordered by id.
    ///
    /// `GET /v1/shops/{id}/barbers`
    public func listBarbers(id: String) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.Barber>> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/barbers", ["id": id])
        return try await answer(call)
    }

    /// Create or update a barber
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. Sets whether the barber is on
    /// duty and on a break. An omitted name stays as it is.
    ///
    /// `PUT /v1/shops/{id}/barbers/{barberId}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func replaceBarber(
        id: String, barberId: String, _ body: Bellhop.ReplaceBarberBody, idempotencyKey: String? = nil
    ) async throws -> Bellhop.Answer<Bellhop.Barber> {
        var call = try Bellhop.Call("PUT", "/v1/shops/{id}/barbers/{barberId}", ["id": id, "barberId": barberId])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Remove a barber
    ///
    /// Requires a service token, an administrator token, or a token of the shop's staff. A barber with bookings that
    /// are not over is 409 `barber.booked`.
    ///
    /// `DELETE /v1/shops/{id}/barbers/{barberId}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteBarber(id: String, barberId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Void>
    {
        var call = try Bellhop.Call("DELETE", "/v1/shops/{id}/barbers/{barberId}", ["id": id, "barberId": barberId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
