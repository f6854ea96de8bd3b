import Values

/// What a member has not read in a conversation, for messages to devices and servers.
public struct UnreadConversation: Sendable, Hashable {
    public let userId: ID<User>
    /// The title of the conversation; nil for a direct one.
    public let title: String?
    /// The number of unread messages.
    public let count: Int
    public let newest: Message

    public init(userId: ID<User>, title: String?, count: Int, newest: Message) {
        (self.userId, self.title, self.count, self.newest) = (userId, title, count, newest)
    }
}

extension UnreadConversation: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("conversationId", newest.conversationId)
        writer.member("userId", userId)
        writer.member("title", title)
        writer.member("unread", count)
        writer.member("message", newest)
    }
}
