import Cryptography
import Database
import Domain
import Push
import Values

/// The addresses of devices. An address is stored encrypted, and found by its fingerprint, of which there is one for each
/// device, however its address is written.
extension PushFeature {
    /// Returns the place to which an encrypted address belongs.
    static func place(of device: ID<Device>, _ owner: Owner) -> [UInt8] {
        Array("\(owner.tenant)\u{0}\(owner.userId)\u{0}\(device)".utf8)
    }

    /// Returns the name of a device that reveals nothing about its address.
    static func fingerprint(of target: PushTarget, in db: DatabaseConnection) throws -> String {
        let secret = try ServiceSecrets.secret(named: "devices", in: db)
        return RFC4648.encodeURL(AuthenticationKey(secret).code(for: target.identity))
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

    /// Locks the caller, and the user to whom a device belongs. Until the transaction ends, nobody else registers the
    /// device.
    static func lockUsers(of fingerprint: String, _ tx: Transaction) throws {
        // The users may be of several tenants.
        try tx.db.lock([LockKey(kind: "address", id: fingerprint).name(in: "")])
        let former = try registrations(of: [fingerprint], in: tx.db).map(\.owner)
        try Outbox.lock(former + [Owner(tenant: tx.tenant, userId: tx.caller.userId)], in: tx.db)
    }

    // MARK: Fingerprints of spellings

    /// Names the devices that an earlier version named by the spelling of their addresses. Of two registrations of one
    /// device, the later one stays. Devices whose address no key opens wait for their next registration.
    static func nameAgain(_ keys: PushKeyRing, in store: DatabaseStore) throws {
        let marked = try store.read { db in
            try db.rows(
                """
                SELECT tenant, user_id, id, fingerprint, registered_at, address FROM \(devices, unscoped: rotating)
                WHERE fingerprint >= \(spellingMark)
                """
            ) { row in try (registration: registration(row), address: row.blob(5)) }
        }
        let known = marked.compactMap { device -> (registration: Registration, target: PushTarget)? in
            let place = place(of: device.registration.id, device.registration.owner)
            let target = keys.open(device.address, context: place).flatMap(PushTarget.init(stored:))
            return target.map { (device.registration, $0) }
        }
        for part in RowParts.ranges(of: known.count, most: OutboxLimits.rowsAtOnceMax) {
            try store.writeAndWait { db in
                let named = try known[part].map { ($0.registration, try fingerprint(of: $0.target, in: db)) }
                try db.lock(named.map { LockKey(kind: "address", id: $0.1).name(in: "") })
                let holders = try registrations(of: named.map(\.1), in: db)
                try Outbox.lock(holders.map(\.owner) + named.map(\.0.owner), in: db)
                for (registration, fingerprint) in named { try name(registration, fingerprint, in: db) }
            }
        }
    }

    /// Greater than each character of a fingerprint.
    private static let spellingMark = "~"

    private static func name(_ own: Registration, _ fingerprint: String, in db: DatabaseConnection) throws {
        // The app may have registered again since the device was read.
        guard try registrations(of: [own.fingerprint], in: db).contains(where: { $0.isSame(as: own) }) else { return }
        if let other = try registrations(of: [fingerprint], in: db).first {
            let former = other.registeredAt < own.registeredAt ? other : own
            try Outbox.remove(lane(of: former.id, former.owner.userId), of: former.owner.tenant, in: db)
            try delete(former, in: db)
            if former.isSame(as: own) { return }
        }
        try db.run(
            """
            UPDATE \(devices, unscoped: rotating) SET fingerprint = \(fingerprint)
            WHERE tenant = \(own.owner.tenant) AND user_id = \(own.owner.userId) AND id = \(own.id)
            """)
    }

    // MARK: Registrations

    private struct Registration: Sendable {
        let owner: Owner
        let id: ID<Device>
        let fingerprint: String
        let registeredAt: Timestamp

        func isSame(as other: Registration) -> Bool { owner == other.owner && id == other.id }
    }

    private static func registration(_ row: Row) throws -> Registration {
        Registration(
            owner: Owner(tenant: try row.id(0), userId: try row.id(1)), id: try row.id(2), fingerprint: try row.text(3),
            registeredAt: try row.moment(4))
    }

    private static func registrations(of fingerprints: [String], in db: DatabaseConnection) throws -> [Registration] {
        try db.rows(
            """
            SELECT tenant, user_id, id, fingerprint, registered_at FROM \(devices, unscoped: reacting)
            WHERE fingerprint IN \(values: fingerprints)
            """
        ) { row in try registration(row) }
    }

    private static func delete(_ registration: Registration, in db: DatabaseConnection) throws {
        try db.run(
            """
            DELETE FROM \(devices, unscoped: .reaction("a device belongs to the user who registered it last"))
            WHERE tenant = \(registration.owner.tenant) AND user_id = \(registration.owner.userId)
                AND id = \(registration.id) AND fingerprint = \(registration.fingerprint)
            """)
    }
}
