import Domain
import MicroHTTP

extension BadgesFeature {
    static let endpoints = [Endpoint(.get, "/v1/badges", access: .bearer, effort: .instant, show)]

    /// How soon a client should ask again, in seconds (CNT R-RECON-4).
    private static let pollInterval: [(name: String, value: String)] = [
        ("Poll-Interval", "\(PollIntervals.connectedSeconds)")
    ]

    /// What may be asked for beside the counts.
    enum Inclusion: String, CaseIterable {
        case conversations
    }

    /// `GET /v1/badges`: absolute, uncapped, with a version; a poll against a known version costs a 304 (CNT R-RECON-4).
    private static func show(_ call: Call) throws -> Answer {
        let query = try call.query(["include"])
        let inclusion = try query.word("include", Inclusion.self)
        // A poll that has the newest version already is answered without the database.
        if inclusion == nil, let version = call.knownBadgeVersion, let wanted = call.request.header("If-None-Match"),
            ETags.matches(wanted, "\"\(version)\"")
        {
            return .now(.notModified(etag: "\(version)", headers: pollInterval))
        }
        let userId = call.caller.userId
        // Asked before the read: what is seen is not noted if the versions were forgotten meanwhile.
        let generation = call.badgeVersions.presentGeneration
        return .query(BadgeLedger.query(userId, visibleTo: call.caller.scope)) { rows in
            let badges = try BadgeLedger.badges(in: rows, at: call.now)
            call.badgeVersions.note(badges.version, of: userId, tenant: call.caller.tenant, readIn: generation)
            guard inclusion == .conversations else {
                return Response.json(200, JSONWriter.bytes(badges), headers: pollInterval, etag: "\(badges.version)")
            }
            let body = JSONWriter.object { writer in
                badges.write(membersTo: &writer)
                // No conversation exists yet; the member is there, so that a client written for it works today.
                writer.member("conversations", [String]())
            }
            return Response.json(200, body, headers: pollInterval, etag: "\(badges.version)-conversations")
        }
    }
}
