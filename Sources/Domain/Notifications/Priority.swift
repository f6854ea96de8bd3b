import Values

/// The urgency of a notification, which decides what the device does (R-VIS-FR-4.1, R-VIS-FR-5.1).
public enum Priority: String, CaseIterable, Sendable, Hashable {
    case low = "LOW"
    case normal = "NORMAL"
    case high = "HIGH"
    case urgent = "URGENT"

    /// The order of urgency, as rows store it.
    public var rank: Int {
        switch self {
        case .low: 0
        case .normal: 1
        case .high: 2
        case .urgent: 3
        }
    }

    public init?(rank: Int) {
        guard let priority = Priority.allCases.first(where: { $0.rank == rank }) else { return nil }
        self = priority
    }

    /// The pattern to play; nil for LOW.
    public var haptic: HapticPattern? {
        switch self {
        case .low: nil
        case .normal: HapticPattern(notification: "success", impacts: [], pulses: 1)
        case .high: HapticPattern(notification: "warning", impacts: [], pulses: 2)
        case .urgent: HapticPattern(notification: "error", impacts: ["heavy", "heavy"], pulses: 3)
        }
    }

    var makesSound: Bool { self >= .high }
}

extension Priority: Comparable {
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// JSON has the word, and rows have the rank.
extension Priority: MemberValue {
    public init(column: some ColumnReader) throws {
        guard let priority = Priority(rank: try column.integer()) else { throw column.unknownValue() }
        self = priority
    }

    public func write(column: inout some ColumnWriter) { column.integer(Int64(rank)) }
}

/// One haptic pattern, both as the platform's named calls and as a number of pulses. R-VIS-FR-4.1
/// specifies both, and a client plays the form that its platform supports.
public struct HapticPattern: Sendable, Hashable {
    public let notification: String
    public let impacts: [String]
    public let pulses: Int
}

extension HapticPattern: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("notification", notification)
        writer.member("impacts", impacts)
        writer.member("pulses", pulses)
    }
}
