import Values

/// The category of a notification. It selects the badge, and lists can be filtered by it.
///
/// The set is open, because backends define their own categories. The ones declared here have a meaning in this
/// service.
public struct NotificationCategory: RawRepresentable, Sendable, Hashable {
    public let rawValue: String

    /// Creates a category of 1 to 32 lower-case letters, digits, `-` and `_` that starts with a letter; nil for other
    /// texts. Categories appear in URLs and in the switch statements of clients.
    public init?(rawValue: String) {
        guard NotificationCategory.isWord(rawValue, letters: UInt8(ascii: "a")...UInt8(ascii: "z")) else { return nil }
        self.rawValue = rawValue
    }

    private init(known: String) { rawValue = known }

    public static let visit = NotificationCategory(known: "visit")
    public static let system = NotificationCategory(known: "system")
    public static let emergency = NotificationCategory(known: "emergency")
    public static let booking = NotificationCategory(known: "booking")
    /// A user waits for this user's answer, or has answered. Open requests are counted from their rows, other
    /// notifications of this category as `bell`.
    public static let request = NotificationCategory(known: "request")
    /// A new message. The conversation's read position counts it, never the notification.
    public static let message = NotificationCategory(known: "message")

    static let bytesMax = 32

    static func isWord(_ text: String, letters: ClosedRange<UInt8>) -> Bool {
        guard let first = text.utf8.first, letters.contains(first), text.utf8.count <= bytesMax else { return false }
        return text.utf8.allSatisfy { letters.contains($0) || (48...57).contains($0) || $0 == 0x2D || $0 == 0x5F }
    }
}

/// The type that a client switches on, such as `VISIT`: upper-case letters, digits, `-` and `_`.
public struct NotificationType: RawRepresentable, Sendable, Hashable {
    public let rawValue: String

    public init?(rawValue: String) {
        guard NotificationCategory.isWord(rawValue, letters: UInt8(ascii: "A")...UInt8(ascii: "Z")) else { return nil }
        self.rawValue = rawValue
    }

    /// Creates the default type: the category in capitals.
    public init(for category: NotificationCategory) { rawValue = category.rawValue.uppercased() }

    public static let visit = NotificationType(for: .visit)
    public static let system = NotificationType(for: .system)
    public static let emergency = NotificationType(for: .emergency)
    public static let booking = NotificationType(for: .booking)
}

extension NotificationCategory: MemberValue {}
extension NotificationType: MemberValue {}
