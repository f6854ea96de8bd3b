import Database
import Domain
import TestSupport
import Testing
import Values

@testable import Service

/// Each index serves its purpose: no statement reads more rows than it needs.
@Suite(.timed) struct PlanTests {
    private static let scope = Scope(tenant: "t", keys: ["user:u1", "everyone"])
    private static let moment = Timestamp(microseconds: 1)
    /// A database with all tables of the service, for SQLite's query plans.
    private static let store = Result {
        let store = try DatabaseStore.open(DatabaseURL("sqlite::memory:"))
        try store.migrate(Catalog.migrations)
        return store
    }

    /// Expects that a statement's plan contains all of `parts`, and no text of `others`.
    private static func expectPlan(
        of sql: SQL, contains parts: String..., lacks others: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let plan = try store.get().read { try $0.queryPlan(sql) }.joined(separator: "\n")
        for part in parts { #expect(plan.contains(part), "\(plan)", sourceLocation: sourceLocation) }
        for other in others { #expect(!plan.contains(other), "\(plan)", sourceLocation: sourceLocation) }
    }

    // MARK: Badges

    @Test func walkOverBadges_continuesWhereItWas() throws {
        try Self.expectPlan(
            of: BadgeLedger.walk(after: Owner(tenant: "t", userId: "u1"), limit: 2),
            contains: "SEARCH badges USING PRIMARY KEY", lacks: ["SCAN", "TEMP B-TREE"])
    }

    // MARK: Conversations and requests

    /// The plan starts from the caller's own memberships, never from all conversations of the tenant. The result is
    /// sorted and limited.
    @Test(arguments: [false, true]) func conversations_startFromTheCallersPlaces(_ onlyUnread: Bool) throws {
        try Self.expectPlan(
            of: ConversationsFeature.listing(
                of: ID("u1"), onlyUnread: onlyUnread, after: "x", limit: 20, visibleTo: Self.scope),
            contains: "SEARCH conversation_members USING PRIMARY KEY (tenant=? AND user_id=?)",
            "SEARCH conversations USING INDEX", "(tenant=? AND id=?)", lacks: ["SCAN"])
    }

    @Test(arguments: [(Int?.some(9), Int?.none), (nil, 9), (nil, nil)])
    func messages_areWalkedInTheirOrder(_ before: Int?, _ after: Int?) throws {
        try Self.expectPlan(
            of: ConversationsFeature.messages(
                in: ID("c"), before: before, after: after, limit: 20, visibleTo: Self.scope),
            contains: "SEARCH messages USING PRIMARY KEY (tenant=? AND conversation_id=?",
            "SEARCH _held USING PRIMARY KEY (tenant=? AND user_id=? AND conversation_id=?)",
            lacks: ["SCAN", "TEMP B-TREE"])
    }

    /// The messages that a move passes are counted on two indexes, without reading a message.
    @Test func excludedMessages_areCountedWithoutTheMessages() throws {
        try Self.expectPlan(
            of: ConversationsFeature.countExcluded(in: 1...9, of: ID("u1"), in: ID("c"), tenant: "t"),
            contains: "COVERING INDEX messages_own", "COVERING INDEX messages_deleted", lacks: ["SCAN messages"])
    }

    @Test func pruningConversationsAndRequests_readsDueRowsOnly() throws {
        try Self.expectPlan(
            of: ConversationsFeature.abandonedConversations(tenant: "t", before: Self.moment),
            contains: "conversations_abandoned")
        try Self.expectPlan(
            of: RequestsFeature.pruning(tenant: "t", before: Self.moment), contains: "user_requests_answered",
            lacks: ["SCAN user_requests"])
    }

    @Test(arguments: [(false, "user_requests_incoming"), (true, "user_requests_outgoing")])
    func requests_areWalkedInTheirOrder(_ isOutgoing: Bool, _ index: String) throws {
        try Self.expectPlan(
            of: RequestsFeature.listing(
                of: ID("u1"), .init(isOutgoing: isOutgoing), after: "x", limit: 20, visibleTo: Self.scope),
            contains: "SEARCH user_requests USING INDEX \(index)", lacks: ["SCAN", "TEMP B-TREE"])
    }

    // MARK: Notifications

    @Test(arguments: [nil, NotificationsFeature.ListState.unseen, .unread, .archived, .all])
    func notifications_areWalkedInTheirOrder(_ state: NotificationsFeature.ListState?) throws {
        try Self.expectPlan(
            of: NotificationsFeature.listing(
                of: ID("u1"), .init(category: .visit, priority: .high, state: state), after: "x", limit: 20,
                visibleTo: Self.scope),
            contains: "SEARCH notifications USING INDEX notifications_listed", lacks: ["SCAN", "TEMP B-TREE"])
    }

    /// The cost does not depend on how many notifications the user has.
    @Test func eviction_takesTheFirstOfItsOrder() throws {
        try Self.expectPlan(
            of: NotificationsFeature.eviction(of: 1, before: ID("n"), of: ID("u1"), tenant: "t", at: Self.moment),
            contains: "INDEX notifications_eviction (tenant=? AND user_id=?)", lacks: ["SCAN", "TEMP B-TREE"])
    }

    @Test func pruningNotifications_readsDueRowsOnly() throws {
        for (sql, index) in [
            (NotificationsFeature.erasure(tenant: "t", before: Self.moment), "notifications_to_erase"),
            (NotificationsFeature.pruning(tenant: "t", before: Self.moment), "notifications_removed"),
        ] {
            try Self.expectPlan(
                of: sql, contains: index, "notifications_events (tenant=? AND user_id=? AND event_id=?)",
                lacks: ["SCAN notifications"])
        }
    }

    // MARK: Posts

    /// A page of a feed searches the index of each author, and never scans the posts of all authors.
    @Test func feed_usesIndexes() throws {
        let caller = Caller(
            tenant: "t", userId: ID("u1"), role: "authenticated", isService: false, tier: nil, scope: Self.scope,
            tokenId: nil, sessionId: nil, issuedAt: Timestamp(microseconds: 0),
            expiresAt: Timestamp(microseconds: .max))
        for sql in [
            PostsFeature.feed(before: 100, after: 0, limit: 21, for: caller),
            PostsFeature.newCount(since: 5, for: caller),
        ] {
            try Self.expectPlan(
                of: sql, contains: "posts_authors (tenant=? AND author_id=? AND sequence",
                lacks: ["SCAN posts", "SCAN follows", "MULTI-INDEX OR"])
        }
        try Self.expectPlan(
            of: PostsFeature.listing(of: ID("bob"), before: 5, limit: 3, for: caller),
            contains: "posts_authors (tenant=? AND author_id=? AND sequence<?)", lacks: ["TEMP B-TREE"])
        try Self.expectPlan(
            of: PostsFeature.listing(of: nil, before: 5, limit: 3, for: caller),
            contains: "posts_public (tenant=? AND sequence<?)", lacks: ["TEMP B-TREE"])
    }

    // MARK: DJ mode

    /// A vote's position is counted on the order's index, up to the track's own place.
    @Test func votePosition_isCountedOnTheIndexOfTheOrder() throws {
        let item = DJQueueItem(
            id: ID("i"), track: DJTrack(trackId: ID("t"), trackName: "n", artistName: "a", albumArt: nil),
            addedBy: ID("u"), addedAt: Self.moment, tally: DJTally())
        try Self.expectPlan(
            of: DJFeature.placesBefore(item, in: DJSession(shopId: ID("s1")), visibleTo: Self.scope),
            contains: "dj_tracks_order (tenant=? AND shop_id=? AND (rank_score,added_at,track_id)<")
    }

    @Test func ticks_readDueRowsOnly() throws {
        for (sql, index) in [
            (DJFeature.updatesTick.due?(Self.moment), "dj_tracks_unpublished"),
            (DJFeature.votesTick.due?(Self.moment), "dj_tracks_removed"),
            (DJFeature.presenceTick.due?(Self.moment), "presences_expiry"),
            (DJFeature.presenceTick.due?(Self.moment), "presence_attempts_age"),
            (
                NotificationsFeature.pruning.due?(Self.moment),
                "notifications_removed (tenant=? AND removed_at>? AND removed_at<?)"
            ),
            (
                NotificationsFeature.pruning.due?(Self.moment),
                "notifications_to_erase (tenant=? AND removed_at>? AND removed_at<?)"
            ),
            (ConversationsFeature.pruning.due?(Self.moment), "conversations_abandoned"),
            (RequestsFeature.pruning.due?(Self.moment), "user_requests_answered"),
            (ChangesFeature.pruning.due?(Self.moment), "change_deliveries_age (tenant=? AND created_at<?)"),
            (DJFeature.pruningVotes(tenant: "t"), "dj_tracks_removed"),
            (DJFeature.pruningVotes(tenant: "t"), "dj_votes_of_item (tenant=? AND item_id=?)"),
        ] { try Self.expectPlan(of: #require(sql), contains: index) }
    }
}
