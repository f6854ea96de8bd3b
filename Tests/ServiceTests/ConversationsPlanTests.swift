import Database
import Domain
import Rows
import Testing
import Values

@testable import Service

/// Holds each index of conversations and requests to its purpose: no statement looks at more than what it is about.
@Suite struct ConversationsPlanTests {
    private static let scope = Scope(tenant: "t", keys: ["user:u1", "everyone"])

    private static func plan(_ sql: SQL) throws -> String {
        let store = try Store.open(DatabaseURL("sqlite::memory:"))
        defer { store.close() }
        try store.migrate(ConversationsFeature.migrations + RequestsFeature.migrations)
        return try store.read { try $0.queryPlan(sql) }.joined(separator: "\n")
    }

    /// From the caller's own places, never from all conversations of the tenant; they are put in order, and bounded.
    @Test(arguments: [false, true])
    func list_startsFromTheCallersPlaces(_ onlyUnread: Bool) throws {
        let plan = try Self.plan(
            ConversationsFeature.listing(
                of: ID("u1"), onlyUnread: onlyUnread, after: "x", limit: 20, visibleTo: Self.scope))
        #expect(plan.contains("SEARCH conversation_members USING PRIMARY KEY (tenant=? AND user_id=?)"), "\(plan)")
        #expect(plan.contains("SEARCH conversations USING INDEX"), "\(plan)")
        #expect(plan.contains("(tenant=? AND id=?)"), "\(plan)")
        #expect(!plan.contains("SCAN"), "\(plan)")
    }

    @Test(arguments: [(Int?.some(9), Int?.none), (nil, 9), (nil, nil)])
    func messages_areWalkedInTheirOrder(_ before: Int?, _ after: Int?) throws {
        let plan = try Self.plan(
            ConversationsFeature.messages(
                in: ID("c"), before: before, after: after, limit: 20, visibleTo: Self.scope))
        #expect(plan.contains("SEARCH messages USING PRIMARY KEY (tenant=? AND conversation_id=?"), "\(plan)")
        #expect(
            plan.contains("SEARCH _held USING PRIMARY KEY (tenant=? AND user_id=? AND conversation_id=?)"), "\(plan)")
        #expect(!plan.contains("SCAN"), "\(plan)")
        #expect(!plan.contains("TEMP B-TREE"), "\(plan)")
    }

    /// What a move passes is counted by two indexes; no message is read.
    @Test func excludedMessages_areCountedWithoutTheMessages() throws {
        let plan = try Self.plan(
            ConversationsFeature.countExcluded(in: 1...9, of: ID("u1"), in: ID("c"), tenant: "t"))
        #expect(plan.contains("COVERING INDEX messages_own"), "\(plan)")
        #expect(plan.contains("COVERING INDEX messages_deleted"), "\(plan)")
        #expect(!plan.contains("SCAN messages"), "\(plan)")
    }

    @Test func forgetting_looksAtWhatIsDue() throws {
        let before = Timestamp(microseconds: 1)
        let abandoned = try Self.plan(ConversationsFeature.abandonment(tenant: "t", before: before))
        #expect(abandoned.contains("conversations_abandoned"), "\(abandoned)")
        let answered = try Self.plan(RequestsFeature.pruning(tenant: "t", before: before))
        #expect(answered.contains("user_requests_answered"), "\(answered)")
        #expect(!answered.contains("SCAN user_requests"), "\(answered)")
    }

    @Test(arguments: [(false, "user_requests_incoming"), (true, "user_requests_outgoing")])
    func requests_areWalkedInTheirOrder(_ isOutgoing: Bool, _ index: String) throws {
        let plan = try Self.plan(
            RequestsFeature.listing(
                of: ID("u1"), RequestsFeature.Filter(isOutgoing: isOutgoing), after: "x", limit: 20,
                visibleTo: Self.scope))
        #expect(plan.contains("SEARCH user_requests USING INDEX \(index)"), "\(plan)")
        #expect(!plan.contains("SCAN"), "\(plan)")
        #expect(!plan.contains("TEMP B-TREE"), "\(plan)")
    }
}
