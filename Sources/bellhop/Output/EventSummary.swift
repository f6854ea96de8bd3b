import BellhopCalls

/// One-line summaries of events, for `bellhop listen` and `bellhop demo --school`.
enum EventSummary {
    /// Templates for events, filled with their members: `{member}` is required, `{member|else}` is optional.
    private static let lines = [
        "notification:created": "{priority|} · {title}: {message|}",
        "booking:status_change": "{bookingId|} {previousStatus|new} → {status}",
        "queue:update": "{shopId|}: {queueLength} waiting, about {estimatedWaitTimes.standard|0} min ({state|})",
        "stream:closing": "{reason}", "stream:resync": "{reason}",
        "message:created": "{message.senderId}: {preview}",
        "message:deleted": "message {sequence} of {conversationId|} was deleted",
        "conversation:read": "{conversationId|} read up to {readPosition}",
        "conversation:removed": "{conversationId}: no longer a member",
        "request:created": "{kind}: {fromUserId} → {toUserId}, {status|}",
        "request:updated": "{kind}: {fromUserId} → {toUserId}, {status|}",
        "request:removed": "{kind}: {fromUserId} → {toUserId}, {status|}",
        "dj:queue_update": "{trackId}: position {position}, {upvotes|0} up, {downvotes|0} down",
        "track:added": "{trackName} ({artistName|}), for {addedBy|}: position {position|0}",
        "track:playing": "now playing {trackName} ({artistName|})", "track:removed": "{trackId} {reason|}",
        "leaderboard:update": "{challengeId}: rank {rank} with {score|0}", "feed:post_removed": "{postId} was removed",
    ]

    /// Returns one line, or nil for other events and for events of an unknown shape.
    static func of(_ event: ServerSentEvent) -> String? {
        let json = event.json
        if let line = lines[event.name].flatMap({ filled($0, json) }) {
            let countsUnread = event.name.hasPrefix("message:") || event.name == "conversation:read"
            guard countsUnread, let unread = json["unread"].int else { return line }
            return "\(line)  (\(unread) unread in this conversation, \(json["badges"]["messages"].int ?? 0) in total)"
        }
        return switch event.name {
        case "badges:update": badges(json)
        case "stream:ready": badges(json["badges"])
        case "conversation:updated": conversation(json)
        case "dj:session": session(json)
        case "track:playing": json["shopId"].string.map { "\($0): silence" }
        case "leaderboard:update": leaderboard(json)
        case "feed:new_post": post(json)
        case "follow:changed": follow(json)
        case "query:invalidate": invalidation(json)
        case "table:change": change(json)
        case "engagement_update":
            json["updates"].object.map { updates in
                updates.sorted { $0.key < $1.key }.map { "\($0.key): \(columns($0.value))" }.joined(separator: "; ")
            }
        default: nil
        }
    }

    /// Returns the filled template; nil if a required member is missing.
    private static func filled(_ line: String, _ json: JSON) -> String? {
        var isComplete = true
        let text = line.replacing(/\{([A-Za-z.]+)(?:\|([a-z0-9]*))?\}/) { match in
            let value = match.1.split(separator: ".").reduce(json) { $0[String($1)] }
            let text = value.string ?? value.int.map { "\($0)" } ?? match.2.map { String($0) }
            if text == nil { isComplete = false }
            return text ?? ""
        }
        return isComplete ? text : nil
    }

    private static func badges(_ json: JSON) -> String? {
        BadgeCounts(json).map {
            "\($0.total) in total: bell \($0.bell), requests \($0.requests), messages \($0.messages)"
        }
    }

    private static func conversation(_ json: JSON) -> String? {
        let conversation = json["conversation"]
        guard let id = conversation["id"].string else { return nil }
        let changes = [("joined", "+"), ("left", "−")].flatMap { member, sign in
            (json[member].array ?? []).compactMap(\.string).map { sign + $0 }
        }
        let title = conversation["title"].string.map { "“\($0)”" } ?? id
        return "\(title), \(conversation["memberCount"].int ?? 0) members \(changes.joined(separator: " "))"
    }

    private static func session(_ json: JSON) -> String? {
        guard let shop = json["shopId"].string else { return nil }
        let tracks = "\(json["queue"].array?.count ?? 0) tracks queued"
        return "\(shop): \(json["isActive"].bool == true ? "guests choose, \(tracks)" : "no music by guests")"
    }

    /// Returns the top of a watched board.
    private static func leaderboard(_ json: JSON) -> String? {
        guard let challenge = json["challengeId"].string else { return nil }
        if let moved = json["moved"].array {
            return "\(challenge), \(json["entries"].int ?? 0) entries: \(moved.count) of the top entries changed"
        }
        guard let top = json["top"].array else { return nil }
        let best = top.prefix(3).map { item in
            "\(item["rank"].int ?? 0). \(item["userId"].string ?? "") \(item["score"].int ?? 0)"
        }
        return "\(challenge), \(json["entries"].int ?? 0) entries: \(best.joined(separator: ", "))"
    }

    private static func post(_ json: JSON) -> String? {
        guard let author = json["authorId"].string, let text = json["text"].string else { return nil }
        return "\(author): \(text.isEmpty ? "\(json["media"].array?.count ?? 0) pictures" : text)"
    }

    private static func follow(_ json: JSON) -> String? {
        guard let author = json["authorId"].string, let isFollowed = json["followed"].bool else { return nil }
        return "\(json["followerId"].string ?? "") \(isFollowed ? "follows" : "no longer follows") \(author)"
    }

    // MARK: Rows

    private static func change(_ json: JSON) -> String? {
        guard let change = json["change"].string, let table = json["table"].string else { return nil }
        return "\(table) \(change)s: \(columns(change == "leave" ? json["oldRecord"] : json["record"]))"
    }

    private static func columns(_ row: JSON) -> String {
        (row.object ?? [:]).sorted { $0.key < $1.key }.map { name, value in
            "\(name) \(value.string ?? value.text)"
        }.joined(separator: ", ")
    }

    private static func invalidation(_ json: JSON) -> String? {
        guard let keys = json["keys"].array else { return nil }
        return [staleKeys(keys), causes(json)].filter { !$0.isEmpty }.joined(separator: "  ← ")
    }

    /// Returns `leaderboard/3a  attendance-calendar ×6`: when there are many, keys of one kind are counted.
    private static func staleKeys(_ keys: [JSON]) -> String {
        let paths = keys.map { key in (key.array ?? []).compactMap(\.string) }
        return distinct(paths.compactMap(\.first)).map { kind in
            let same = paths.filter { $0.first == kind }
            return same.count > 2
                ? "\(kind) ×\(same.count)" : same.map { $0.joined(separator: "/") }.joined(separator: "  ")
        }.joined(separator: "  ")
    }

    /// Returns `attendance ×6`; empty if the receiver may not see the rows.
    private static func causes(_ json: JSON) -> String {
        let tables = (json["causes"].array ?? []).compactMap { $0["table"].string }
        let counted = distinct(tables).map { table in
            let count = tables.count { $0 == table }
            return count > 1 ? "\(table) ×\(count)" : table
        }
        guard json["causesComplete"].bool == false else { return counted.joined(separator: ", ") }
        return counted.isEmpty ? "cause not visible" : counted.joined(separator: ", ") + ", …"
    }

    /// Returns each name once, in the original order.
    private static func distinct(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}
