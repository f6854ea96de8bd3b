import Values

/// The content of a push message about a notification or a message, read when it is sent.
public struct PushText: Sendable {
    /// A title and a text.
    public typealias Lines = (title: String, body: String)

    /// What a locked screen may show.
    public let generic: Lines
    public let full: Lines
    public let priority: Priority
    /// A JSON object for the app: the type and the ids.
    public let data: [UInt8]

    public init(generic: Lines, full: Lines, priority: Priority, data: [UInt8]) {
        (self.generic, self.full, self.priority, self.data) = (generic, full, priority, data)
    }
}

extension PushText {
    /// Creates the content about unread messages.
    public init(_ unread: UnreadConversation) {
        let summary = unread.count == 1 ? "New message" : "\(unread.count) new messages"
        self.init(
            generic: (title: summary, body: ""),
            full: (title: unread.title ?? summary, body: MessagePreview.line(of: unread.newest.text)), priority: .high,
            data: JSONWriter.object { writer in
                writer.member("type", "message")
                writer.member("conversationId", unread.newest.conversationId)
                writer.member("unread", unread.count)
            })
    }
}
