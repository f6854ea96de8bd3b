import Values

/// A conversation in which several users exchange messages.
public struct Conversation: Sendable, Hashable {
    public enum Kind: String, CaseIterable, Sendable, MemberValue {
        /// Two members. Each pair of users has at most one.
        case direct
        /// Any number of members. Members can add others.
        case group
    }

    public var id: ID<Conversation> = ""
    public var kind = Kind.group
    public var title: String?
    /// Nil if a backend created it.
    public var createdBy: ID<User>?
    public var createdAt = Timestamp(microseconds: 0)
    public var memberCount = 0
    /// The sequence number of the newest message; 0 before the first message.
    public var lastSequence = 0
    /// The sort key of lists of conversations, greatest first: the id of the newest message, or the conversation's own
    /// id until there is a message.
    public var order = ""
    public var lastMessage: MessagePreview?

    public init() {}

    public init(
        id: ID<Conversation>, kind: Kind, title: String?, createdBy: ID<User>?, createdAt: Timestamp, memberCount: Int,
        lastSequence: Int = 0, order: String, lastMessage: MessagePreview? = nil
    ) {
        self.id = id
        self.kind = kind
        self.title = title
        self.createdBy = createdBy
        self.createdAt = createdAt
        self.memberCount = memberCount
        self.lastSequence = lastSequence
        self.order = order
        self.lastMessage = lastMessage
    }
}

extension Conversation: Record {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("kind", &kind)
        members.member("title", &title)
        members.member("createdBy", &createdBy)
        members.member("createdAt", &createdAt)
        members.member("memberCount", &memberCount)
        members.member("lastSequence", &lastSequence)
        members.member("order", in: "list_order", &order)
        members.derived("lastMessage", lastMessage)
    }
}

/// A conversation as one of its members sees it. A backend's view has no read place.
public struct ConversationView: Sendable, JSONObjectWritable {
    public let conversation: Conversation
    public let place: ReadPlace?
    /// Nil if not requested.
    public let members: [ID<User>]?

    public init(_ conversation: Conversation, place: ReadPlace?, members: [ID<User>]? = nil) {
        self.conversation = conversation
        self.place = place
        self.members = members
    }

    public func write(membersTo writer: inout JSONWriter) {
        conversation.write(membersTo: &writer)
        writer.member("readPosition", place?.position)
        writer.member("unread", place?.unread(of: conversation.lastSequence))
        if let members { writer.member("members", members) }
    }
}

/// The body of `POST /v1/conversations`: `{id?, kind?, memberIds, title?}`.
public struct ConversationDraft: Sendable, Hashable {
    public let id: ID<Conversation>?
    public let kind: Conversation.Kind
    /// May include the caller.
    public let memberIds: [ID<User>]
    public let title: String?

    public init(reading fields: inout Fields) {
        id = fields.optionalID("id")
        kind = fields.optionalWord("kind") ?? .group
        title = fields.optionalLine("title", bytesMax: ConversationLimits.titleBytesMax)
        if fields.value("memberIds") == nil { fields.reject("memberIds", "is missing") }
        let texts = fields.strings("memberIds", countMax: ConversationLimits.membersMax, bytesMax: Fields.idBytesMax)
        for (index, text) in (texts ?? []).enumerated() where !Fields.isIdentifier(text) {
            fields.reject("memberIds/\(index)", "must not contain control characters")
        }
        memberIds = (texts ?? []).map { ID($0) }
        if kind == .direct, id != nil {
            fields.reject("id", "is not allowed for a direct conversation: a pair of users has only one")
        }
        if kind == .direct, title != nil { fields.reject("title", "is only allowed for a group") }
    }

    /// Checks that a user chose a random id. With guessable ids, a user could try ids and learn from the conflicts
    /// which conversations exist.
    ///
    /// - Parameter creator: Nil for a backend, which may see all conversations.
    public func requireOwnID(of creator: ID<User>?) throws(Failure) {
        guard let id, creator != nil, !Self.isRandomUUID(id.text) else { return }
        throw Failure.invalid("/id", "must be a random UUID, of version 4 or 7")
    }

    /// Whether the text is a random UUID of RFC 9562: 32 digits in five groups, with one digit for the version and one
    /// for the variant.
    static func isRandomUUID(_ text: String) -> Bool {
        let letters = Array(text.utf8)
        guard letters.count == 36 else { return false }
        return letters.enumerated().allSatisfy { place, letter in
            switch place {
            case 8, 13, 18, 23: letter == UInt8(ascii: "-")
            case 14: letter == UInt8(ascii: "4") || letter == UInt8(ascii: "7")
            case 19: "89abAB".utf8.contains(letter)
            default: "0123456789abcdefABCDEF".utf8.contains(letter)
            }
        }
    }

    /// Returns all members of the conversation to create.
    ///
    /// - Parameter creator: Nil for a backend, which is never a member.
    public func members(with creator: ID<User>?) throws(Failure) -> [ID<User>] {
        let members = Set(memberIds + (creator.map { [$0] } ?? [])).sorted()
        switch kind {
        case .direct where members.count != 2:
            throw Failure.invalid("/memberIds", "must result in exactly two members")
        case .group where members.isEmpty: throw Failure.invalid("/memberIds", "must name at least one user")
        default: break
        }
        guard members.count <= ConversationLimits.membersMax else {
            throw Failure.invalid("/memberIds", "must result in at most \(ConversationLimits.membersMax) members")
        }
        return members
    }
}

/// The body of `PATCH /v1/conversations/{id}`: `{"title": "…"}`, or null to remove the title.
public struct ConversationChange: Sendable, Hashable {
    public let title: String?

    public init(reading fields: inout Fields) {
        if !fields.has("title") { fields.reject("title", "is missing") }
        title = fields.optionalLine("title", bytesMax: ConversationLimits.titleBytesMax)
    }
}
