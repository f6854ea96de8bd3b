import Database
import Domain
import MicroHTTP
import OutboundHTTP
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
        let draft = try call.body(DeviceDraft.init(reading:))
        guard push.platforms.contains(draft.platform) else {
            let known = push.platforms.map(\.rawValue).joined(separator: ", ")
            throw Failure.invalid("/platform", "\(draft.platform.rawValue) is not set up here; use one of \(known)")
        }
        let target = try PushTarget(draft, push)
        return .write { tx in
            let (device, isNew) = try register(id, draft, at: target, settings: push, tx)
            return Response.json(isNew ? 201 : 200, device)
        }
    }

    /// Stores a device of the caller, in place of an earlier registration of its id or of the same device.
    ///
    /// - Returns: The device, and whether its id is new to the caller.
    static func register(
        _ id: ID<Device>, _ draft: DeviceDraft, at target: PushTarget, settings push: PushSettings, _ tx: Transaction
    ) throws -> (device: Device, isNew: Bool) {
        let route = push.route(to: target)
        let fingerprint = try fingerprint(of: target, in: tx.db)
        try lockUsers(of: fingerprint, tx)
        let known = try find(id, tx)
        try replaceOthers(with: fingerprint, by: id, on: route, tx)
        if known == nil { try requireRoom(tx) }
        let device = Device(id: id, draft, createdAt: known?.createdAt, at: tx.now)
        let owner = Owner(tenant: tx.tenant, userId: tx.caller.userId)
        let address = push.keys.seal(target.stored, context: place(of: id, owner))
        try store(device, address: address, route: route, fingerprint: fingerprint, tx)
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

extension PushTarget {
    /// Checks the address of a device.
    ///
    /// - Throws: 422 with the place of the mistake.
    init(_ draft: DeviceDraft, _ push: PushSettings) throws(Failure) {
        switch draft.address {
        case .token(let token) where draft.platform == .apns:
            self = .apns(token: token, topic: draft.app, isSandbox: draft.environment == .sandbox)
        case .token(let token): self = .fcm(token: token)
        case .subscription(let endpoint, let key, let secret):
            let subscription = try WebPushSubscription(endpoint: endpoint, key: key, secret: secret)
            if let problem = Self.problem(of: subscription.url, push) {
                throw .invalid("/subscription/endpoint", problem)
            }
            self = .webPush(subscription)
        }
    }

    /// An endpoint is input of a user, and the service sends requests to it.
    private static func problem(of url: OutboundURL, _ push: PushSettings) -> String? {
        guard url.isEncrypted || push.allowsPrivate else { return "must begin with https://" }
        guard push.hosts.contains(where: url.isHost(matching:)) else {
            return "\(url.host) is not the host of a known push service"
        }
        guard !push.allowsPrivate else { return nil }
        if let address = url.address, !address.isPublic { return "\(url.host) is a private address" }
        return url.port == nil ? nil : "must use port 443"
    }
}
