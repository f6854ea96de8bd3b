import Domain
import MicroHTTP

extension BadgesFeature {
    static let endpoints = [Endpoint(.get, "/v1/badges", access: .bearer, effort: .instant, show)]

    /// What may be asked for beside the counts.
    enum Inclusion: String, CaseIterable {
        case conversations
    }

    /// `GET /v1/badges`: absolute, uncapped, with a version; a poll against a known version costs a 304 (CNT R-RECON-4).
    private static func show(_ call: Call) throws -> Answer {
        let query = try call.query(["include"])
        let inclusion = try query.word("include", Inclusion.self)
        let userId = call.caller.userId
        return .read { tx in
            let badges = try tx.badges(of: userId)
            guard inclusion == .conversations else {
                return Response.json(200, JSONWriter.bytes(badges), etag: "\(badges.version)")
            }
            let body = JSONWriter.object { writer in
                badges.write(membersTo: &writer)
                // No conversation exists yet; the member is there, so that a client written for it works today.
                writer.member("conversations", [String]())
            }
            return Response.json(200, body, etag: "\(badges.version)-conversations")
        }
    }
}
