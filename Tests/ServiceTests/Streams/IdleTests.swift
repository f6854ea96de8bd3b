import Database
import Logging
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// An idle service makes few queries and writes nothing.
@Suite(.timed) struct IdleTests {
    /// Periodic jobs with intervals of minutes check first whether there is work.
    @Test func everyTick_checksBeforeItWrites() {
        for tick in Catalog.features().flatMap(\.ticks) where tick.everySeconds < 600 {
            #expect(tick.due != nil, "\(tick.name)")
        }
    }

    /// Users have been active, but nothing has expired.
    @Test func noTickIsDue_beforeItsTime() async throws {
        let service = try TestService.start(LevelStory.settings, at: LevelStory.moment)
        // The rules by age run once the time is proven.
        service.clock.advance(seconds: 7200)
        try await service.notify(NotificationsTests.draft("news", to: "ada"))
        try await service.send("hello", to: try await service.converse("ben", "ada"), as: "ben")
        try await service.post("ben", "New in town")
        service.clock.advance(seconds: 60)
        // The audit log has one entry for the calls of the ended minute.
        try await service.run(AuditFeature.endingMinutes)
        for tick in Catalog.features().flatMap(\.ticks) where tick.everySeconds < 600 {
            #expect(try !service.isDue(tick), "\(tick.name)")
        }
    }
    /// Work of one tenant costs the others nothing, not even a transaction each.
    @Test func tick_visitsOnlyTenantsWithWork() async throws {
        let service = try TestService.start()
        for tenant in ["a", "b", "c"] as [ID<Tenant>] {
            try service.app.store.writeAndWait { [runner = service.app.runner] db in
                try runner.tenants.note(tenant, in: db)
            }
        }
        let visited = Locked([ID<Tenant>]())
        let tick = Tick(
            name: "test", everySeconds: 1, due: { _ in "SELECT 'b' AS tenant UNION ALL SELECT 'b'" },
            body: { tx in visited.withLock { $0.append(tx.tenant) } })
        let ticker = Ticker(
            runner: service.app.runner, ticks: [tick], sweeps: [], longWork: [], prunings: [],
            logger: Logger(label: "test"))
        ticker.start()
        defer { ticker.stop() }
        for round in 1...2 {
            service.clock.advance(seconds: 1)
            try await eventually("the tick has run") { visited.withLock { $0.count } >= round }
        }
        #expect(visited.withLock { $0 } == ["b", "b"])
    }
}
