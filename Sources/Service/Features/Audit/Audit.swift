import Database
import Domain
import MicroHTTP
import Values

/// The audit log: which backend, administrator or member of staff did what to whose data.
///
/// Entries arise where the policies let a caller act on rows of others (``Oversight``), and where an endpoint is open to
/// certain roles only (``AuditedAct``). No handler writes one.
enum AuditFeature {
    static let feature = Feature(
        name: "audit", tables: [entries, heads, anchors, counts], migrations: migrations,
        endpoints: [
            Endpoint(
                .get, "/v1/audit", access: .adminOrService,
                query: ["actor", "target", "action", "from", "to", "limit", "cursor"], showList)
        ],
        ticks: [endingMinutes, pruning], personSteps: [personStep], audits: [chains], locks: [chain.kind])

    /// The lock of a tenant's chain.
    static let chain = LockKey(kind: "audit")

    /// `GET /v1/audit`: the newest entries first.
    private static func showList(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: AuditLimits.pageMax)
        let action = try call.query.string("action")
        guard action?.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) ?? true else {
            throw Failure.invalid("?action", "must be an operation, such as PATCH /v1/bookings/{id}")
        }
        let filter = Filter(
            actor: try call.query.id("actor", User.self), target: try call.query.id("target", User.self),
            action: action, from: try call.query.moment("from"), to: try call.query.moment("to"))
        let listing = listing(
            filter, before: page.after.flatMap { Int($0) }, limit: page.rowsMax, visibleTo: call.caller.scope)
        return .query(listing) { rows in
            page.response(try rows.rows(AuditEntry.init(row:)), by: { "\($0.sequence)" })
        }
    }
}
