import Foundation
import TestSupport
import Testing

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
}
