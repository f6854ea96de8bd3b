import Domain
import Testing

@testable import Service

/// CNT R-COUNTS-1, R-RT-3, D-CNT-1 over real HTTP.
@Suite struct BadgesRouteTests {
    @Test func counts_comeInOneCall_withAVersionThatGrows() async throws {
        let probe = try await NotificationsProbe.start()
        let none = try await probe.call("GET", "/v1/badges", as: .user("u1"))
        #expect(none.status == 200)
        #expect(try await probe.badges(of: "u1") == [0, 0, 0, 0])
        _ = try await probe.call("POST", "/v1/events", as: .service, NotificationsTests.event("a"))
        let one = try await probe.call("GET", "/v1/badges", as: .user("u1")).json["version"].number ?? .max
        _ = try await probe.call("POST", "/v1/events", as: .service, NotificationsTests.event("b"))
        let two = try await probe.call("GET", "/v1/badges", as: .user("u1")).json["version"].number ?? .min
        #expect(one < two)
        #expect(try await probe.badges(of: "u1") == [0, 0, 2, 2])
    }

    @Test func conversations_areThere_ifAskedFor() async throws {
        let probe = try await NotificationsProbe.start()
        let with = try await probe.call("GET", "/v1/badges?include=conversations", as: .user("u1"))
        #expect(with.json["conversations"] == .array([]))
        let without = try await probe.call("GET", "/v1/badges", as: .user("u1"))
        #expect(without.json["conversations"] == .null)
        #expect(try await probe.call("GET", "/v1/badges?include=all", as: .user("u1")).status == 422)
    }

    /// CNT AC-CNT-4: what one device reads, the other finds read.
    @Test func twoDevicesOfAUser_seeTheSameCounts() async throws {
        let probe = try await NotificationsProbe.start()
        let other = try await probe.listen(as: .user("u1"))
        let id = try await probe.call("POST", "/v1/events", as: .service, NotificationsTests.event("a")).id
        #expect(try await other.next("badges:update")["bell"] == .integer(1))
        _ = try await probe.call("PATCH", "/v1/notifications/\(id)", as: .user("u1"), #"{"read":true}"#)
        #expect(try await other.next("badges:update")["bell"] == .integer(0))
        #expect(try await probe.badges(of: "u1") == [0, 0, 0, 0])
    }
}
