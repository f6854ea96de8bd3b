// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List devices
    ///
    /// Lists the devices of the caller that receive push messages, the latest registration first. A user has at most
    /// 20. The tokens are never part of an answer.
    ///
    /// `GET /v1/devices`
    public func listDevices() async throws -> Bellhop.Answer<Bellhop.PushDevices> {
        let call = try Bellhop.Call("GET", "/v1/devices")
        return try await answer(call)
    }

    /// Get a device
    ///
    /// Returns a device of the caller.
    ///
    /// `GET /v1/devices/{id}`
    ///
    /// - Parameters:
    ///   - id: id of the device, chosen by the client. It stays the same as long as the app is installed. At most
    ///     64 bytes.
    public func getDevice(id: String) async throws -> Bellhop.Answer<Bellhop.PushDevice> {
        let call = try Bellhop.Call("GET", "/v1/devices/{id}", ["id": id])
        return try await answer(call)
    }

    /// Register a device
    ///
    /// Registers a device of the caller, or its new token. Call it at each start of the app, and when the platform
    /// changes the token.
    ///
    /// A device belongs to one user. If another user or another id has registered it before, that registration ends, so
    /// a shared phone shows nothing of its former user. A device is known by its token, whatever its case, app and
    /// environment, or by the endpoint of its subscription. The service stores tokens encrypted.
    ///
    /// `/v1/config` says in `push` whether push messages are on and which platforms are set up. Without them, every
    /// operation of devices is answered with 404 (`push.off`).
    ///
    /// `x-payloads` has the schema of what each platform receives.
    ///
    /// `PUT /v1/devices/{id}`
    ///
    /// - Parameters:
    ///   - id: id of the device, chosen by the client. It stays the same as long as the app is installed. At most
    ///     64 bytes.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func putDevice(id: String, _ body: Bellhop.PushDeviceDraft, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.PushDevice>
    {
        var call = try Bellhop.Call("PUT", "/v1/devices/{id}", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Remove a device
    ///
    /// Removes a device of the caller. Messages that wait for it are not sent any more. Call it before the user signs
    /// out.
    ///
    /// `DELETE /v1/devices/{id}`
    ///
    /// - Parameters:
    ///   - id: id of the device, chosen by the client. It stays the same as long as the app is installed. At most
    ///     64 bytes.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteDevice(id: String, idempotencyKey: String? = nil) async throws -> Bellhop.Answer<Void> {
        var call = try Bellhop.Call("DELETE", "/v1/devices/{id}", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Send a test message to a device
    ///
    /// Sends a message that says that the device receives notifications. It is sent at once.
    ///
    /// `POST /v1/devices/{id}/test`
    ///
    /// - Parameters:
    ///   - id: id of the device.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func testDevice(id: String, idempotencyKey: String? = nil) async throws -> Bellhop.Answer<Bellhop.PushDevice>
    {
        var call = try Bellhop.Call("POST", "/v1/devices/{id}/test", ["id": id])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
