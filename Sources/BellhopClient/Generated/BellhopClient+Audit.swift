// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension BellhopClient {
    /// List audit entries
    ///
    /// Requires a service token or the role `admin`. Lists what backends, administrators and staff did to whose data,
    /// the newest first: by number, or by time if `from` or `to` is given. Entries hold no content of users. Each entry
    /// contains the hash of the one before (Docs/audit.md). Calls that backends send in large numbers (`POST
    /// /v1/events`, `/v1/notifications`, `/v1/publish`, `/v1/changes` and `/v1/challenges/{id}/scores`) have one entry
    /// per minute with their count.
    ///
    /// `GET /v1/audit`
    ///
    /// - Parameters:
    ///   - actor: id of the caller, which may have been erased.
    ///   - target: id of the user whose data was concerned. The user may have been erased.
    ///   - action: method and path of the operation, such as `PATCH /v1/bookings/{id}`.
    ///   - from: only entries at this time or later.
    ///   - to: only entries before this time.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listAuditEntries(
        actor: String? = nil, target: String? = nil, action: String? = nil, from: Date? = nil, to: Date? = nil,
        limit: Int? = nil, cursor: String? = nil
    ) async throws -> Bellhop.Answer<Bellhop.Page<Bellhop.AuditEntry>> {
        var call = try Bellhop.Call("GET", "/v1/audit")
        call.query("actor", actor)
        call.query("target", target)
        call.query("action", action)
        call.query("from", from)
        call.query("to", to)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List audit entries, page by page; `limit` is the number of items on a page.
    public func auditEntryPages(
        actor: String? = nil, target: String? = nil, action: String? = nil, from: Date? = nil, to: Date? = nil,
        limit: Int? = nil
    ) -> Bellhop.Pages<Bellhop.Page<Bellhop.AuditEntry>> {
        Bellhop.Pages { cursor in
            try await listAuditEntries(
                actor: actor, target: target, action: action, from: from, to: to, limit: limit, cursor: cursor)
        }
    }
}
