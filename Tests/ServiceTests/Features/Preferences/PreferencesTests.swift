import BellhopClient
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// R-VIS-FR-5.2, R-VIS-FR-5.3 and quiet hours over real HTTP, with a clock that the test controls.
@Suite(.timed) struct PreferencesTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    @Test func preferences_haveDefaults_andAreReplacedWhole() async throws {
        let defaults = try await service.call("GET", "/v1/preferences", as: .user("u1"))
        expect(defaults.json, has: ["sound": true, "haptics": true, "quietHours": nil])
        let body =
            #"{"sound":false,"quietHours":{"start":"22:00","end":"07:00"},"timeZone":"Europe/Berlin"}"#
        let put = try await service.call("PUT", "/v1/preferences", as: .user("u1"), body)
        #expect(put.status == 200)
        #expect(put.json["quietHours"]["start"] == "22:00")
        #expect(try await service.call("GET", "/v1/preferences", as: .user("u1")).json == put.json)
        #expect(try await service.call("GET", "/v1/preferences", as: .user("u2")).json == defaults.json)
        #expect(try await service.call("PUT", "/v1/preferences", as: .user("u1"), "{}").json == defaults.json)
    }

    @Test func change_reachesTheUsersOtherDevices() async throws {
        let (own, other) = (try await service.listen(as: .user("u1")), try await service.listen(as: .user("u2")))
        let put = try await service.call("PUT", "/v1/preferences", as: .user("u1"), #"{"sound":false}"#)
        #expect(try await own.next("preferences:update").json == put.json)
        #expect(try await service.publish(NotificationsTests.event("a", to: "u2")).status == 201)
        #expect(try await other.next().name == "notification:created")
    }

    /// R-VIS-FR-5.3: notifications are silenced, never dropped.
    @Test func disabledPlayback_silences_andDropsNothing() async throws {
        _ = try await service.call("PUT", "/v1/preferences", as: .user("u1"), #"{"sound":false,"haptics":false}"#)
        let made = try await service.publish(NotificationsTests.event("a"))
        expect(made.json["notification"], has: ["sound": false, "haptic": nil])
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
    }

    /// 21:30 UTC is 23:30 in Berlin in summer: quiet hours there, not yet in London, and never for urgent
    /// notifications.
    @Test func quietHours_areOfTheUsersZone_andNotForUrgent() async throws {
        service.clock.set(try #require(Timestamp(rfc3339: "2026-07-01T21:30:00Z")))
        let hours = #""quietHours":{"start":"23:00","end":"07:00"}"#
        for (user, zone) in [("berlin", "Europe/Berlin"), ("london", "Europe/London")] {
            let body = #"{"timeZone":"\#(zone)",\#(hours)}"#
            #expect(try await service.call("PUT", "/v1/preferences", as: .user(user), body).status == 200)
        }
        func sounds(_ user: String, _ type: String) async throws -> JSON {
            let event = NotificationsTests.event(type, type, to: user)
            return try await service.publish(event).json["notification"]["sound"]
        }
        #expect(try await sounds("berlin", "visit.created") == false)
        #expect(try await sounds("berlin", "emergency.accepted") == true)
        #expect(try await sounds("london", "visit.created") == true)
        #expect(try await service.badges(of: "berlin") == [0, 0, 2, 2])
    }

    @Test(arguments: [
        (#"{"timeZone":"Mars/Olympus"}"#, "/timeZone"), (#"{"timeZone":"EST"}"#, "/timeZone"),
        (#"{"sound":"off"}"#, "/sound"), (#"{"quietHours":{"start":"22:00","end":"22:00"}}"#, "/quietHours/end"),
        (#"{"volume":1}"#, "/volume"),
    ])
    func badPreference_isNamed_andChangesNothing(_ body: String, _ pointer: String) async throws {
        let before = try await service.call("GET", "/v1/preferences", as: .user("u1")).json
        let answer = try await service.call("PUT", "/v1/preferences", as: .user("u1"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == [pointer])
        #expect(try await service.call("GET", "/v1/preferences", as: .user("u1")).json == before)
    }
}
