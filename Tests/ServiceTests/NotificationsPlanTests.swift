import Database
import Domain
import Rows
import Testing
import Values

@testable import Service

/// Holds each index of the notifications to its purpose: a statement that scans the table costs every user for all.
@Suite struct NotificationsPlanTests {
    static func plan(_ sql: SQL) throws -> String {
        let store = try Store.open(DatabaseURL("sqlite::memory:"))
        defer { store.close() }
        try store.migrate(NotificationsFeature.migrations)
        return try store.read { try $0.queryPlan(sql) }.joined(separator: "\n")
    }

    @Test(arguments: [nil, NotificationsFeature.ListState.unseen, .unread, .archived, .all])
    func list_walksTheIndexOfWhatIsKept_inOrder(_ state: NotificationsFeature.ListState?) throws {
        let plan = try Self.plan(
            NotificationsFeature.listing(
                of: ID("u1"), NotificationsFeature.Filter(category: .visit, priority: .high, state: state), after: "x",
                limit: 20, visibleTo: Scope(tenant: "t", keys: ["user:u1", "everyone"])))
        #expect(plan.contains("SEARCH notifications USING INDEX notifications_kept"), "\(plan)")
        #expect(!plan.contains("SCAN"), "\(plan)")
        #expect(!plan.contains("TEMP B-TREE"), "\(plan)")
    }

    @Test func eviction_looksAtOneUsersRows() throws {
        let plan = try Self.plan(
            NotificationsFeature.eviction(of: ID("u1"), tenant: "t", at: Timestamp(microseconds: 1)))
        #expect(!plan.contains("SCAN"), "\(plan)")
        #expect(plan.contains("notifications_kept (tenant=? AND user_id=? AND id=?)"), "\(plan)")
    }

    @Test func forgetting_looksAtWhatIsDue() throws {
        let before = Timestamp(microseconds: 1)
        let erasure = try Self.plan(NotificationsFeature.erasure(tenant: "t", before: before))
        #expect(erasure.contains("notifications_to_erase"), "\(erasure)")
        let forgetting = try Self.plan(NotificationsFeature.pruning(tenant: "t", before: before))
        #expect(forgetting.contains("notifications_removed"), "\(forgetting)")
        for plan in [erasure, forgetting] {
            #expect(plan.contains("notifications_events (tenant=? AND user_id=? AND event_id=?)"), "\(plan)")
            #expect(!plan.contains("SCAN notifications"), "\(plan)")
        }
    }
}
