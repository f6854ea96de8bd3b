import Values

/// A user's notification preferences. They silence devices, but never drop a notification and never change a count.
public struct Preferences: Sendable, Hashable {
    /// On by default (R-VIS-D-1).
    public var sound: Bool
    public var haptics: Bool
    public var quietHours: QuietHours?
    /// The IANA name of the time zone of the quiet hours, such as `Europe/Berlin`.
    public var timeZone: String

    public init(
        sound: Bool = true, haptics: Bool = true, quietHours: QuietHours? = nil,
        timeZone: String = Preferences.timeZoneDefault
    ) {
        self.sound = sound
        self.haptics = haptics
        self.quietHours = quietHours
        self.timeZone = timeZone
    }

    public static let timeZoneDefault = "UTC"

    /// Reads a full replacement. A member that is absent or null takes its default.
    public init(reading fields: inout Fields, isTimeZone: (String) -> Bool) {
        self.init()
        sound = fields.optionalBool("sound") ?? true
        haptics = fields.optionalBool("haptics") ?? true
        quietHours = fields.object("quietHours") { QuietHours(reading: &$0) } ?? nil
        if let name = fields.optionalString("timeZone", bytesMax: 64) {
            if isTimeZone(name) {
                timeZone = name
            } else {
                fields.reject("timeZone", "must be the IANA name of a time zone, such as Europe/Berlin")
            }
        }
    }

    /// Returns the delivery of a notification that arrives at a minute of the user's day.
    ///
    /// Quiet hours do not silence URGENT. Sound or haptics that are switched off stay off for all priorities.
    public func delivery(of priority: Priority, atMinuteOfDay minute: Int) -> Delivery {
        let isQuiet = priority != .urgent && (quietHours?.contains(minuteOfDay: minute) ?? false)
        return Delivery(
            sounds: sound && priority.makesSound && !isQuiet,
            vibrates: haptics && priority.haptic != nil && !isQuiet)
    }
}

extension Preferences: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("sound", sound)
        writer.member("haptics", haptics)
        writer.member("quietHours", quietHours)
        writer.member("timeZone", timeZone)
    }
}

/// What a device may do when a notification arrives. It is decided at creation and never changes.
public struct Delivery: Sendable, Hashable {
    public var sounds: Bool
    public var vibrates: Bool

    public init(sounds: Bool, vibrates: Bool) {
        self.sounds = sounds
        self.vibrates = vibrates
    }
}

/// A part of each day in which devices stay silent, from its start up to its exclusive end. It spans midnight if the
/// end comes before the start.
public struct QuietHours: Sendable, Hashable {
    public let startMinute: Int
    public let endMinute: Int

    /// Creates quiet hours; nil if a minute is outside 0…1439, or if both are equal, which could mean never as well as
    /// always.
    public init?(startMinute: Int, endMinute: Int) {
        guard QuietHours.minutes.contains(startMinute), QuietHours.minutes.contains(endMinute),
            startMinute != endMinute
        else { return nil }
        self.startMinute = startMinute
        self.endMinute = endMinute
    }

    static let minutes = 0...1439

    /// Reads `{"start": "22:00", "end": "07:00"}`.
    public init?(reading fields: inout Fields) {
        func minute(_ name: String) -> Int? {
            let text = fields.string(name, bytesMax: 64)
            guard !text.isEmpty else { return nil }
            guard let minute = QuietHours.minute(text) else {
                fields.reject(name, "must be a time of day such as 22:00")
                return nil
            }
            return minute
        }
        let (start, end) = (minute("start"), minute("end"))
        guard let start, let end else { return nil }
        guard start != end else {
            fields.reject("end", "must differ from start")
            return nil
        }
        self.init(startMinute: start, endMinute: end)
    }

    public func contains(minuteOfDay minute: Int) -> Bool {
        startMinute < endMinute
            ? (startMinute..<endMinute).contains(minute) : minute >= startMinute || minute < endMinute
    }

    static func minute(_ text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":") else { return nil }
        let digits = [bytes[0], bytes[1], bytes[3], bytes[4]].map { Int($0) - 48 }
        guard digits.allSatisfy((0...9).contains) else { return nil }
        let (hour, minute) = (digits[0] * 10 + digits[1], digits[2] * 10 + digits[3])
        return hour < 24 && minute < 60 ? hour * 60 + minute : nil
    }

    static func text(_ minute: Int) -> String {
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return "\(two(minute / 60)):\(two(minute % 60))"
    }
}

extension QuietHours: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("start", QuietHours.text(startMinute))
        writer.member("end", QuietHours.text(endMinute))
    }
}

extension QuietHours {
    /// Creates quiet hours from two nullable columns; nil unless both are set.
    public init?(optionalStart: Int?, optionalEnd: Int?) {
        guard let optionalStart, let optionalEnd else { return nil }
        self.init(startMinute: optionalStart, endMinute: optionalEnd)
    }
}
