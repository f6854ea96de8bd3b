import BellhopClient
import TestSupport
import Testing
import Values

/// R-VIS-FR-5.2, R-VIS-FR-5.3 and quiet hours over real HTTP, with a clock that the test controls.
@Suite(.timed) struct PreferencesTests {
    let service: TestService

    init() throws { service = try TestService.start(at: TestService.morning) }

    /// The names of the IANA database, old ones without a slash among them; no other abbreviations.
    @Test(arguments: [
        ("GMT", 200), ("EST", 200), ("CET", 200), ("UTC", 200), ("Japan", 200), ("America/Argentina/Salta", 200),
        ("IST", 422), ("BST", 422), ("PDT", 422), ("GMT+3", 422), ("", 422), ("Europe/Nowhere", 422), ("gmt", 422),
    ])
    func zone_isAnIANAName(_ zone: String, _ status: Int) async throws {
        let service = try TestService.start()
        let answer = try await service.call("PUT", "/v1/preferences", as: .user("u1"), ["timeZone": .string(zone)])
        #expect(answer.status == status, "\(zone)")
    }

    @Test func preferences_haveDefaults_andAreReplacedWhole() async throws {
        let (u1, u2) = (service.client("u1"), service.client("u2"))
        let defaults = try await u1.getPreferences().value
        #expect(defaults.sound && defaults.haptics && defaults.quietHours == nil)
        let hours = Bellhop.QuietHours(start: "22:00", end: "07:00")
        let put = try await u1.replacePreferences(.init(sound: false, quietHours: hours, timeZone: "Europe/Berlin"))
        #expect(put.value.quietHours?.start == "22:00")
        #expect(try await u1.getPreferences().value == put.value)
        #expect(try await u2.getPreferences().value == defaults)
        #expect(try await u1.replacePreferences(.init()).value == defaults)
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
        try await service.client("u1").replacePreferences(.init(sound: false, haptics: false))
        let made = try await service.publish(NotificationsTests.event("a"))
        #expect(made.value.notification?.sound == false && made.value.notification?.haptic == nil)
        #expect(try await service.badges(of: "u1") == [0, 0, 1, 1])
    }

    /// 21:30 UTC is 23:30 in Berlin in summer: quiet hours there, not yet in London, and never for urgent
    /// notifications.
    @Test func quietHours_areOfTheUsersZone_andNotForUrgent() async throws {
        service.clock.set(try #require(Timestamp(rfc3339: "2026-07-01T21:30:00Z")))
        let hours = Bellhop.QuietHours(start: "23:00", end: "07:00")
        for (user, zone) in [("berlin", "Europe/Berlin"), ("london", "Europe/London")] {
            try await service.client(user).replacePreferences(.init(quietHours: hours, timeZone: zone))
        }
        func sounds(_ user: String, _ type: Bellhop.Event.Kind) async throws -> Bool? {
            let event = NotificationsTests.event(type.rawValue, type, to: user)
            return try await service.publish(event).value.notification?.sound
        }
        #expect(try await sounds("berlin", .visitCreated) == false)
        #expect(try await sounds("berlin", .emergencyAccepted) == true)
        #expect(try await sounds("london", .visitCreated) == true)
        #expect(try await service.badges(of: "berlin") == [0, 0, 2, 2])
    }

    @Test(arguments: [
        (#"{"timeZone":"Mars/Olympus"}"#, "/timeZone"), (#"{"timeZone":"IST"}"#, "/timeZone"),
        (#"{"sound":"off"}"#, "/sound"), (#"{"quietHours":{"start":"22:00","end":"22:00"}}"#, "/quietHours/end"),
        (#"{"volume":1}"#, "/volume"),
    ])
    func badPreference_isNamed_andChangesNothing(_ body: String, _ pointer: String) async throws {
        let before = try await service.client("u1").getPreferences().value
        let answer = try await service.call("PUT", "/v1/preferences", as: .user("u1"), body)
        #expect(answer.status == 422)
        #expect(answer.pointers == [pointer])
        #expect(try await service.client("u1").getPreferences().value == before)
    }
}
