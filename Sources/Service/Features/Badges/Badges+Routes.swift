import Database
import Domain
import MicroHTTP
import Values

extension BadgesFeature {
    static func endpoints(_ conversations: @escaping @Sendable (Caller) -> SQL) -> [Endpoint] {
        [
            Endpoint(.get, "/v1/badges", access: .bearer, query: ["include"], effort: .instant) {
                try show($0, conversations)
            }
        ]
    }

    /// How soon a client should ask again, in seconds (CNT R-RECON-4).
    private static let pollInterval: [(name: String, value: String)] = [
        ("Poll-Interval", "\(PollIntervals.connectedSeconds)")
    ]

    /// What may be asked for beside the counts.
    enum Inclusion: String, CaseIterable {
        case conversations
    }

    /// `GET /v1/badges`: absolute, uncapped, with a version; a poll against a known version costs a 304 (CNT R-RECON-4).
    private static func show(_ call: Call, _ conversations: @Sendable (Caller) -> SQL) throws -> Answer {
        let inclusion = try call.query.word("include", Inclusion.self)
        // Unread messages of a conversation change with the badge only, so that one version stands for both.
        let suffix = inclusion == .conversations ? "-conversations" : ""
        // A poll that has the newest version already is answered without the database.
        if let version = call.knownBadgeVersion, call.request.hasSeen("\(version)\(suffix)") {
            return .now(.notModified(etag: "\(version)\(suffix)", headers: pollInterval))
        }
        let userId = call.caller.userId
        // Asked before the read: what is seen is not noted if the versions were forgotten meanwhile.
        let generation = call.badgeVersions.presentGeneration
        if inclusion == .conversations {
            let unread = conversations(call.caller)
            return .read { tx in
                let badges = try BadgeLedger.read(userId, at: tx.now, visibleTo: tx.scope, in: tx.db)
                call.badgeVersions.note(badges.version, of: userId, tenant: tx.tenant, readIn: generation)
                let shares = try tx.db.rows(unread) { Share(conversationId: try $0.text(0), unread: try $0.integer(1)) }
                return Response.json(headers: pollInterval, etag: "\(badges.version)\(suffix)") { writer in
                    badges.write(membersTo: &writer)
                    writer.member("conversations", shares)
                }
            }
        }
        return .query(BadgeLedger.query(userId, visibleTo: call.caller.scope)) { rows in
            let badges = try BadgeLedger.badges(in: rows, at: call.now)
            call.badgeVersions.note(badges.version, of: userId, tenant: call.caller.tenant, readIn: generation)
            return Response.json(200, badges, headers: pollInterval, etag: "\(badges.version)")
        }
    }

    /// What one conversation adds to the badge.
    private struct Share: JSONWritable {
        let conversationId: String
        let unread: Int

        func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("conversationId", conversationId)
                writer.member("unread", unread)
            }
        }
    }
}
