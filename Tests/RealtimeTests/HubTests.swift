import TestSupport
import Testing
import Values

@testable import Realtime

@Suite(.timed) struct HubTests {
    private func event(_ tenant: ID<Tenant>, _ audience: [String], topic: String? = nil) -> StreamEvent {
        StreamEvent(sequence: 1, tenant: tenant, name: "n", audience: audience, topic: topic, data: [])
    }

    private func matches(_ hub: inout Hub, _ event: StreamEvent) -> [Int32] {
        var slots: [Int32] = []
        hub.forEachMatch(event) { slots.append($0) }
        return slots.sorted()
    }

    /// R-SCH-EC10: the streams of one user are independent. R-SCH-FR-013: events never cross tenants.
    @Test func personalEvent_reachesEachStreamOfItsAudience_once() {
        var hub = Hub()
        hub.join(0, tenant: "a", scope: ["user:1", "everyone"], topics: [])
        hub.join(1, tenant: "a", scope: ["user:1", "everyone"], topics: [])
        hub.join(2, tenant: "a", scope: ["user:2", "everyone"], topics: [])
        hub.join(3, tenant: "b", scope: ["user:1", "everyone"], topics: [])
        #expect(matches(&hub, event("a", ["user:1"])) == [0, 1])
        #expect(matches(&hub, event("a", ["user:1", "everyone", "user:1"])) == [0, 1, 2])
        #expect(matches(&hub, event("b", ["user:1"])) == [3])
        #expect(matches(&hub, event("c", ["everyone"])) == [])
        #expect(matches(&hub, event("a", [])) == [])
    }

    @Test func topicEvent_needsTheTopic_andTheScope() {
        var hub = Hub()
        hub.join(0, tenant: "a", scope: ["user:1", "shop:s:staff"], topics: ["queue:s"])
        hub.join(1, tenant: "a", scope: ["user:2"], topics: ["queue:s"])
        hub.join(2, tenant: "a", scope: ["user:3", "shop:s:staff"], topics: [])
        hub.join(3, tenant: "b", scope: ["shop:s:staff"], topics: ["queue:s"])
        #expect(matches(&hub, event("a", ["shop:s:staff"], topic: "queue:s")) == [0])
        #expect(matches(&hub, event("a", ["shop:s:staff"])) == [0, 2])
        #expect(matches(&hub, event("a", ["user:2", "user:3"], topic: "queue:s")) == [1])
    }

    /// A topic spelled like a scope key must not receive that key's events, and vice versa.
    @Test func topicAndScopeKey_ofTheSameSpelling_areDifferent() {
        var hub = Hub()
        hub.join(0, tenant: "a", scope: ["user:1"], topics: ["user:2"])
        #expect(matches(&hub, event("a", ["user:2"])) == [])
        #expect(matches(&hub, event("a", ["user:1"], topic: "user:1")) == [])
    }

    @Test func replacingTopics_isAtomic_andLeavesTheScope() {
        var hub = Hub()
        hub.join(0, tenant: "a", scope: ["everyone"], topics: ["queue:1", "queue:2"])
        hub.replaceTopics(of: 0, with: ["queue:2", "queue:3", "queue:3"])
        #expect(hub.topics(of: 0) == ["queue:2", "queue:3"])
        #expect(hub.scope(of: 0) == ["everyone"])
        #expect(matches(&hub, event("a", ["everyone"], topic: "queue:1")) == [])
        #expect(matches(&hub, event("a", ["everyone"], topic: "queue:2")) == [0])
        hub.replaceScope(of: 0, with: ["user:9"])
        #expect(matches(&hub, event("a", ["everyone"], topic: "queue:2")) == [])
        #expect(matches(&hub, event("a", ["user:9"], topic: "queue:3")) == [0])
    }

