import Database
import Domain
import MicroHTTP
import Push
import Values

extension PushFeature {
    static let endpoints = [
        Endpoint(.get, "/v1/devices", access: .bearer, listDevices),
        Endpoint(.get, "/v1/devices/{id}", access: .bearer, showDevice),
        Endpoint(.put, "/v1/devices/{id}", access: .bearer, adds: true, register),
        Endpoint(.delete, "/v1/devices/{id}", access: .bearer, remove),
        Endpoint(.post, "/v1/devices/{id}/test", access: .bearer, test),
    ]

    /// Returns the settings of push messages.
    ///
    /// - Throws: 404 if the service sends no push messages.
    private static func settings(_ call: Call) throws(Failure) -> PushSettings {
        guard let push = call.settings.push else {
            throw Failure(
                .notFound, "push.off",
                "This service sends no push messages: \(Settings.variable(\.$pushKeys)) is not set.")
        }
        return push
    }

    private static func deviceID(_ call: Call) throws -> ID<Device> {
        let id = try call.pathID(0, Device.self)
        guard id.text.utf8.count <= DeviceLimits.idBytesMax else { throw Failure.notFound("device") }
        return id
    }

    private static func listDevices(_ call: Call) throws -> Answer {
        _ = try settings(call)
        return .query(list(of: call.caller)) { rows in
            let devices = try rows.rows(Device.init(row:))
            return Response.json(200) { writer in
                writer.key("items")
                writer.array(devices)
            }
        }
    }

    private static func showDevice(_ call: Call) throws -> Answer {
        _ = try settings(call)
        let id = try deviceID(call)
        return .read { tx in Response.json(200, try find(id, tx).required("device")) }
    }

    /// `PUT /v1/devices/{id}`: registers the caller's device, or its new token.
    private static func register(_ call: Call) throws -> Answer {
        let push = try settings(call)
        let text = call.request.parameter(0)
        guard Fields.isIdentifier(text), text.utf8.count <= DeviceLimits.idBytesMax else {
            throw Failure.invalid(
                "id", "must have at most \(DeviceLimits.idBytesMax) bytes, without control characters")
        }
        let id = ID<Device>(text)
        let draft = try call.body { try DeviceDraft(reading: &$0, push) }
        return .write { tx in
            let (device, isNew) = try register(id, draft, settings: push, tx)
            return Response.json(isNew ? 201 : 200, device)
        }
    }

    /// Stores a device of the caller, in place of an earlier registration of its id or of the same device.
    ///
    /// - Returns: The device, and whether its id is new to the caller.
    static func register(
        _ id: ID<Device>, _ draft: DeviceDraft, settings push: PushSettings, _ tx: Transaction
    ) throws -> (device: Device, isNew: Bool) {
        let target = draft.target
        let fingerprint = try fingerprint(of: target.address, in: tx.db)
        try lockUsers(of: fingerprint, tx)
        let known = try find(id, tx)
        try replaceOthers(with: fingerprint, by: id, on: target.route, tx)
        if known == nil { try requireRoom(tx) }
        let device = draft.device(id, createdAt: known?.createdAt, at: tx.now)
        let owner = Owner(tenant: tx.tenant, userId: tx.caller.userId)
        let address = push.keys.seal(target.address.stored, context: place(of: id, owner))
        try store(device, address: address, route: target.route, fingerprint: fingerprint, tx)
        return (device, known == nil)
    }

    private static func requireRoom(_ tx: Transaction) throws {
        let count = try tx.db.integer(
            "SELECT count(*) FROM \(devices, visibleTo: tx.scope) WHERE user_id = \(tx.caller.userId)")
        guard (count ?? 0) < DeviceLimits.ofUserMax else {
            throw Failure(
                .conflict, "device.too_many",
                "A user can have at most \(DeviceLimits.ofUserMax) devices. Delete one that is no longer used.")
        }
    }

    /// `DELETE /v1/devices/{id}`: at sign-out.
    private static func remove(_ call: Call) throws -> Answer {
        _ = try settings(call)
        let id = try deviceID(call)
        return .write(locking: .user(call.caller.userId)) { tx in
            try Outbox.remove(lane(of: id, tx.caller.userId), of: tx.tenant, in: tx.db)
            let removed = try tx.db.run(
                "DELETE FROM \(devices, writableBy: tx.scope) WHERE user_id = \(tx.caller.userId) AND id = \(id)")
            guard removed > 0 else { throw Failure.notFound("device") }
            return .noContent
        }
    }

    /// `POST /v1/devices/{id}/test`: sends a message that says that the device is set up.
    private static func test(_ call: Call) throws -> Answer {
        _ = try settings(call)
        let id = try deviceID(call)
        return .write(locking: .user(call.caller.userId)) { tx in
            let device = try find(id, tx).required("device")
            let own = try devices("user_id = \(tx.caller.userId) AND id = \(id)", of: tx.tenant, in: tx.db)
            try Outbox.add(own.map { draft(.test, "test", to: $0, dueAt: tx.now) }, tx)
            return Response.json(202, device)
        }
    }
}
