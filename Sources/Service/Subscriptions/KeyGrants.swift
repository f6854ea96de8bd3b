import Database
import Realtime
import Values
import Visibility

/// A grant whose keys open streams have too. So one event reaches all holders of a key, without any cost per
/// holder.
struct LiveGrant: Sendable {
    let grant: KeyGrant
    /// The maximum number of keys of one user. Each is an entry in the hub for each stream of that user, and a route
    /// that a resuming stream reads.
    let keysMax: Int
}

/// Keys that streams have because rows of the service grant them (decision 0011).
///
/// A stream reads them when it opens, before it reads the log. From then on it follows their changes in the log, in
/// commit order, on every replica. An event for a key reaches those whose row existed before the event.
enum KeyGrants {
    /// The event in the log that a granting row was inserted or deleted.
    static let event: StaticString = "bellhop:granted"

    /// Publishes that a key was granted to, or revoked from, a member, in the transaction that writes the row.
    static func publish(
        _ grant: KeyGrant, of member: String, in group: String, isGranted: Bool, _ tx: Transaction
    ) {
        guard let holder = grant.holder.key(of: { _ in member }),
            let key = grant.grantedKey.key(of: { _ in group })
        else { return }
        let data = JSONWriter.object { writer in
            writer.member("holder", holder)
            writer.member("key", key)
            writer.member("granted", isGranted)
        }
        tx.publish(event, audience: [], data: data)
    }

    /// Returns the granted keys of the owner of a scope, each with the table whose row grants it.
    static func origins(of scope: Scope, by live: [LiveGrant], in db: DatabaseConnection) throws -> [String: String] {
        var origins: [String: String] = [:]
        for one in live {
            for key in try one.grant.keys(of: scope, in: db, limit: one.keysMax) {
                origins[key] = one.grant.table.name
            }
        }
        return origins
    }
}

/// A key that was granted to, or revoked from, the holders of another key.
struct KeyGrantChange: Sendable {
    let tenant: ID<Tenant>
    let holder: String
    let key: String
    let isGranted: Bool

    /// Reads the event; nil if no version of the service has written it.
    init?(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data), let holder = members.string("holder"),
            let key = members.string("key"), let isGranted = members.bool("granted")
        else { return nil }
        (self.tenant, self.holder, self.key, self.isGranted) = (event.tenant, holder, key, isGranted)
    }
}
