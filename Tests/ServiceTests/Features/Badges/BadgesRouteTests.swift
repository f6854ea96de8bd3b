import BellhopClient
import TestSupport
import Testing

/// R-CNT-G3, R-CNT-COUNTS-1, R-CNT-RT-3, R-CNT-D-1 over real HTTP.
@Suite(.timed) struct BadgesRouteTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    @Test func counts_areReadInOneCall_withAGrowingVersion() async throws {
        let none = try await service.client("u1").getBadges()
        #expect(none.status == 200)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
        try await service.publish(NotificationsTests.event("a"))
        let one = try await service.client("u1").getBadges().value.version
        try await service.publish(NotificationsTests.event("b"))
        let two = try await service.client("u1").getBadges().value.version
        #expect(one < two)
        #expect(try await service.badges(of: "u1") == [0, 0, 2, 2])
    }

    @Test func badges_includeConversations_onRequest() async throws {
        let with = try await service.client("u1").getBadges(include: .conversations)
        #expect(with.value.conversations == [])
        let without = try await service.client("u1").getBadges()
        #expect(without.value.conversations == nil)
        #expect(try await status(of: await service.client("u1").getBadges(include: .init(rawValue: "all"))) == 422)
    }

    /// R-CNT-AC-4: what a user reads on one device is read on the other.
    @Test func twoDevicesOfAUser_seeTheSameCounts() async throws {
        let other = try await service.listen(as: .user("u1"))
        let id = try await service.publish(NotificationsTests.event("a")).notificationID
        #expect(try await other.next("badges:update").json["bell"] == 1)
        try await service.client("u1").changeNotification(id: id, .init(read: true))
        #expect(try await other.next("badges:update").json["bell"] == 0)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
    }
}
