import Domain
import Foundation
import Threads
import Values

/// Time zones by their IANA names. Other abbreviations are refused: IST is the time of India, Ireland and Israel.
enum TimeZones {
    static func isKnown(_ name: String) -> Bool {
        name == Preferences.timeZoneDefault
            || (name.contains("/") || namesWithoutArea.contains(name)) && TimeZone(identifier: name) != nil
    }

    /// The names without a slash of the IANA time zone database (2024b), whose newer names have one.
    private static let namesWithoutArea: Set<String> = [
        "CET", "CST6CDT", "Cuba", "EET", "EST", "EST5EDT", "Egypt", "Eire", "GB", "GB-Eire", "GMT", "GMT+0", "GMT-0",
        "GMT0", "Greenwich", "HST", "Hongkong", "Iceland", "Iran", "Israel", "Jamaica", "Japan", "Kwajalein", "Libya",
        "MET", "MST", "MST7MDT", "NZ", "NZ-CHAT", "Navajo", "PRC", "PST8PDT", "Poland", "Portugal", "ROC", "ROK",
        "Singapore", "Turkey", "UCT", "UTC", "Universal", "W-SU", "WET", "Zulu",
    ]

    /// Returns the day of a moment in a zone, from its midnight to the next.
    static func day(of now: Timestamp, in zone: String) -> Range<Timestamp> {
        if let last = lastDays.withLock({ $0[zone] }), last.contains(now) { return last }
        let day = computedDay(of: now, in: zone)
        lastDays.withLock { days in
            if days.count >= zonesMax { days = [:] }
            days[zone] = day
        }
        return day
    }

    /// The day that was last requested in each zone. It is nearly always today, and a calendar computation costs as
    /// much as four statements.
    private static let lastDays = Locked<[String: Range<Timestamp>]>([:])
    /// More than the number of existing zones.
    private static let zonesMax = 1_000

    private static func computedDay(of now: Timestamp, in zone: String) -> Range<Timestamp> {
        let calendar = calendar(of: zone)
        let start = calendar.startOfDay(for: Date(timeIntervalSince1970: Double(now.seconds)))
        // Days have 23 to 25 hours, so the calendar computes the end.
        let next = calendar.date(byAdding: .day, value: 1, to: start) ?? start.addingTimeInterval(86_400)
        // Where clocks go forward at midnight, a day begins at one o'clock, and the next one does not.
        return timestamp(start)..<timestamp(calendar.startOfDay(for: next))
    }

    /// Returns the day that a text such as `2026-01-10` names in a zone; nil if malformed.
    static func day(named text: String, in zone: String) -> Range<Timestamp>? {
        guard text.utf8.count == 10, Timestamp(rfc3339: text + "T12:00:00Z") != nil else { return nil }
        let parts = text.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 3 else { return nil }
        let noon = DateComponents(year: parts[0], month: parts[1], day: parts[2], hour: 12)
        return calendar(of: zone).date(from: noon).map { day(of: timestamp($0), in: zone) }
    }

    private static func calendar(of zone: String) -> Calendar {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone) ?? .gmt
        return calendar
    }

    private static func timestamp(_ date: Date) -> Timestamp {
        Timestamp(microseconds: Int64(date.timeIntervalSince1970.rounded()) * 1_000_000)
    }

    /// Returns the minute of a user's day. It is not computed for a user without quiet hours.
    static func minuteOfDay(_ now: Timestamp, _ preferences: Preferences) -> Int {
        guard preferences.quietHours != nil else { return 0 }
        // A zone that the system no longer knows is treated as UTC. Silence at the wrong hour is better than no
        // notification.
        let zone = TimeZone(identifier: preferences.timeZone)
        let offset = zone?.secondsFromGMT(for: Date(timeIntervalSince1970: Double(now.seconds))) ?? 0
        let secondOfDay = (Int(now.seconds) + offset) % 86400
        return (secondOfDay < 0 ? secondOfDay + 86400 : secondOfDay) / 60
    }
}
