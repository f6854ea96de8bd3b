import BellhopClient
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// R-CNT-COUNTS-1, R-CNT-RT-3, R-CNT-D-1 over real HTTP.
@Suite(.timed) struct BadgesRouteTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    @Test func counts_areReadInOneCall_withAGrowingVersion() async throws {
        let none = try await service.call("GET", "/v1/badges", as: .user("u1"))
        #expect(none.status == 200)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
        _ = try await service.publish(NotificationsTests.event("a"))
        let one = try await service.call("GET", "/v1/badges", as: .user("u1")).json["version"].int ?? .max
        _ = try await service.publish(NotificationsTests.event("b"))
        let two = try await service.call("GET", "/v1/badges", as: .user("u1")).json["version"].int ?? .min
        #expect(one < two)
        #expect(try await service.badges(of: "u1") == [0, 0, 2, 2])
    }

    @Test func badges_includeConversations_onRequest() async throws {
        let with = try await service.call("GET", "/v1/badges?include=conversations", as: .user("u1"))
        #expect(with.json["conversations"] == [])
        let without = try await service.call("GET", "/v1/badges", as: .user("u1"))
        #expect(without.json["conversations"] == .null)
        #expect(try await service.call("GET", "/v1/badges?include=all", as: .user("u1")).status == 422)
    }

    /// R-CNT-AC-4: what a user reads on one device is read on the other.
    @Test func twoDevicesOfAUser_seeTheSameCounts() async throws {
        let other = try await service.listen(as: .user("u1"))
        let id = try await service.publish(NotificationsTests.event("a")).notificationID
        #expect(try await other.next("badges:update").json["bell"] == 1)
        _ = try await service.call("PATCH", "/v1/notifications/\(id)", as: .user("u1"), #"{"read":true}"#)
        #expect(try await other.next("badges:update").json["bell"] == 0)
        #expect(try await service.badges(of: "u1") == [0, 0, 0, 0])
    }
}
