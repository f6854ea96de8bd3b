import Cryptography
import Database
import Domain
import Push
import Values

/// The addresses of devices. An address is stored encrypted, and found by its fingerprint. A device has one
/// fingerprint, however its address is written.
extension PushFeature {
    /// Returns the place to which an encrypted address belongs.
    static func place(of device: ID<Device>, _ owner: Owner) -> [UInt8] {
        Array("\(owner.tenant)\u{0}\(owner.userId)\u{0}\(device)".utf8)
    }

    /// Returns the name of a device that reveals nothing about its address.
    static func fingerprint(of address: any PushAddress, in db: DatabaseConnection) throws -> String {
        let secret = try ServiceSecrets.secret(named: "devices", in: db)
        return RFC4648.encodeURL(AuthenticationKey(secret).code(for: address.identity))
    }

    /// Ends the registration of a device under another id or by another user. On a shared phone, the messages of the
    /// former user end. A registration by the same user continues under the new id, with the alerts that the device
    /// shows. The caller holds the locks of ``lockUsers(of:_:)``.
    static func replaceOthers(
        with fingerprint: String, by id: ID<Device>, on route: String, _ tx: Transaction
    ) throws {
        let caller = Owner(tenant: tx.tenant, userId: tx.caller.userId)
        for other in try registrations(of: [fingerprint], in: tx.db) where other.owner != caller || other.id != id {
            if other.owner == caller {
                try Outbox.move(
                    lane(of: other.id, caller.userId), to: OutboxLane(name: lane(of: id, caller.userId), route: route),
                    device: id.text, of: caller.tenant, at: tx.now, in: tx.db)
            } else {
                try Outbox.remove(lane(of: other.id, other.owner.userId), of: other.owner.tenant, in: tx.db)
            }
            try delete(other, in: tx.db)
        }
    }

    /// Locks the caller and the owner of a device. Until the transaction ends, no other request registers the device.
    static func lockUsers(of fingerprint: String, _ tx: Transaction) throws {
        // The users may be of several tenants.
        try tx.db.lock([LockKey(kind: "address", id: fingerprint).name(in: "")])
        let former = try registrations(of: [fingerprint], in: tx.db).map(\.owner)
        try Outbox.lock(former + [Owner(tenant: tx.tenant, userId: tx.caller.userId)], in: tx.db)
    }

    // MARK: Registrations

    private struct Registration: Sendable {
        let owner: Owner
        let id: ID<Device>
        let fingerprint: String
    }

    private static func registrations(of fingerprints: [String], in db: DatabaseConnection) throws -> [Registration] {
        try db.rows(
            """
            SELECT tenant, user_id, id, fingerprint FROM \(devices, unscoped: Outbox.adding)
            WHERE fingerprint IN \(values: fingerprints)
            """
        ) { row in
            Registration(
                owner: Owner(tenant: try row.id(0), userId: try row.id(1)), id: try row.id(2),
                fingerprint: try row.text(3))
        }
    }

    private static func delete(_ registration: Registration, in db: DatabaseConnection) throws {
        try db.run(
            """
            DELETE FROM \(devices, of: registration.owner)
            WHERE id = \(registration.id) AND fingerprint = \(registration.fingerprint)
            """)
    }
}
