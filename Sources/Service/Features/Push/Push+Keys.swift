import Database
import Domain
import Push
import Values

/// The keys that encrypt the addresses of devices.
extension PushFeature {
    static let rotating = Unscoped.bookkeeping("the addresses of all devices have the same keys")

    /// Encrypts the addresses of devices with the first key that others have encrypted.
    ///
    /// - Returns: The number of devices that were changed, by tenant, and of the ones that no key opens.
    static func rotate(
        _ keys: PushKeyRing, in db: DatabaseConnection
    ) throws -> (changed: [ID<Tenant>: Int], unreadable: Int) {
        var (old, unreadable) = ([(owner: Owner, id: ID<Device>, former: [UInt8], address: [UInt8])](), 0)
        try db.forEach("SELECT tenant, user_id, id, address FROM \(devices, unscoped: rotating)") { row in
            let (owner, id) = (Owner(tenant: try row.id(0), userId: try row.id(1)), try row.id(2) as ID<Device>)
            let sealed = try row.blob(3)
            guard keys.isOld(sealed) else { return true }
            guard let address = keys.open(sealed, context: place(of: id, owner)) else {
                unreadable += 1
                return true
            }
            old.append((owner, id, sealed, keys.seal(address, context: place(of: id, owner))))
            return true
        }
        var changed: [ID<Tenant>: Int] = [:]
        for (owner, id, former, address) in old {
            // The device may have been registered with a new token since it was read. Then the new one stays.
            let count = try db.run(
                """
                UPDATE \(devices, of: owner) SET address = \(address)
                WHERE id = \(id) AND address = \(former)
                """)
            if count > 0 { changed[owner.tenant, default: 0] += count }
        }
        return (changed, unreadable)
    }

    /// Returns the number of devices with addresses that the keys cannot decrypt.
    static func unreadableCount(_ keys: PushKeyRing, in db: DatabaseConnection) throws -> Int {
        try db.integer("SELECT count(*) FROM \(devices, unscoped: rotating) WHERE \(isUnreadable("address", keys))")
            ?? 0
    }

    static func isUnreadable(_ address: SQL, _ keys: PushKeyRing) -> SQL {
        .all(keys.names.map { "substr(\(address), 1, 4) <> \($0)" })
    }
}
