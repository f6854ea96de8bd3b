import Foundation

extension CountsMachine: ShownMachine {
    /// Nil until the service has sent counts.
    public func snapshot(_ models: inout ModelCache) -> BadgeCounts? { counts }
}

extension NotificationsMachine: ShownMachine {
    /// The newest 50 notifications.
    public struct Snapshot: Sendable, Hashable {
        /// Newest first.
        public let items: [Bellhop.Notification]
        public let preferences: Bellhop.Preferences?
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(
            items: models.models(items), preferences: models.model(preferences), isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }
}

extension ConversationsMachine: ShownMachine {
    /// One line of the list.
    public struct Item: Sendable, Hashable, Identifiable {
        public let conversation: Bellhop.Conversation
        /// Whether the last message is still being sent.
        public let isSending: Bool
        public var id: String { conversation.id }
    }

    public struct Snapshot: Sendable, Hashable {
        /// The conversation with the newest message comes first.
        public let items: [Item]
        /// Whether there are older conversations.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        let shown = items.compactMap { json -> Item? in
            let last = json["lastMessage"]
            let isSending = !last.isNull && last["sequence"].isNull
            // The message will get the next sequence number.
            let number = JSON.integer(Int64((json["lastSequence"].int ?? 0) + 1))
            let sender = last["senderId"].isNull ? .string(user ?? "") : last["senderId"]
            let whole =
                isSending ? json.with(["lastMessage": last.with(["sequence": number, "senderId": sender])]) : json
            return models.model(whole).map { Item(conversation: $0, isSending: isSending) }
        }
        return Snapshot(items: shown, hasMore: hasMore, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }
}

extension ConversationMachine: ShownMachine {
    /// A message that is being sent.
    public struct Outgoing: Sendable, Hashable, Identifiable {
        public let id: String
        public let text: String
        public let sentAt: Date?
        /// Why the service refused the message; nil while it is being sent.
        public let problem: Bellhop.Problem?

        init(_ json: JSON) {
            id = json["id"].string ?? ""
            text = json["text"].string ?? ""
            sentAt = json["sentAt"].string.flatMap(Moment.date)
            problem = Bellhop.Problem(json["problem"])
        }
    }

    public struct Snapshot: Sendable, Hashable {
        /// Oldest first.
        public let messages: [Bellhop.Message]
        public let sending: [Outgoing]
        /// Refused messages, to be resent or discarded.
        public let refused: [Outgoing]
        public let unread: Int?
        /// Whether there are older messages.
        public let hasEarlier: Bool
        /// Whether the user is no longer a member.
        public let isRemoved: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(
            messages: models.models(messages), sending: sending.map(Outgoing.init), refused: refused.map(Outgoing.init),
            unread: unread.int, hasEarlier: hasEarlier, isRemoved: isRemoved, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }
}

extension QueueMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        public let status: Bellhop.QueueStatus?
        /// Whether the topic is live; otherwise the status is the last one received.
        public let isLive: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(
            status: models.model(status), isLive: isLive, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }
}

extension BookingMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        /// Nil until the whole booking is known.
        public let booking: Bellhop.Booking?
        public let isLoaded: Bool
        /// Whether a change by the user is pending. It already shows.
        public let isPending: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(
            booking: models.model(booking), isLoaded: isLoaded, isPending: isPending, problem: Bellhop.Problem(problem))
    }
}

extension LeaderboardMachine: ShownMachine {
    /// The user's own row, wherever it is on the board.
    public struct OwnRow: Sendable, Hashable {
        public let displayName: String?
        public let rank: Int
        public let position: Int
        public let score: Int
    }

    public struct Snapshot: Sendable, Hashable {
        /// The top lines, in order.
        public let lines: [LeaderboardTop.Line]
        /// The total number of entries on the board.
        public let entries: Int
        /// Nil for a user without a score.
        public let me: OwnRow?
        /// Whether a change was missed and is being fetched.
        public let isBehind: Bool
        public let isLive: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        var row: OwnRow?
        if let rank = me["rank"].int, let position = me["position"].int, let score = me["score"].int {
            row = OwnRow(displayName: me["displayName"].string, rank: rank, position: position, score: score)
        }
        return Snapshot(
            lines: top.lines, entries: top.entries, me: row, isBehind: isBehind, isLive: isLive, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }
}

extension FeedMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        /// Newest first.
        public let posts: [Bellhop.PostView]
        /// The number that the banner shows.
        public let newCount: Int
        /// Whether there are more new posts than are counted.
        public let isMore: Bool
        /// Whether there are older posts.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        // An event to all followers does not carry the reader's own likes, and a new post has no likes yet.
        let nobody: JSON = ["liked": false, "reposted": false]
        let whole = posts.map { nobody.with($0.object ?? [:]) }
        return Snapshot(
            posts: models.models(whole), newCount: newCount, isMore: isMore, hasMore: hasMore, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }
}

extension DJMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        /// The queue, including the user's own votes.
        public let queue: DJQueueState
        public let isLive: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(queue: queue, isLive: isLive, isLoaded: isLoaded, problem: Bellhop.Problem(problem))
    }
}

extension VisibleRowsMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        /// The ids of the shown rows.
        public let ids: [String]
        /// The rows as last sent by the service, by id. Tables of the app may have any columns.
        public let rows: [String: JSON]
        /// Whether the service has accepted the current filters.
        public let isLive: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(ids: ids, rows: rows, isLive: isPut, problem: Bellhop.Problem(problem))
    }
}

extension RowsMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        /// The rows by id.
        public let rows: [String: JSON]
        /// Whether the service has accepted the filter on the present stream.
        public let isLive: Bool
        /// Whether changes were missed: fetch the rows again, and call `load`.
        public let isStale: Bool
        public let problem: Bellhop.Problem?

        /// Returns the rows as models of the app, in no particular order. Throws the error of the first row that is no
        /// such model.
        public func decode<Row: Decodable>(as type: Row.Type = Row.self) throws -> [Row] {
            let decoder = Bellhop.decoder
            return try rows.values.map { try decoder.decode(type, from: $0.data) }
        }
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(rows: rows, isLive: isPut, isStale: isStale, problem: Bellhop.Problem(problem))
    }
}

extension InvalidationMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        public let isLive: Bool
        /// Whether there has been no stream for longer than data may be old.
        public let isStale: Bool
        public let staleKeys: [Key]
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(isLive: isLive, isStale: isStale, staleKeys: staleKeys)
    }
}
