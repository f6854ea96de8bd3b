import Domain
import TestSupport
import Testing
import Values

@Suite(.timed) struct NotificationPreferencesTests {
    static func preferences(_ body: String) throws(Failure) -> Preferences {
        var fields = try Fields(Array(body.utf8))
        let preferences = Preferences(reading: &fields) { ["UTC", "Europe/Berlin"].contains($0) }
        try fields.finish()
        return preferences
    }

    /// R-VIS-D-1, R-VIS-FR-5.2.
    @Test func sound_isOnUnlessSwitchedOff() throws {
        #expect(try Self.preferences("{}") == Preferences(sound: true, haptics: true, quietHours: nil, timeZone: "UTC"))
        let off = try Self.preferences(#"{"sound":false}"#)
        for priority in Priority.allCases {
            #expect(!off.delivery(of: priority, atMinuteOfDay: 600).sounds, "R-VIS-FR-5.3")
        }
    }

    /// R-VIS-FR-5.1, R-VIS-NFR-4.1.
    @Test func highAndUrgent_sound_andLowDoesNotVibrate() {
        let day = Priority.allCases.map { Preferences().delivery(of: $0, atMinuteOfDay: 600) }
        #expect(day.map(\.sounds) == [false, false, true, true])
        #expect(day.map(\.vibrates) == [false, true, true, true])
        #expect(Set(Priority.allCases.map(\.haptic)).count == Priority.allCases.count)
    }

    @Test func quietHours_silenceAllButUrgent() throws {
        let preferences = try Self.preferences(
            #"{"quietHours":{"start":"22:00","end":"07:00"},"timeZone":"Europe/Berlin"}"#)
        for minute in [22 * 60, 23 * 60 + 59, 0, 6 * 60 + 59] {
            #expect(preferences.delivery(of: .high, atMinuteOfDay: minute) == Delivery(sounds: false, vibrates: false))
            #expect(preferences.delivery(of: .urgent, atMinuteOfDay: minute) == Delivery(sounds: true, vibrates: true))
        }
        for minute in [7 * 60, 21 * 60 + 59] {
            #expect(preferences.delivery(of: .high, atMinuteOfDay: minute) == Delivery(sounds: true, vibrates: true))
        }
    }

    @Test func quietHoursWithinADay_endBeforeTheirEnd() throws {
        let hours = try #require(QuietHours(startMinute: 60, endMinute: 120))
        #expect([59, 60, 119, 120].map { hours.contains(minuteOfDay: $0) } == [false, true, true, false])
        #expect(QuietHours(startMinute: 60, endMinute: 60) == nil)
        #expect(QuietHours(startMinute: -1, endMinute: 60) == nil)
        #expect(QuietHours(startMinute: 0, endMinute: 1440) == nil)
    }

    @Test(arguments: [
        (#"{"sound":"on"}"#, ["/sound"]), (#"{"haptics":1}"#, ["/haptics"]),
        (#"{"timeZone":"Berlin"}"#, ["/timeZone"]), (#"{"quietHours":"night"}"#, ["/quietHours"]),
        (#"{"quietHours":{"start":"22:00"}}"#, ["/quietHours/end"]),
        (#"{"quietHours":{"start":"24:00","end":"7:00"}}"#, ["/quietHours/start", "/quietHours/end"]),
        (#"{"quietHours":{"start":"22:00","end":"22:00"}}"#, ["/quietHours/end"]),
        (#"{"quietHours":{"start":"22:00","end":"07:00","days":[]}}"#, ["/quietHours/days"]),
        (#"{"volume":3}"#, ["/volume"]),
    ])
    func badPreference_isNamedByItsPointer(_ body: String, _ pointers: [String]) {
        let failure = #expect(throws: Failure.self) { try Self.preferences(body) }
        #expect(failure?.fields.map(\.pointer) == pointers)
    }

    @Test func preferences_areWrittenAsTheyAreRead() throws {
        let body = #"{"sound":false,"haptics":true,"quietHours":{"start":"22:05","end":"07:00"},"timeZone":"UTC"}"#
        #expect(String(decoding: JSONWriter.bytes(try Self.preferences(body)), as: UTF8.self) == body)
    }
}
