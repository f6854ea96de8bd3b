import Values

/// One message of a conversation.
public struct Message: Sendable, Hashable {
    public var id: ID<Message> = ""
    public var conversationId: ID<Conversation> = ""
    public var sequence = 0
    public var senderId: ID<User> = ""
    /// Empty once the message is deleted.
    public var text = ""
    public var sentAt = Timestamp(microseconds: 0)
    public var deletedAt: Timestamp?

    public init() {}

    public init(
        id: ID<Message>, conversationId: ID<Conversation>, sequence: Int, senderId: ID<User>, text: String,
        sentAt: Timestamp, deletedAt: Timestamp? = nil
    ) {
        self.id = id
        self.conversationId = conversationId
        self.sequence = sequence
        self.senderId = senderId
        self.text = text
        self.sentAt = sentAt
        self.deletedAt = deletedAt
    }

    public var preview: MessagePreview {
        MessagePreview(
            id: id, sequence: sequence, senderId: senderId,
            preview: deletedAt == nil ? MessagePreview.line(of: text) : nil, sentAt: sentAt)
    }
}

extension Message: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("conversationId", &conversationId)
        members.member("sequence", &sequence)
        members.member("senderId", &senderId)
        members.member("text", in: "body", &text)
        members.member("sentAt", &sentAt)
        members.member("deletedAt", &deletedAt)
    }
}

/// The preview of the newest message in a list of conversations.
public struct MessagePreview: Sendable, Hashable {
    public let id: ID<Message>
    public let sequence: Int
    public let senderId: ID<User>
    /// Nil if the message is deleted.
    public let preview: String?
    public let sentAt: Timestamp

    public init(id: ID<Message>, sequence: Int, senderId: ID<User>, preview: String?, sentAt: Timestamp) {
        self.id = id
        self.sequence = sequence
        self.senderId = senderId
        self.preview = preview
        self.sentAt = sentAt
    }

    /// Returns the beginning of a text as one line, with an ellipsis if the text is longer.
    public static func line(of text: String) -> String {
        var line = ""
        var count = 0
        var isSpaced = true
        for character in text {
            let isSpace = character.isWhitespace
            if isSpace, isSpaced { continue }
            guard count < ConversationLimits.previewCharactersMax else { return line + "…" }
            line.append(isSpace ? " " : character)
            count += 1
            isSpaced = isSpace
        }
        return line.last == " " ? String(line.dropLast()) : line
    }
}

extension MessagePreview: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("sequence", sequence)
        writer.member("senderId", senderId)
        writer.member("preview", preview)
        writer.member("sentAt", sentAt)
    }
}

/// The body of `POST …/messages`: `{id?, text}`. If the sender chooses the id, sending the message again creates
/// nothing.
public struct MessageDraft: Sendable, Hashable {
    public let id: ID<Message>?
    public let text: String

    public init(reading fields: inout Fields) {
        id = fields.optionalID("id")
        text = fields.string("text", bytesMax: ConversationLimits.textBytesMax)
        if !text.isEmpty, text.allSatisfy(\.isWhitespace) { fields.reject("text", "must not be blank") }
    }
}
