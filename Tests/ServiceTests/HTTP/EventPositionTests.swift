import BellhopClient
import Database
import Realtime
import TestSupport
import Testing
import Values

@testable import Service

/// An initial load and the events received after it fit together without a gap.
@Suite(.timed) struct EventPositionTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// While others write, a list plus the events after its position equals the later list: no item is missing or
    /// occurs twice.
    @Test func listAndLaterEvents_equalALaterList() async throws {
        let writers = Task { [service] in
            try await concurrently(Array(0..<60)) { number in
                try await service.notify(NotificationsTests.draft("news", number.isMultiple(of: 3) ? .high : .low))
            }
        }
        var loaded: [(ids: [String], position: String)] = []
        repeat {
            let list = try await service.call("GET", "/v1/notifications?state=all&limit=100", as: .user("u1"))
            loaded.append((list.items.reversed().compactMap { $0["id"].string }, try position(of: list)))
        } while loaded.last?.ids.count != 60
        #expect(try await writers.value.allSatisfy { $0.status == 201 })
        try await service.notify(NotificationsTests.draft("end"))
        let final = try await service.all(of: "u1").map(\.id)
        #expect(final.count == 61)
        for (ids, position) in loaded {
            let stream = try await service.listen(as: .user("u1"), lastEventID: position)
            while try await stream.next("notification:created").json["id"].string != final.last {}
            let created = stream.received.filter { $0.name == "notification:created" }
            let state = ids + created.compactMap { $0.json["id"].string }
            #expect(state.sorted() == final.sorted())
            stream.close()
        }
    }

    /// Each state names its position, whether it was read with one statement or several, and also if it is empty.
    @Test(arguments: [
        "badges", "badges?include=conversations", "notifications", "conversations", "preferences", "feed",
    ])
    func everyState_carriesItsEventPosition(path: String) async throws {
        let stream = try await service.listen(as: .user("u1"))
        try await service.notify(NotificationsTests.draft("news"))
        let newest = try await stream.next("badges:update").id
        let answer = try await service.call("GET", "/v1/\(path)", as: .user("u1"))
        #expect(answer.status == 200)
        #expect(try position(of: answer) == newest)
    }

    // MARK: Tenants

    private static func badges(_ service: TestService, of tenant: String?) async throws -> ServiceAnswer {
        try await service.call("GET", "/v1/badges", as: .user("ada", tenant: tenant))
    }

    private static func publishEvents(_ count: Int, in service: TestService, of tenant: String) async throws {
        for _ in 0..<count {
            let id = "e\(UInt64.random(in: 0...UInt64.max))"
            try await service.publish(id, to: "eve", tenant: tenant)
        }
    }

    /// Attack: a user compares positions over time. Harm: they show when other tenants are active.
    @Test(arguments: [false, true]) func positions_doNotTellWhetherOtherTenantsAreActive(onServer: Bool) async throws {
        let (service, other) = try onServer ? TestService.startReplicas() : (service, service)
        try await Self.publishEvents(1, in: service, of: "default")
        // Also the events of another replica, and events that this one has not published yet, are another tenant's.
        let before = try await service.position(as: .user("ada"))
        let paths = ["badges", "notifications", "conversations", "preferences", "feed"]
        for round in 0..<effort(quick: 4, full: 10, long: 100) {
            try await Self.publishEvents(2, in: round.isMultiple(of: 2) ? other : service, of: "other")
            for path in paths {
                let answer = try await service.call("GET", "/v1/\(path)", as: .user("ada"))
                #expect(try position(of: answer) == before, "\(path)")
            }
            #expect(try await service.position(as: .user("ada")) == before)
        }
        // An event of the own tenant, for any user, is a new position.
        try await Self.publishEvents(1, in: other, of: "default")
        let after = try position(of: await Self.badges(service, of: nil))
        #expect(after != before)
        let theirs = try position(of: await Self.badges(service, of: "other"))
        #expect(theirs != after && theirs != before)
    }

    /// A quiet tenant's position is older than all events that the log still stores, and nothing of it is missed.
    @Test(arguments: [false, true])
    func positionOfAQuietTenant_isResumed_afterItsEventIsPruned(onServer: Bool) async throws {
        let service = try onServer ? TestService.startReplicas().0 : service
        try await Self.publishEvents(1, in: service, of: "default")
        let position = try position(of: await Self.badges(service, of: nil))
        let number = try service.app.store.read { try EventLog.newestSequence(in: $0) }
        try await Self.publishEvents(1, in: service, of: "other")
        service.clock.advance(seconds: 25 * 3600)
        try await Self.publishEvents(2, in: service, of: "other")
        try await eventually("the old events are pruned") {
            try service.app.store.read { try EventLog.oldestSequence(in: $0) } > number + 1
        }
        let stream = try await service.listen(as: .user("eve"), lastEventID: position)
        try await Self.publishEvents(1, in: service, of: "default")
        try await stream.next("badges:update")
        #expect(!stream.received.contains { $0.name == "stream:resync" })
        // An earlier position of the same tenant is a gap.
        let earlier = service.app.runner.reader.log.ids.cursor(number - 1).text
        let late = try await service.listen(as: .user("eve"), lastEventID: earlier)
        #expect(try await late.next("stream:resync").json["reason"] == "gap")
    }

    /// The position in a snapshot is the newest event of the tenant in it, whatever was known before.
    @Test func positionInASnapshot_isTheNewestEventOfTheTenantInIt() {
        let ids = EventIDs(epoch: "e", key: Array(repeating: 1, count: 16))
        var random = SeededGenerator(seed: 11)
        for _ in 0..<effort(quick: 2_000, full: 20_000, long: 200_000) {
            let tenants: [ID<Tenant>] = ["a", "b", "c"]
            let events = (1...Int64(Int.random(in: 1...40, using: &random))).map { sequence in
                Self.event(sequence, of: tenants.randomElement(using: &random)!)
            }
            let start = Int.random(in: 0...events.count, using: &random)
            let head = Int.random(in: start...events.count, using: &random)
            let newest = Int.random(in: head...events.count, using: &random)
            // The query may be that of another caller, which knew less.
            let asked = Int.random(in: start...head, using: &random)
            let positions = TenantPositions(head: Int64(start), ids: ids)
            positions.note(Array(events[start..<head]))
            var records = events[asked..<newest].map { (Int($0.event.sequence), $0.event.tenant.text) }
            records.append((asked, ""))
            records.shuffle(using: &random)
            for tenant in tenants {
                let known = positions.known(of: tenant)
                let found = EventLog.position(of: tenant, known: known, in: records)
                let own = events[start..<newest].last { $0.event.tenant == tenant }?.event.sequence
                #expect(found == own ?? Int64(start))
                #expect(positions.position(of: tenant, upTo: Int64(head), in: ids) == known.position)
            }
        }
    }

    /// A position that is not the tenant's own is still exact: it is not after an event of the tenant that the snapshot
    /// lacks, and not before one that it contains.
    @Test func positionOfALaggingReplica_isExact() {
        let ids = EventIDs(epoch: "e", key: Array(repeating: 1, count: 16))
        let positions = TenantPositions(head: 10, ids: ids)
        positions.note([Self.event(11, of: "a"), Self.event(12, of: "b")])
        let known = positions.known(of: "a")
        let many = (100..<164).map { (number: $0, text: "b") } + [(number: 12, text: "")]
        #expect(EventLog.position(of: "a", known: known, in: many) == 100)
        // Another caller's query began at a later head, before which this caller knows nothing.
        #expect(EventLog.position(of: "a", known: known, in: [(20, "")]) == 20)
        #expect(EventLog.position(of: "a", known: known, in: [(20, ""), (21, "a"), (22, "b")]) == 21)
    }

    @Test func positions_areBounded_andBeginAgainWithTheLog() {
        let (ids, others) = (
            EventIDs(epoch: "e", key: Array(repeating: 1, count: 16)),
            EventIDs(epoch: "f", key: Array(repeating: 2, count: 16))
        )
        let positions = TenantPositions(head: 0, ids: ids)
        positions.note((1...Int64(TenantPositions.tenantsMax)).map { Self.event($0, of: ID("t\($0)")) })
        #expect(positions.known(of: "t7").position == 7)
        let last = Int64(TenantPositions.tenantsMax) + 1
        positions.note([Self.event(last, of: "one more")])
        #expect(positions.known(of: "t7").position == last)
        // A shard that has not handled the newest events yet, and one that still serves another log.
        #expect(positions.position(of: "t7", upTo: 9, in: ids) == 9)
        #expect(positions.position(of: "t7", upTo: last + 5, in: others) == last + 5)
        positions.restart(after: 3, ids: others)
        let known = positions.known(of: "t7")
        #expect(known.position == 3 && known.head == 3 && known.ids.epoch == "f")
    }

    private static func event(_ sequence: Int64, of tenant: ID<Tenant>) -> LoggedEvent {
        LoggedEvent(
            event: StreamEvent(
                sequence: sequence, tenant: tenant, name: "test:event", audience: ["everyone"], topic: nil, collapse: 0,
                data: []))
    }

    private func position(of answer: ServiceAnswer) throws -> String {
        try #require(answer[header: "Event-Position"])
    }
}
