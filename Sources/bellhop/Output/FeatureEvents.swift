import BellhopClient

/// Summaries of events of conversations, requests, music, challenges and posts, for `bellhop listen`.
enum FeatureEvents {
    /// One line; nil for other events, and for those of an unknown shape.
    static func summary(_ event: ServerSentEvent) -> String? {
        switch event.name.prefix(while: { $0 != ":" }) {
        case "message", "conversation": talk(event.name, event.json)
        case "request": request(event.json)
        case "dj", "track": music(event.name, event.json)
        case "leaderboard": leaderboard(event.json)
        case "feed", "follow": feed(event.name, event.json)
        default: nil
        }
    }

    private static func talk(_ name: String, _ json: JSON) -> String? {
        switch name {
        case "message:created":
            guard let sender = json["message"]["senderId"].string, let text = json["preview"].string else { return nil }
            return "\(sender): \(text)\(unread(json))"
        case "message:deleted":
            guard let sequence = json["sequence"].int else { return nil }
            return "message \(sequence) of \(json["conversationId"].string ?? "") is taken back\(unread(json))"
        case "conversation:read":
            guard let position = json["readPosition"].int else { return nil }
            return "\(json["conversationId"].string ?? "") read up to \(position)\(unread(json))"
        case "conversation:updated":
            let conversation = json["conversation"]
            guard let id = conversation["id"].string else { return nil }
            let changes = [("joined", "+"), ("left", "−")].flatMap { member, sign in
                (json[member].array ?? []).compactMap(\.string).map { sign + $0 }
            }
            let title = conversation["title"].string.map { "“\($0)”" } ?? id
            return "\(title), \(conversation["memberCount"].int ?? 0) members \(changes.joined(separator: " "))"
        case "conversation:removed":
            return json["conversationId"].string.map { "\($0): no longer in it" }
        default: return nil
        }
    }

    private static func unread(_ json: JSON) -> String {
        json["unread"].int.map { "  (\($0) unread here, \(json["badges"]["messages"].int ?? 0) in all)" } ?? ""
    }

    private static func request(_ json: JSON) -> String? {
        guard let from = json["fromUserId"].string, let to = json["toUserId"].string, let kind = json["kind"].string
        else { return nil }
        return "\(kind): \(from) → \(to), \(json["status"].string ?? "")"
    }

    private static func music(_ name: String, _ json: JSON) -> String? {
        guard let shop = json["shopId"].string else { return nil }
        switch name {
        case "dj:session":
            let isActive = json["isActive"].bool == true
            let length = json["queue"].array?.count ?? 0
            return "\(shop): \(isActive ? "guests choose, \(length) tracks queued" : "no music by guests")"
        case "dj:queue_update":
            guard let track = json["trackId"].string, let position = json["position"].int else { return nil }
            return "\(track): position \(position), \(votes(json))"
        case "track:added":
            guard let title = title(json) else { return nil }
            return "\(title), for \(json["addedBy"].string ?? ""): position \(json["position"].int ?? 0)"
        case "track:playing": return title(json).map { "now playing \($0)" } ?? "\(shop): silence"
        case "track:removed": return json["trackId"].string.map { "\($0) \(json["reason"].string ?? "")" }
        default: return nil
        }
    }

    private static func title(_ json: JSON) -> String? {
        json["trackName"].string.map { "\($0) (\(json["artistName"].string ?? ""))" }
    }

    private static func votes(_ json: JSON) -> String {
        "\(json["upvotes"].int ?? 0) up, \(json["downvotes"].int ?? 0) down"
    }

    /// One name, two states: the own rank, or the top of a board that is watched.
    private static func leaderboard(_ json: JSON) -> String? {
        guard let challenge = json["challengeId"].string else { return nil }
        if let rank = json["rank"].int { return "\(challenge): rank \(rank) with \(json["score"].int ?? 0)" }
        guard let top = json["top"].array else { return nil }
        let best = top.prefix(3).map { item in
            "\(item["rank"].int ?? 0). \(item["userId"].string ?? "") \(item["score"].int ?? 0)"
        }
        return "\(challenge), \(json["entries"].int ?? 0) on it: \(best.joined(separator: ", "))"
    }

    private static func feed(_ name: String, _ json: JSON) -> String? {
        switch name {
        case "feed:new_post":
            guard let author = json["authorId"].string, let text = json["text"].string else { return nil }
            let media = json["media"].array?.count ?? 0
            return "\(author): \(text.isEmpty ? "\(media) pictures" : text)"
        case "feed:post_removed": return json["postId"].string.map { "\($0) is gone" }
        case "follow:changed":
            guard let author = json["authorId"].string, let isFollowed = json["followed"].bool else { return nil }
            return "\(json["followerId"].string ?? "") \(isFollowed ? "follows" : "no longer follows") \(author)"
        default: return nil
        }
    }
}
