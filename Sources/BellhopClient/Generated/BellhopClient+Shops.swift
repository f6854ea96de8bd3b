// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// The shops of the caller's tenant, by id.
    ///
    /// `GET /v1/shops`
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listShops(limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Shop>>
    {
        var call = try Bellhop.Call("GET", "/v1/shops")
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// The shops of the caller's tenant, by id. All pages, one after another; `limit` is how many items one of them
    /// has.
    public func shopPages(limit: Int? = nil) -> Bellhop.Pages<Bellhop.Page<Bellhop.Shop>> {
        Bellhop.Pages { cursor in try await listShops(limit: limit, cursor: cursor) }
    }

    /// One shop.
    ///
    /// `GET /v1/shops/{id}`
    public func getShop(id: String) async throws -> Bellhop.Answer<Bellhop.Shop> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}", ["id": id])
        return try await answer(call)
    }

    /// Makes or changes a shop. For backends, administrators and the shop's staff.
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

    /// The shop's barbers, by id.
    ///
    /// `GET /v1/shops/{id}/barbers`
    public func listBarbers(id: String) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.Barber>> {
        let call = try Bellhop.Call("GET", "/v1/shops/{id}/barbers", ["id": id])
        return try await answer(call)
    }

    /// A barber comes, goes, or takes a break.
    ///
    /// For backends, administrators and the shop's staff. A name that is left out stays.
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

    /// Removes a barber who has no bookings any more.
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
