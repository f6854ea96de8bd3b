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
    /// The object beside the full text, with what identifies the sender.
    public let fullData: [UInt8]

    public init(generic: Lines, full: Lines, priority: Priority, data: [UInt8], fullData: [UInt8]? = nil) {
        (self.generic, self.full, self.priority) = (generic, full, priority)
        (self.data, self.fullData) = (data, fullData ?? data)
    }
}

extension PushText {
    /// Creates the content about unread messages. The service knows no names of users, so the app replaces the title of a
    /// direct conversation by the name that belongs to `senderId`.
    public init(_ unread: UnreadConversation) {
        func data(sender: ID<User>?) -> [UInt8] {
            JSONWriter.object { writer in
                writer.member("type", "message")
                writer.member("conversationId", unread.newest.conversationId)
                writer.member("unread", unread.count)
                if let sender { writer.member("senderId", sender) }
            }
        }
        let summary = unread.count == 1 ? "New message" : "\(unread.count) new messages"
        self.init(
            generic: (title: summary, body: ""),
            full: (title: unread.title ?? summary, body: MessagePreview.line(of: unread.newest.text)), priority: .high,
            data: data(sender: nil), fullData: data(sender: unread.newest.senderId))
    }
}
