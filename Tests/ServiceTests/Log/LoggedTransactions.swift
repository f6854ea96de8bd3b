import Database
import Realtime
import TestSupport
import Values

@testable import Service

/// A service, and the events that a test publishes in it, in the form in which its log must return them.
final class LoggedTransactions {
    /// An event that a transaction publishes.
    struct Draft: Sendable {
        var name: StaticString = "test:event"
        var audience: [String]
        var topic: String?
        var collapse: String?
        var shared: SharedMembers?
        var data = "{}"
    }

    let service: TestService
    private let tenant: ID<Tenant>
    /// The published events, in the order of their numbers.
    private(set) var events: [StreamEvent] = []
    /// The number before the first event.
    let start: Int64

    init(_ service: TestService, tenant: ID<Tenant> = "default") throws {
        (self.service, self.tenant) = (service, tenant)
        start = try service.app.store.read { try EventLog.newestSequence(in: $0) }
    }

    var newest: Int64 { start + Int64(events.count) }

    /// Publishes events in one transaction.
    func publish(_ drafts: [Draft]) async throws {
        let (runner, tenant) = (service.app.runner, tenant)
        try await service.app.store.write { db in
            try runner.write(as: .system(tenant: tenant), in: db) { tx in
                for draft in drafts {
                    tx.publish(
                        EventDraft(
                            tenant: tenant, name: draft.name.description, audience: draft.audience, topic: draft.topic,
                            collapse: draft.collapse, shared: draft.shared, data: Array(draft.data.utf8)))
                }
            }
        }
        for draft in drafts {
            events.append(
                StreamEvent(
                    sequence: newest + 1, tenant: tenant, name: draft.name.description, audience: draft.audience,
                    topic: draft.topic, collapse: draft.collapse.map { CollapseKey.of($0) } ?? 0,
                    data: SharedMembers.joined(draft.shared?.members, Array(draft.data.utf8))))
        }
    }

    /// Publishes up to `countMax` events in one transaction, with random audiences, topics, names and data.
    func publishAny(_ countMax: Int, random: inout SeededGenerator) async throws {
        let audiences = [["user:u1"], ["user:u2"], ["user:u1", "user:u2"], ["user:u2", "user:u1"]]
        let topics = [nil, nil, nil, "queue:s1", "queue:s2"]
        let names: [StaticString] = ["test:one", "test:two"]
        let shared = (0..<2).map { number in SharedMembers { $0.member("common", "text \(number)") } }
        var drafts: [Draft] = []
        for number in 0..<Int.random(in: 1...countMax, using: &random) {
            let text = String(repeating: "+1 0 é \u{1F600}-", count: Int.random(in: 0...3, using: &random))
            drafts.append(
                Draft(
                    name: names.randomElement(using: &random) ?? "test:one",
                    audience: audiences.randomElement(using: &random) ?? [],
                    topic: topics.randomElement(using: &random) ?? nil,
                    collapse: Bool.random(using: &random) ? "state\(number % 3)" : nil,
                    shared: ([nil] + shared).randomElement(using: &random) ?? nil,
                    data: #"{"number":\#(number),"text":"\#(text)"}"#))
        }
        try await publish(drafts)
    }

    /// Returns the events that a replay of these routes must find.
    func expected(
        of routes: [String], by keys: Set<String>, after: Int64, through: Int64, from oldest: Int64 = 0
    ) -> [StreamEvent] {
        events.filter { event in
            let own = event.topic.map { ["#" + $0] } ?? event.audience
            return event.sequence > after && event.sequence <= through && event.sequence >= oldest
                && !Set(own).isDisjoint(with: routes) && !keys.isDisjoint(with: event.audience)
        }
    }

    func replay(
        of routes: [String], by keys: Set<String>, after: Int64, through: Int64, limit: Int = 1000
    ) throws -> [StreamEvent]? {
        let topics = routes.filter { $0.hasPrefix("#") }.map { String($0.dropFirst()) }
        let wanted = EventRoutes(keys: Set(routes.filter { !$0.hasPrefix("#") }), topics: topics)
        return try service.app.store.read { db in
            try EventLog.replay(
                LogSpan(after: after, through: through), of: wanted, as: Scope(tenant: tenant, keys: keys),
                limit: limit, in: db)
        }
    }

    func following(_ sequence: Int64, limit: Int = 1000) throws -> (events: [StreamEvent], isAll: Bool) {
        try service.app.store.read { try EventLog.following(sequence, limit: limit, in: $0) }
    }

    func count(of table: Table) throws -> Int {
        try service.app.store.read { try $0.integer("SELECT count(*) FROM \(table, unscoped: .audit("a test"))") ?? 0 }
    }

    /// Prunes the log to `countMax` events.
    func prune(keeping countMax: Int) throws {
        let (now, retention) = (service.clock.now, EventLog.Retention(seconds: 1_000_000, countMax: countMax))
        _ = try service.app.store.writeAndWait { try EventLog.prune(AgeTime(now), retention, in: $0) }
    }

    /// Erases a person from all events.
    func erase(_ person: ID<User>) throws {
        let (tenant, newest) = (tenant, newest)
        var place: Int64? = 0
        while let after = place {
            place = try service.app.store.writeAndWait {
                try EventLog.erase(PersonNames(person), tenant: tenant, after: after, through: newest, in: $0)
            }
        }
    }
}
