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

    /// Two streams of a user share all keys, in another order, and a third one only some of them.
    @Test func wideStream_leaves_andTheOthersStay() {
        let keys = (0..<300).map { "team:\($0)" }
        for first: Int32 in 0..<3 {
            var hub = Hub()
            hub.join(0, tenant: "a", scope: keys, topics: ["q"])
            hub.join(1, tenant: "a", scope: keys.reversed(), topics: [])
            hub.join(2, tenant: "a", scope: ["team:7", "team:250"], topics: ["q"])
            let rest = (0..<3).filter { $0 != first }
            hub.leave(first)
            for key in keys {
                let holders = rest.filter { $0 < 2 || ["team:7", "team:250"].contains(key) }
                #expect(matches(&hub, event("a", [key])) == holders, "\(key) without \(first)")
            }
            for slot in rest { hub.leave(slot) }
            #expect(hub.keyNumbers.isEmpty)
        }
    }

    @Test func eventsReachTheStreamsThatMaySeeThem_underAnySchedule() {
        let runs = effort(quick: 20_000, full: 20_000, long: 1_000_000)
        let failure = Schedule.failure(seed: randomSeed(), runs: runs) { HubSimulation.run($0) }
        #expect(failure == nil, "\(failure ?? "")")
    }
}

/// A hub and a naive model of its matching rule, which receive the same operations: streams join, change and leave.
///
/// Invariant: an event reaches each stream of its tenant once, if the stream's scope has a key of the audience, and if
/// it has subscribed to the event's topic.
private struct HubSimulation {
    private struct Stream {
        var tenant: ID<Tenant>
        var scope: Set<String>
        var topics: Set<ID<Hub>>
    }

    /// Includes two tenants that look alike: é composed, and é decomposed.
    private static let tenants: [ID<Tenant>] = ["a", "\u{E9}", "e\u{301}"]
    private static let keys = ["user:1", "user:2", "everyone", "queue:1"]
    private static let topics = ["queue:1", "user:1", "queue:\u{212A}", "queue:K"]
    private static let slots = 6

    private let schedule: Schedule
    private var hub = Hub()
    private var streams: [Int32: Stream] = [:]

    private init(_ schedule: Schedule) { self.schedule = schedule }

    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule) -> String? {
        var simulation = HubSimulation(schedule)
        for _ in 0..<schedule.count(8...31) {
            schedule.step()
            simulation.act()
            if let failure = simulation.failure() { return failure }
        }
        schedule.step()
        for slot in simulation.streams.keys.sorted() { simulation.leave(slot) }
        return simulation.hub.keyNumbers.isEmpty ? nil : "keys stay without streams"
    }

    private func one<Element>(of all: [Element]) -> Element { all[schedule.number(all.count)] }

    private func some(of all: [String]) -> [String] { (0..<schedule.number(4)).map { _ in one(of: all) } }

    private mutating func act() {
        let slot = Int32(schedule.number(Self.slots))
        guard streams[slot] != nil else { return join(slot) }
        switch schedule.number(8) {
        case 0: leave(slot)
        case 1: replaceTopics(slot)
        case 2, 3: add(slot)
        case 4, 5: remove(slot)
        case 6: addSome(slot)
        default: replaceScope(slot)
        }
    }

    private mutating func join(_ slot: Int32) {
        let (tenant, scope, topics) = (one(of: Self.tenants), some(of: Self.keys), some(of: Self.topics))
        hub.join(slot, tenant: tenant, scope: scope, topics: topics)
        streams[slot] = Stream(tenant: tenant, scope: Set(scope), topics: Set(topics.map { ID($0) }))
        schedule.tell("stream \(slot) of \(tenant) joins with the scope \(scope) and the topics \(topics)")
    }

    private mutating func leave(_ slot: Int32) {
        hub.leave(slot)
        streams[slot] = nil
        schedule.tell("stream \(slot) leaves")
    }

    private mutating func replaceTopics(_ slot: Int32) {
        let topics = some(of: Self.topics)
        hub.replaceTopics(of: slot, with: topics)
        streams[slot]?.topics = Set(topics.map { ID($0) })
        schedule.tell("stream \(slot) has the topics \(topics)")
    }

    private mutating func replaceScope(_ slot: Int32) {
        let scope = some(of: Self.keys)
        hub.replaceScope(of: slot, with: scope)
        streams[slot]?.scope = Set(scope)
        schedule.tell("stream \(slot) has the scope \(scope)")
    }

    private mutating func add(_ slot: Int32) {
        let key = one(of: Self.keys)
        hub.add(key, toScopeOf: slot)
        streams[slot]?.scope.insert(key)
        schedule.tell("stream \(slot) gains the key \(key)")
    }

    private mutating func addSome(_ slot: Int32) {
        let keys = some(of: Self.keys)
        hub.add(keys, toScopeOf: slot)
        streams[slot]?.scope.formUnion(keys)
        schedule.tell("stream \(slot) gains the keys \(keys)")
    }

    private mutating func remove(_ slot: Int32) {
        let key = one(of: Self.keys)
        hub.remove(key, fromScopeOf: slot)
        streams[slot]?.scope.remove(key)
        schedule.tell("stream \(slot) loses the key \(key)")
    }

    /// Sends an event to the hub and to the model.
    private mutating func failure() -> String? {
        let topic = schedule.number(2) == 0 ? nil : one(of: Self.topics)
        let event = StreamEvent(
            sequence: 1, tenant: one(of: Self.tenants), name: "n", audience: some(of: Self.keys), topic: topic, data: []
        )
        let expected = streams.filter { _, stream in
            stream.tenant == event.tenant && !stream.scope.isDisjoint(with: event.audience)
                && topic.map { stream.topics.contains(ID($0)) } ?? true
        }.keys.sorted()
        var found: [Int32] = []
        hub.forEachMatch(event) { found.append($0) }
        guard found.sorted() == expected else {
            return
                "an event of \(event.tenant) for \(event.audience), topic \(topic ?? "-"), reaches \(found.sorted()), "
                + "not \(expected)"
        }
        for (slot, stream) in streams.sorted(by: { $0.key < $1.key }) {
            if Set(hub.scope(of: slot)) != stream.scope { return "stream \(slot) has the scope \(hub.scope(of: slot))" }
            if Set(hub.topics(of: slot).map { ID($0) }) != stream.topics {
                return "stream \(slot) has the topics \(hub.topics(of: slot))"
            }
        }
        return (0..<Int32(Self.slots)).allSatisfy { hub.contains($0) == (streams[$0] != nil) }
            ? nil : "the hub has other streams"
    }
}
