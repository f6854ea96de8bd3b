import Foundation

extension CountsMachine: ShownMachine {
    /// Nil until the service has said what they are.
    public func snapshot(_ models: inout ModelCache) -> BadgeCounts? { counts }
}

extension NotificationsMachine: ShownMachine {
    /// The newest 50.
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
        /// Its last message is one that is being sent.
        public let isSending: Bool
        public var id: String { conversation.id }
    }

    public struct Snapshot: Sendable, Hashable {
        /// The one with the newest message first.
        public let items: [Item]
        /// There are older ones.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        let shown = items.compactMap { json -> Item? in
            let last = json["lastMessage"]
            let isSending = !last.isNull && last["sequence"].isNull
            // It will be the next one.
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
    /// A message that is on its way.
    public struct Outgoing: Sendable, Hashable, Identifiable {
        public let id: String
        public let text: String
        public let sentAt: Date?
        /// Why the service did not take it; nil while it is being sent.
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
        /// To be sent again, or discarded.
        public let refused: [Outgoing]
        public let unread: Int?
        /// There are older messages.
        public let hasEarlier: Bool
        /// The user is no member any more.
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
        /// The topic has said so; else it is the last that was heard.
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
        /// Nil until all of it is known.
        public let booking: Bellhop.Booking?
        public let isLoaded: Bool
        /// A change of the user's own is under way; it shows already.
        public let isPending: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(
            booking: models.model(booking), isLoaded: isLoaded, isPending: isPending, problem: Bellhop.Problem(problem))
    }
}

extension LeaderboardMachine: ShownMachine {
    /// The user's own row, wherever it is.
    public struct OwnRow: Sendable, Hashable {
        public let displayName: String?
        public let rank: Int
        public let position: Int
        public let score: Int
    }

    public struct Snapshot: Sendable, Hashable {
        /// The first ones, in order.
        public let lines: [LeaderboardTop.Line]
        /// How many are on the board altogether.
        public let entries: Int
        /// Nil for one who has no score.
        public let me: OwnRow?
        /// A change is missing, and being fetched.
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
        /// What the banner says.
        public let newCount: Int
        /// There are more new ones than are counted.
        public let isMore: Bool
        /// There are older ones.
        public let hasMore: Bool
        public let isLoaded: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        // What is told to all followers does not say what one of them likes: a new post nobody has liked yet.
        let nobody: JSON = ["liked": false, "reposted": false]
        let whole = posts.map { nobody.with($0.object ?? [:]) }
        return Snapshot(
            posts: models.models(whole), newCount: newCount, isMore: isMore, hasMore: hasMore, isLoaded: isLoaded,
            problem: Bellhop.Problem(problem))
    }
}

extension DJMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        /// With the user's own votes in it.
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
        /// Those that are shown.
        public let ids: [String]
        /// What the service has said of them, by id; the app's own tables have whatever columns they have.
        public let rows: [String: JSON]
        /// The service has taken what is wanted now.
        public let isLive: Bool
        public let problem: Bellhop.Problem?
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(ids: ids, rows: rows, isLive: isPut, problem: Bellhop.Problem(problem))
    }
}

extension InvalidationMachine: ShownMachine {
    public struct Snapshot: Sendable, Hashable {
        public let isLive: Bool
        /// Without a stream for longer than data may be old.
        public let isStale: Bool
        public let staleKeys: [Key]
    }

    public func snapshot(_ models: inout ModelCache) -> Snapshot {
        Snapshot(isLive: isLive, isStale: isStale, staleKeys: staleKeys)
    }
}