    /// R-SCH-FR-002: a disconnect frees all state of the stream.
    @Test func leaving_freesEverything() {
        var hub = Hub()
        for slot in 0..<100 {
            hub.join(Int32(slot), tenant: ID("t\(slot % 3)"), scope: ["user:\(slot)", "everyone"], topics: ["q"])
        }
        for slot in 0..<100 { hub.leave(Int32(slot)) }
        #expect((0..<100).allSatisfy { !hub.contains($0) })
        #expect(hub.keyNumbers.isEmpty)
        hub.join(5, tenant: "t1", scope: ["user:5"], topics: [])
        #expect(matches(&hub, event("t1", ["user:5", "everyone"])) == [5])
    }

    /// A hub and a naive model of its matching rule, which receive the same operations.
    private struct Pair {
        struct Stream {
            var tenant: ID<Tenant>, scope: Set<String>, topics: Set<ID<Hub>>
        }

        /// Includes two tenants that look alike: é composed, and é decomposed.
        static let tenants: [ID<Tenant>] = ["a", "b", "\u{E9}", "e\u{301}"]
        static let keys = ["user:1", "user:2", "user:3", "everyone", "shop:1:staff", "queue:1", "tenant:service"]
        static let topics = ["queue:1", "queue:2", "user:1", "everyone", "queue:\u{212A}", "queue:K"]

        var hub = Hub()
        var streams: [Int32: Stream] = [:]
        var random: SeededGenerator

        mutating func one<Element>(of all: [Element]) -> Element { all.randomElement(using: &random)! }

        mutating func some(of all: [String]) -> [String] {
            (0..<Int.random(in: 0...4, using: &random)).map { _ in one(of: all) }
        }

        mutating func join(_ slot: Int32) {
            let (tenant, scope, topics) = (one(of: Self.tenants), some(of: Self.keys), some(of: Self.topics))
            hub.join(slot, tenant: tenant, scope: scope, topics: topics)
            streams[slot] = Stream(tenant: tenant, scope: Set(scope), topics: Set(topics.map { ID($0) }))
        }

        mutating func change(_ slot: Int32) {
            switch Int.random(in: 0..<7, using: &random) {
            case 3, 4:
                let key = one(of: Self.keys)
                hub.add(key, toScopeOf: slot)
                streams[slot]?.scope.insert(key)
            case 5, 6:
                let key = one(of: Self.keys)
                hub.remove(key, fromScopeOf: slot)
                streams[slot]?.scope.remove(key)
            case 0:
                hub.leave(slot)
                streams[slot] = nil
            case 1:
                let topics = some(of: Self.topics)
                hub.replaceTopics(of: slot, with: topics)
                streams[slot]?.topics = Set(topics.map { ID($0) })
            default:
                let scope = some(of: Self.keys)
                hub.replaceScope(of: slot, with: scope)
                streams[slot]?.scope = Set(scope)
            }
        }
    }

    /// Compares random joins, leaves and replacements with the naive model, which scans all streams.
    @Test func randomOperations_matchThePlainRule() {
        let seed = randomSeed()
        var pair = Pair(random: SeededGenerator(seed: seed))
        for step in 0..<effort(quick: 4_000, full: 20_000, long: 200_000) {
            let slot = Int32.random(in: 0..<40, using: &pair.random)
            if pair.streams[slot] == nil { pair.join(slot) } else { pair.change(slot) }
            let topic = Bool.random(using: &pair.random) ? pair.one(of: Pair.topics) : nil
            let event = event(pair.one(of: Pair.tenants), pair.some(of: Pair.keys), topic: topic)
            let expected = pair.streams.filter { _, stream in
                stream.tenant == event.tenant && !stream.scope.isDisjoint(with: event.audience)
                    && topic.map { stream.topics.contains(ID($0)) } ?? true
            }.keys.sorted()
            #expect(matches(&pair.hub, event) == expected, "seed \(seed), step \(step)")
            if let known = pair.streams[slot] {
                #expect(Set(pair.hub.scope(of: slot)) == known.scope)
                #expect(Set(pair.hub.topics(of: slot).map { ID($0) }) == known.topics)
            }
        }
        #expect((Int32(0)..<40).filter(pair.hub.contains) == pair.streams.keys.sorted())
    }
}
