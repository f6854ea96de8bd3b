import Cryptography
import Database
import Domain
import MicroHTTP
import Values

/// The audit log: which backend, administrator or member of staff did what to whose data.
///
/// Entries arise where the policies let a caller act on rows of others (``RowAccesses``), and where an endpoint is open to
/// certain roles only (``PrivilegedAct``). No handler writes one.
enum AuditFeature {
    static let feature = Feature(
        name: "audit", tables: [entries, heads, counts], migrations: migrations,
        endpoints: [
            Endpoint(
                .get, "/v1/audit", access: .adminOrService,
                query: ["actor", "target", "action", "from", "to", "limit", "cursor"], showList)
        ],
        ticks: [endingMinutes, pruning], personSteps: [personStep], audits: [chains], locks: [chain.kind])

    /// The lock of a tenant's chain.
    static let chain = LockKey(kind: "audit")

    /// `GET /v1/audit`: the newest entries first.
    ///
    /// Callers and users are found by their digests, which stay when a person is erased.
    private static func showList(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: AuditLimits.pageMax)
        let action = try call.query.string("action")
        guard action?.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) ?? true else {
            throw Failure.invalid("?action", "must be an operation, such as PATCH /v1/bookings/{id}")
        }
        let (actor, target) = (try call.query.id("actor", User.self), try call.query.id("target", User.self))
        let filter = Filter(
            action: action, from: try call.query.moment("from"), to: try call.query.moment("to"))
        let after = page.after.flatMap(PageCursor.init(reading:))
        return .read { [filter] tx in
            var filter = filter
            if actor != nil || target != nil {
                let name = AuditLog.secretName(of: tx.tenant)
                guard let secret = try ServiceSecrets.find(named: name, in: tx.db) else {
                    return page.response([AuditEntry](), by: { PageCursor(of: $0).text })
                }
                let key = AuthenticationKey(secret)
                filter.actor = AuditLog.digest(of: actor, by: key)
                filter.target = AuditLog.digest(of: target, by: key)
            }
            let listing = listing(filter, behind: after, limit: page.rowsMax, visibleTo: tx.scope)
            return page.response(try tx.db.rows(listing, AuditEntry.init(row:)), by: { PageCursor(of: $0).text })
        }
    }
}
