import Realtime
import TestSupport
import Testing

@Suite struct HubTests {
    private func event(_ tenant: String, _ audience: [String], topic: String? = nil) -> StreamEvent {
        StreamEvent(sequence: 1, tenant: tenant, name: "n", audience: audience, topic: topic, data: [])
    }

    private func matches(_ hub: inout Hub, _ event: StreamEvent) -> [Int32] {
        var slots: [Int32] = []
        hub.forEachMatch(event) { slots.append($0) }
        return slots.sorted()
    }

    /// SCH EC10: each stream of a user is independent. SCH FR-013: the tenant comes first.
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

    /// A topic that is spelled as a key must not open that key's events, nor the other way round.
    @Test func topicAndScopeKey_ofTheSameSpelling_areDifferent() {
        var hub = Hub()
        hub.join(0, tenant: "a", scope: ["user:1"], topics: ["user:2"])
        #expect(matches(&hub, event("a", ["user:2"])) == [])
        #expect(matches(&hub, event("a", ["user:1"], topic: "user:1")) == [])
    }

    @Test func replacingTopics_isAtomic_andKeepsTheScope() {
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

    /// SCH FR-002: all state of a stream is freed on disconnect.
    @Test func leaving_freesEverything() {
        var hub = Hub()
        for slot in 0..<100 {
            hub.join(Int32(slot), tenant: "t\(slot % 3)", scope: ["user:\(slot)", "everyone"], topics: ["q"])
        }
        for slot in 0..<100 { hub.leave(Int32(slot)) }
        #expect(hub.streamCount == 0)
        #expect(hub.keyCount == 0)
        hub.join(5, tenant: "t1", scope: ["user:5"], topics: [])
        #expect(matches(&hub, event("t1", ["user:5", "everyone"])) == [5])
    }

    /// Random joins, leaves and replacements against the plain statement of the rule, over all streams.
    @Test func randomOperations_matchThePlainRule() {
        struct Model {
            var tenant: String, scope: Set<String>, topics: Set<String>
        }
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        var hub = Hub()
        var model: [Int32: Model] = [:]
        let tenants = ["a", "b"]
        let keys = ["user:1", "user:2", "user:3", "everyone", "shop:1:staff", "queue:1", "tenant:service"]
        let topics = ["queue:1", "queue:2", "user:1", "everyone"]
        func some(_ all: [String]) -> [String] {
            (0..<Int.random(in: 0...4, using: &random)).map { _ in all.randomElement(using: &random)! }
        }
        for step in 0..<20_000 {
            let slot = Int32.random(in: 0..<40, using: &random)
            if model[slot] == nil {
                let (tenant, scope, named) = (tenants.randomElement(using: &random)!, some(keys), some(topics))
                hub.join(slot, tenant: tenant, scope: scope, topics: named)
                model[slot] = Model(tenant: tenant, scope: Set(scope), topics: Set(named))
            } else {
                switch Int.random(in: 0..<7, using: &random) {
                case 3, 4:
                    let key = keys.randomElement(using: &random)!
                    hub.add(key, toScopeOf: slot)
                    model[slot]!.scope.insert(key)
                case 5, 6:
                    let key = keys.randomElement(using: &random)!
                    hub.remove(key, fromScopeOf: slot)
                    model[slot]!.scope.remove(key)
                case 0:
                    hub.leave(slot)
                    model[slot] = nil
                case 1:
                    let named = some(topics)
                    hub.replaceTopics(of: slot, with: named)
                    model[slot]!.topics = Set(named)
                default:
                    let scope = some(keys)
                    hub.replaceScope(of: slot, with: scope)
                    model[slot]!.scope = Set(scope)
                }
            }
            let topic = Bool.random(using: &random) ? topics.randomElement(using: &random)! : nil
            let event = event(tenants.randomElement(using: &random)!, some(keys), topic: topic)
            let expected = model.filter { _, stream in
                stream.tenant == event.tenant && !stream.scope.isDisjoint(with: event.audience)
                    && (topic == nil || stream.topics.contains(topic!))
            }.keys.sorted()
            #expect(matches(&hub, event) == expected, "seed \(seed), step \(step)")
            if let known = model[slot] {
                #expect(Set(hub.scope(of: slot)) == known.scope)
                #expect(Set(hub.topics(of: slot)) == known.topics)
            }
        }
        #expect(hub.streamCount == model.count)
    }
}
