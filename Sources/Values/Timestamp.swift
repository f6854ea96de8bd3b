/// A moment in whole microseconds since 1970-01-01T00:00:00Z, as the databases store it.
///
/// It is written and read as RFC 3339 in UTC without Foundation, because every response contains timestamps. The
/// calendar arithmetic (days from civil, Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms") is exact.
public struct Timestamp: Sendable, Hashable, Comparable {
    public let microseconds: Int64

    public init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// Creates a moment; nil if the seconds are outside the range of RFC 3339 (years 0001 to 9999).
    public init?(seconds: Double) {
        guard seconds > -62_135_596_800, seconds < 253_402_300_800 else { return nil }
        self.microseconds = Int64(seconds * 1_000_000)
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.microseconds < right.microseconds }

    public func adding(seconds: Int64) -> Timestamp { Timestamp(microseconds: microseconds + seconds * 1_000_000) }
    public func adding(minutes: Int64) -> Timestamp { adding(seconds: minutes * 60) }
    /// Whole seconds since the epoch, rounded down.
    public var seconds: Int64 { microseconds.floorDivided(by: 1_000_000) }
    public func minutes(since earlier: Timestamp) -> Double {
        Double(microseconds - earlier.microseconds) / 60_000_000
    }

    /// RFC 3339 in UTC with milliseconds: `2026-01-10T09:30:00.000Z`.
    public var rfc3339: String {
        String(unsafeUninitializedCapacity: 24) { buffer in
            Timestamp.write(microseconds, into: buffer)
            return 24
        }
    }

    /// Appends the 24 bytes of ``rfc3339``.
    public func append(to bytes: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 24) { buffer in
            Timestamp.write(microseconds, into: buffer)
            bytes.append(contentsOf: buffer)
        }
    }

    private static func write(_ microseconds: Int64, into out: UnsafeMutableBufferPointer<UInt8>) {
        let milliseconds = microseconds.floorDivided(by: 1000)
        let days = milliseconds.floorDivided(by: 86_400_000)
        let inDay = Int(milliseconds - days * 86_400_000)
        let (year, month, day) = civil(fromDays: days)
        func put(_ value: Int, at index: Int, digits: Int) {
            var (rest, place) = (UInt32(truncatingIfNeeded: value), index + digits)
            while place > index {
                place -= 1
                out[place] = UInt8(truncatingIfNeeded: 48 + rest % 10)
                rest /= 10
            }
        }
        put(year, at: 0, digits: 4)
        out[4] = UInt8(ascii: "-")
        put(month, at: 5, digits: 2)
        out[7] = UInt8(ascii: "-")
        put(day, at: 8, digits: 2)
        out[10] = UInt8(ascii: "T")
        put(inDay / 3_600_000, at: 11, digits: 2)
        out[13] = UInt8(ascii: ":")
        put(inDay / 60000 % 60, at: 14, digits: 2)
        out[16] = UInt8(ascii: ":")
        put(inDay / 1000 % 60, at: 17, digits: 2)
        out[19] = UInt8(ascii: ".")
        put(inDay % 1000, at: 20, digits: 3)
        out[23] = UInt8(ascii: "Z")
    }

    /// Reads RFC 3339 with any offset and up to nine digits of a fraction; nil for anything else.
    public init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 35 else { return nil }
        func number(_ from: Int, _ digits: Int) -> Int? {
            guard from + digits <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[from..<from + digits] {
                guard byte >= 48, byte <= 57 else { return nil }
                value = value * 10 + Int(byte - 48)
            }
            return value
        }
        guard let year = number(0, 4), bytes[4] == 45, let month = number(5, 2), bytes[7] == 45,
            let day = number(8, 2), bytes[10] | 0x20 == 0x74, let hour = number(11, 2), bytes[13] == 58,
            let minute = number(14, 2), bytes[16] == 58, let second = number(17, 2),
            year >= 1, (1...12).contains(month), day >= 1, day <= Timestamp.days(in: month, of: year),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        var index = 19
        var fraction = 0
        if bytes[index] == 46 {
            index += 1
            var digits = 0
            while index < bytes.count, bytes[index] >= 48, bytes[index] <= 57 {
                if digits < 6 { fraction = fraction * 10 + Int(bytes[index] - 48) }
                digits += 1
                index += 1
            }
            guard digits >= 1, digits <= 9 else { return nil }
            for _ in min(digits, 6)..<6 { fraction *= 10 }
        }
        guard index < bytes.count else { return nil }
        var offsetMinutes = 0
        switch bytes[index] {
        case 90, 122:
            guard index + 1 == bytes.count else { return nil }
        case 43, 45:
            guard index + 6 == bytes.count, let hours = number(index + 1, 2), bytes[index + 3] == 58,
                let minutes = number(index + 4, 2), hours < 24, minutes < 60
            else { return nil }
            offsetMinutes = (hours * 60 + minutes) * (bytes[index] == 45 ? -1 : 1)
        default: return nil
        }
        let days = Timestamp.days(fromCivil: year, month, day)
        let seconds = days * 86400 + Int64(hour * 3600 + minute * 60 + min(second, 59)) - Int64(offsetMinutes * 60)
        self.microseconds = seconds * 1_000_000 + Int64(fraction)
    }

    /// Returns the days since 1970-01-01; nil for a date that does not exist or is outside the years 1 to 9999.
    public static func days(year: Int, month: Int, day: Int) -> Int64? {
        guard (1...9999).contains(year), (1...12).contains(month), day >= 1, day <= days(in: month, of: year) else {
            return nil
        }
        return days(fromCivil: year, month, day)
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func days(fromCivil year: Int, _ month: Int, _ day: Int) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return Int64(era * 146_097 + dayOfEra - 719_468)
    }

    private static func civil(fromDays days: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = Int(days) + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }
}

extension Int64 {
    fileprivate func floorDivided(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
