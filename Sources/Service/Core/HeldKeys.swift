import Database
import Domain
import Realtime
import Visibility

/// A membership whose keys open streams hold too, so that one event reaches all who hold a key, and costs nothing for
/// each of them.
struct LiveMembership: Sendable {
    let membership: Membership
    /// Keys of one user. Each is an entry in the hub for each stream of that user, and a route that a resuming stream
    /// reads.
    let keysMax: Int
}

/// Keys that streams hold because rows of the service say so (decision 11).
///
/// A stream reads them when it opens, before it reads the log. From then on the log tells it what has changed, in the
/// order of the commits, on every replica: what is told to a key before its row is there is not heard, and what is told
/// after it is.
enum HeldKeys {
    /// The log's way to say that a row of a membership has come or gone.
    static let event: StaticString = "bellhop:held"

    /// Tells that somebody holds a key now, or does not any more: in the transaction that writes the row.
    static func tell(
        _ membership: Membership, of member: String, in group: String, isHeld: Bool, _ tx: Transaction
    ) {
        guard let holder = membership.holder.key(of: { _ in member }),
            let key = membership.given.key(of: { _ in group })
        else { return }
        let change = HeldChange(tenant: tx.tenant, holder: holder, key: key, isHeld: isHeld)
        tx.emit(event, audience: [], data: JSONWriter.bytes(change))
    }

    /// What the owner of a scope holds now by rows, each key with the table whose row gives it.
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

/// That whoever holds one key holds another now, or not any more.
struct HeldChange: Sendable, Hashable, JSONWritable {
    let tenant: String
    let holder: String
    let key: String
    let isHeld: Bool

    init(tenant: String, holder: String, key: String, isHeld: Bool) {
        self.tenant = tenant
        self.holder = holder
        self.key = key
        self.isHeld = isHeld
    }

    /// Nil for what no version of the service has written.
    init?(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data),
            case .string(let holder)? = members["holder"], case .string(let key)? = members["key"],
            case .bool(let isHeld)? = members["held"]
        else { return nil }
        self.init(tenant: event.tenant, holder: holder, key: key, isHeld: isHeld)
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("holder", holder)
            writer.member("key", key)
            writer.member("held", isHeld)
        }
    }
}
