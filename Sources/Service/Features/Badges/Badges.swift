import Database
import Domain
import MicroHTTP
import Values

/// The badge counts of all icons in one call (R-CNT-G1 to R-CNT-G3, R-CNT-COUNTS-1, R-CNT-D-1).
///
/// Each transaction stores the counts that it changes; this feature only reads them.
enum BadgesFeature {
    /// Creates the feature.
    ///
    /// - Parameter conversations: Returns the query for the caller's unread messages by conversation, as rows of an id
    ///   and a number. It is a parameter because features do not depend on one another.
    static func feature(conversations: @escaping @Sendable (Caller) -> SQL) -> Feature {
        Feature(
            name: "badges",
            endpoints: [
                Endpoint(.get, "/v1/badges", access: .bearer, query: ["include"], effort: .instant) {
                    try show($0, conversations)
                }
            ],
            events: ["badges:update"],
            constants: { writer, _ in
                writer.member(
                    "polling",
                    [
                        "connectedSeconds": PollIntervals.connectedSeconds,
                        "disconnectedSeconds": PollIntervals.disconnectedSeconds,
                        "tabSwitchStaleSeconds": PollIntervals.tabSwitchStaleSeconds,
                    ])
            })
    }

    /// The interval in seconds after which a client should poll again (R-CNT-RECON-4).
    private static let pollInterval: HeaderFields = [
        ("Poll-Interval", "\(PollIntervals.connectedSeconds)")
    ]

    /// The additional data that a request can include.
    private enum Inclusion: String, CaseIterable {
        case conversations
    }

    /// `GET /v1/badges`: the absolute, uncapped counts with a version. A poll with a known version costs a 304
    /// (R-CNT-RECON-4).
    private static func show(_ call: Call, _ conversations: @Sendable (Caller) -> SQL) throws -> Answer {
        let inclusion = try call.query.word("include", Inclusion.self)
        // The unread messages of a conversation change only together with the badge, so one version covers both.
        let variant = inclusion?.rawValue ?? ""
        // A poll that already has the newest version is answered without the database.
        if let version = call.knownBadgeVersion, let tag = call.request.seen(call.tag(version, variant: variant)) {
            return .now(.notModified(tag, headers: pollInterval))
        }
        let userId = call.caller.userId
        // Obtained before the read. If the versions are dropped meanwhile, the result is not cached.
        let generation = call.badgeVersions.presentGeneration
        if inclusion == .conversations {
            let unread = conversations(call.caller)
            return .read { tx in
                let badges = try BadgeLedger.read(userId, at: tx.now, visibleTo: tx.scope, in: tx.db)
                call.badgeVersions.note(badges.version, of: call.caller.owner, readIn: generation)
                // If the badge has no messages or hides them, no conversation has any.
                let shares =
                    badges.messages == 0
                    ? [] : try tx.db.rows(unread) { (conversationId: try $0.text(0), unread: try $0.integer(1)) }
                return Response.json(headers: pollInterval, tag: tx.tag(badges.version, variant: variant)) {
                    writer in
                    badges.sent(in: tx.epoch).write(membersTo: &writer)
                    writer.member("conversations", shares) { writer, share in
                        writer.member("conversationId", share.conversationId)
                        writer.member("unread", share.unread)
                    }
                }
            }
        }
        let scope = call.caller.scope
        let query = scope.statement("badges") { BadgeLedger.query(userId, visibleTo: scope) }
        return .query(query) { rows in
            let badges = try BadgeLedger.badges(in: rows, at: call.now)
            call.badgeVersions.note(badges.version, of: call.caller.owner, readIn: generation)
            return Response.json(200, badges.sent(in: call.epoch), headers: pollInterval, tag: call.tag(badges.version))
        }
    }
}

/// The poll intervals of clients (R-CNT-D-2, R-CNT-POLL).
enum PollIntervals {
    /// With an open stream, as a safety net.
    static let connectedSeconds = 10
    static let disconnectedSeconds = 90
    /// A tab that comes to the foreground polls if its counts are older than this.
    static let tabSwitchStaleSeconds = 15
}
