import Values

/// The category of a notification: it decides the badge, and lists are filtered by it.
///
/// An open set, because backends have their own; the ones named here mean something to this service.
public struct NotificationCategory: RawRepresentable, Sendable, Hashable {
    public let rawValue: String

    /// Nil unless the word has 1 to 32 lower-case letters, digits, `-` and `_`, and starts with a letter: categories
    /// stand in URLs and in clients' switch statements.
    public init?(rawValue: String) {
        guard NotificationCategory.isWord(rawValue, letters: UInt8(ascii: "a")...UInt8(ascii: "z")) else { return nil }
        self.rawValue = rawValue
    }

    private init(known: String) { rawValue = known }

    public static let visit = NotificationCategory(known: "visit")
    public static let system = NotificationCategory(known: "system")
    public static let emergency = NotificationCategory(known: "emergency")
    public static let booking = NotificationCategory(known: "booking")
    /// Somebody waits for this user's answer, or has answered. Open requests are counted by their rows, and the rest as
    /// `bell`.
    public static let request = NotificationCategory(known: "request")
    /// A new message; counted by the conversation's read position, never here.
    public static let message = NotificationCategory(known: "message")

    static let bytesMax = 32

    static func isWord(_ text: String, letters: ClosedRange<UInt8>) -> Bool {
        guard let first = text.utf8.first, letters.contains(first), text.utf8.count <= bytesMax else { return false }
        return text.utf8.allSatisfy { letters.contains($0) || (48...57).contains($0) || $0 == 0x2D || $0 == 0x5F }
    }
}

/// The type a client switches on, such as `VISIT`: upper-case letters, digits, `-` and `_`.
public struct NotificationType: RawRepresentable, Sendable, Hashable {
    public let rawValue: String

    public init?(rawValue: String) {
        guard NotificationCategory.isWord(rawValue, letters: UInt8(ascii: "A")...UInt8(ascii: "Z")) else { return nil }
        self.rawValue = rawValue
    }

    /// The type of a notification that names none: its category in capitals.
    public init(for category: NotificationCategory) { rawValue = category.rawValue.uppercased() }

    public static let visit = NotificationType(for: .visit)
    public static let system = NotificationType(for: .system)
    public static let emergency = NotificationType(for: .emergency)
    public static let booking = NotificationType(for: .booking)
}

extension NotificationCategory: JSONWritable {}
extension NotificationType: JSONWritable {}
