/// The stores of a bell, each created at its first use.
@MainActor struct Features {
    var badges: Store<CountsMachine>?
    var notifications: Store<NotificationsMachine>?
    var conversations: Store<ConversationsMachine>?
    var feed: Store<FeedMachine>?
    var push: Store<PushMachine>?
    var invalidation: Store<InvalidationMachine>?
    var requests = KeyedStores<Bellhop.ListRequestsDirection, RequestsMachine>()
    var conversation = KeyedStores<String, ConversationMachine>()
    var queue = KeyedStores<String, QueueMachine>()
    var booking = KeyedStores<String, BookingMachine>()
    var leaderboard = KeyedStores<String, LeaderboardMachine>()
    var dj = KeyedStores<String, DJMachine>()
    var visibleRows = KeyedStores<VisibleRowsMachine.Table, VisibleRowsMachine>()
    var rows = KeyedStores<RowsMachine.Query, RowsMachine>()
    /// The callbacks of watched queries, called when a query is stale.
    var refetches: [String: @MainActor (String) -> Void] = [:]
    var refetching: Task<Void, Never>?
    var count = 0

    nonisolated init() {}
}

/// One store per key. A limited number of unwatched stores stays up to date, so that going back to a screen shows it at
/// once.
@MainActor struct KeyedStores<Key: Hashable & Sendable, Machine: ShownMachine> {
    private static var unwatchedMax: Int { 32 }

    private var all: [Key: Store<Machine>] = [:]
    private var order: [Key] = []

    nonisolated init() {}

    mutating func find(_ key: Key, _ make: () -> Store<Machine>) -> Store<Machine> {
        let found = all[key] ?? make()
        all[key] = found
        order.removeAll { $0 == key }
        order.append(key)
        for old in order where order.count > Self.unwatchedMax && old != key {
            guard let store = all[old], !store.isWatched else { continue }
            all[old] = nil
            order.removeAll { $0 == old }
            store.close()
        }
        return found
    }
}

extension Bell {
    /// Unread messages, requests and notifications.
    public var badges: Store<CountsMachine> {
        let machine = CountsMachine(user: user)
        let store = features.badges ?? Store(machine, "badges", of: self, localEvents: ["badges:update"])
        features.badges = store
        poll()
        return store
    }

    public var notifications: Store<NotificationsMachine> {
        let store = features.notifications ?? Store(NotificationsMachine(), "notifications", of: self)
        features.notifications = store
        return store
    }

    public var conversations: Store<ConversationsMachine> {
        let localEvents: Set<String> = ["message:sending", "message:sent", "message:refused"]
        let store =
            features.conversations
            ?? Store(ConversationsMachine(user: user), "conversations", of: self, localEvents: localEvents)
        features.conversations = store
        return store
    }

    public func conversation(_ id: String) -> Store<ConversationMachine> {
        features.conversation.find(id) {
            Store(ConversationMachine(conversationId: id), "conversation \(id)", of: self)
        }
    }

    /// The requests to the user, or the requests that the user has made.
    public func requests(_ direction: Bellhop.ListRequestsDirection = .incoming) -> Store<RequestsMachine> {
        features.requests.find(direction) {
            Store(RequestsMachine(direction: direction, user: user), "requests \(direction)", of: self)
        }
    }

    /// The wait in a shop.
    public func queue(_ shopID: String) -> Store<QueueMachine> {
        features.queue.find(shopID) { Store(QueueMachine(shopId: shopID), "queue \(shopID)", of: self) }
    }

    public func booking(_ id: String) -> Store<BookingMachine> {
        features.booking.find(id) { Store(BookingMachine(bookingId: id), "booking \(id)", of: self) }
    }

    public func leaderboard(_ challengeID: String) -> Store<LeaderboardMachine> {
        features.leaderboard.find(challengeID) {
            Store(
                LeaderboardMachine(challengeId: challengeID, user: user), "leaderboard \(challengeID)", of: self)
        }
    }

    public var feed: Store<FeedMachine> {
        let store = features.feed ?? Store(FeedMachine(user: user), "feed", of: self)
        features.feed = store
        return store
    }

    /// The DJ queue of a shop.
    public func dj(_ shopID: String) -> Store<DJMachine> {
        features.dj.find(shopID) { Store(DJMachine(shopId: shopID), "dj \(shopID)", of: self) }
    }

    /// The rows that are on the screen.
    public func visibleRows(_ table: VisibleRowsMachine.Table) -> Store<VisibleRowsMachine> {
        features.visibleRows.find(table) {
            Store(
                VisibleRowsMachine(table), "visible rows \(table.name)", of: self,
                localEvents: Bell.ownPosts(table.schema, table.table))
        }
    }

    /// Returns the events of the user's own likes and reposts, for rows of the service's posts.
    private static func ownPosts(_ schema: String, _ table: String) -> Set<String> {
        schema == "bellhop" && table == "posts" ? ["post:engaged"] : []
    }

    /// The rows of a table that match a filter. The filter is subscribed to while `updates` has a reader.
    public func rows(_ query: RowsMachine.Query) -> Store<RowsMachine> {
        features.rows.find(query) {
            Store(
                RowsMachine(query), "rows \(query.name)", of: self,
                localEvents: Bell.ownPosts(query.schema, query.table))
        }
    }

    /// The rows of a table that match a filter, such as `list_id=eq.7`.
    public func rows(_ table: String, filter: String) -> Store<RowsMachine> {
        rows(RowsMachine.Query(table, filter: filter))
    }

    /// The queries that have to be refetched.
    public var invalidation: Store<InvalidationMachine> {
        if let store = features.invalidation { return store }
        let store = Store(InvalidationMachine(clientId: client.clientID), of: self)
        features.invalidation = store
        return store
    }
}
