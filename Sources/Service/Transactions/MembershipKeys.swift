import Database
import Realtime
import Values
import Visibility

/// A membership whose keys open streams have too, so that one event reaches all who have a key, and costs nothing for
/// each of them.
struct LiveMembership: Sendable {
    let membership: Membership
    /// Keys of one user. Each is an entry in the hub for each stream of that user, and a route that a resuming stream
    /// reads.
    let keysMax: Int
}

/// Keys that streams have because rows of the service grant them (decision 11).
///
/// A stream reads them when it opens, before it reads the log. From then on it follows their changes in the log, in the
/// order of the commits, on every replica: an event for a key reaches those whose row was there before it.
enum MembershipKeys {
    /// The event by which the log says that a row of a membership has come or gone.
    static let event: StaticString = "bellhop:held"

    /// Publishes that somebody has a key now, or has it no longer: in the transaction that writes the row.
    static func publish(
        _ membership: Membership, of member: String, in group: String, isGranted: Bool, _ tx: Transaction
    ) {
        guard let holder = membership.holder.key(of: { _ in member }),
            let key = membership.given.key(of: { _ in group })
        else { return }
        let data = JSONWriter.object { writer in
            writer.member("holder", holder)
            writer.member("key", key)
            writer.member("held", isGranted)
        }
        tx.publish(event, audience: [], data: data)
    }

    /// The membership keys of the owner of a scope, each with the table whose row grants it.
    static func origins(of scope: Scope, by live: [LiveMembership], in db: Connection) throws -> [String: String] {
        var origins: [String: String] = [:]
        for one in live {
            for key in try one.membership.keys(of: scope, in: db, limit: one.keysMax) {
                origins[key] = one.membership.table.name
            }
        }
        return origins
    }
}

/// That whoever has one key has another now, or has it no longer.
struct MembershipKeyChange: Sendable {
    let tenant: ID<Tenant>
    let holder: String
    let key: String
    let isGranted: Bool

    /// Nil for what no version of the service has written.
    init?(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data), let holder = members.string("holder"),
            let key = members.string("key"), let isGranted = members.bool("held")
        else { return nil }
        (self.tenant, self.holder, self.key, self.isGranted) = (event.tenant, holder, key, isGranted)
    }
}
