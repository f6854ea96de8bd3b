import Values

/// A point in time as filters compare it: whole microseconds, regardless of spelling, offset and fraction.
///
/// It reads ISO 8601 dates (`2026-01-10`), an optional time of day (`T09:30`, ` 09:30:00.5`), and an optional offset
/// (`Z`, `+00`, `+00:00`, `+0530`). Databases and clients write these forms. The years are 1 to 9999.
struct FilterMoment: Sendable, Hashable {
    /// Since 1970-01-01T00:00:00Z, or since midnight for a time of day. The smallest and the largest value are
    /// infinity.
    let microseconds: Int64

    static let dayMicroseconds: Int64 = 86_400_000_000

    /// Reads a value of a column without a declared type: a date, or a date and a time. Without an offset, it is in
    /// UTC.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        // Nearly all texts end here.
        guard text.count >= 10, text.count <= 40, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-") else {
            return nil
        }
        self.init(text, as: .timestamptz)
    }

    /// Reads a value as PostgreSQL does for a column of the type, in a session whose time zone is UTC.
    init?(_ text: UnsafeBufferPointer<UInt8>, as type: ColumnType) {
        switch text.count {
        case 8 where type != .time && text.elementsEqual("infinity".utf8): microseconds = .max
        case 9 where type != .time && text.elementsEqual("-infinity".utf8): microseconds = .min
        default:
            var reader = MomentReader(bytes: text)
            guard let moment = reader.moment(type) else { return nil }
            microseconds = moment
        }
    }

    private init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// Returns the canonical spelling for a column of the type. It reads back to the same value.
    func canonical(_ type: ColumnType) -> String {
        if microseconds == .max { return "infinity" }
        if microseconds == .min { return "-infinity" }
        let text = Timestamp(microseconds: microseconds).rfc3339
        if type == .date || type != .time && microseconds.isMultiple(of: Self.dayMicroseconds) {
            return String(text.prefix(10))
        }
        let rest = microseconds % 1000
        let last = rest == 0 ? "" : String((rest < 0 ? rest + 1000 : rest) + 1000).dropFirst()
        switch type {
        // The end of the day is a separate time of day.
        case .time: return microseconds == Self.dayMicroseconds ? "24:00:00" : "\(text.dropFirst(11).dropLast())\(last)"
        case .timestamp: return "\(text.dropLast())\(last)"
        default: return "\(text.dropLast())\(last)Z"
        }
    }
}

/// The reader behind ``FilterMoment``.
private struct MomentReader {
    let bytes: UnsafeBufferPointer<UInt8>
    private var index = 0

    init(bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func take(_ wanted: UInt8) -> Bool {
        guard byte == wanted else { return false }
        index += 1
        return true
    }

    private mutating func number(_ digits: Int) -> Int64? {
        guard index + digits <= bytes.count else { return nil }
        var value: Int64 = 0
        for byte in bytes[index..<index + digits] {
            guard byte >= 48, byte <= 57 else { return nil }
            value = value * 10 + Int64(byte - 48)
        }
        index += digits
        return value
    }

    mutating func moment(_ type: ColumnType) -> Int64? {
        if type == .time { return timeOfDay().flatMap { index == bytes.count ? $0 : nil } }
        guard let year = number(4), take(UInt8(ascii: "-")), let month = number(2), take(UInt8(ascii: "-")),
            let day = number(2), let days = Timestamp.days(year: Int(year), month: Int(month), day: Int(day))
        else { return nil }
        let date = days * FilterMoment.dayMicroseconds
        guard let separator = byte else { return date }
        guard separator | 0x20 == UInt8(ascii: "t") || separator == 0x20 else { return nil }
        index += 1
        guard let time = timeOfDay(), let offset = offset(), index == bytes.count else { return nil }
        switch type {
        case .date: return date
        // As in PostgreSQL, a timestamp without time zone ignores the offset.
        case .timestamp: return date + time
        default:
            let moment = date + time - offset
            return Timestamp.writableSeconds.contains(Timestamp(microseconds: moment).seconds) ? moment : nil
        }
    }

    private mutating func timeOfDay() -> Int64? {
        guard let hour = number(2), take(UInt8(ascii: ":")), let minute = number(2), minute < 60 else { return nil }
        var seconds: Int64 = 0
        var fraction: Int64 = 0
        if take(UInt8(ascii: ":")) {
            guard let read = number(2), read <= 60 else { return nil }
            seconds = read
            if take(UInt8(ascii: ".")) {
                let start = index
                while let byte, byte >= 48, byte <= 57 { index += 1 }
                guard let read = Double("0." + String(decoding: bytes[start..<index], as: UTF8.self)) else {
                    return nil
                }
                fraction = Int64((read * 1_000_000).rounded(.toNearestOrEven))
            }
        }
        let time = (hour * 3600 + minute * 60 + seconds) * 1_000_000 + fraction
        return hour < 24 || time == FilterMoment.dayMicroseconds ? time : nil
    }

    /// Reads the optional offset in microseconds; 0 by default.
    private mutating func offset() -> Int64? {
        guard let sign = byte else { return 0 }
        index += 1
        if sign | 0x20 == UInt8(ascii: "z") { return 0 }
        guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), let hours = number(2), hours < 16 else {
            return nil
        }
        var seconds = hours * 3600
        for unit in [Int64(60), 1] where byte != nil {
            _ = take(UInt8(ascii: ":"))
            guard let part = number(2), part < 60 else { return nil }
            seconds += part * unit
        }
        return (sign == UInt8(ascii: "-") ? -seconds : seconds) * 1_000_000
    }
}
