// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    /// A conversation as the caller sees it. `readPosition` and `unread` are null for a backend.
    public struct Conversation: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var kind: ConversationSummary.Kind
        public internal(set) var title: String?
        /// Null if a backend created the conversation.
        public internal(set) var createdBy: String?
        public internal(set) var createdAt: Date
        public internal(set) var memberCount: Int
        /// Sequence number of the newest message.
        public internal(set) var lastSequence: Int
        /// Sort key of the conversation list, in descending order.
        public internal(set) var order: String
        public internal(set) var lastMessage: ConversationSummary.LastMessage?
        public internal(set) var readPosition: Int?
        /// Messages after the read position, without the caller's own and deleted ones.
        public internal(set) var unread: Int?

        public init(
            id: String, kind: ConversationSummary.Kind, title: String? = nil, createdBy: String? = nil, createdAt: Date,
            memberCount: Int, lastSequence: Int, order: String, lastMessage: ConversationSummary.LastMessage? = nil,
            readPosition: Int? = nil, unread: Int? = nil
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
            self.readPosition = readPosition
            self.unread = unread
        }
    }

    public struct ConversationSummary: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var kind: ConversationSummary.Kind
        public internal(set) var title: String?
        /// Null if a backend created the conversation.
        public internal(set) var createdBy: String?
        public internal(set) var createdAt: Date
        public internal(set) var memberCount: Int
        /// Sequence number of the newest message.
        public internal(set) var lastSequence: Int
        /// Sort key of the conversation list, in descending order.
        public internal(set) var order: String
        public internal(set) var lastMessage: ConversationSummary.LastMessage?

        public init(
            id: String, kind: ConversationSummary.Kind, title: String? = nil, createdBy: String? = nil, createdAt: Date,
            memberCount: Int, lastSequence: Int, order: String, lastMessage: ConversationSummary.LastMessage? = nil
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

        public struct Kind: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let direct = Kind(rawValue: "direct")
            public static let group = Kind(rawValue: "group")
        }

        public struct LastMessage: Codable, Sendable, Hashable {
            public internal(set) var id: String
            public internal(set) var sequence: Int
            public internal(set) var senderId: String
            /// Preview in one line; null if the message is deleted.
            public internal(set) var preview: String?
            public internal(set) var sentAt: Date

            public init(id: String, sequence: Int, senderId: String, preview: String? = nil, sentAt: Date) {
                self.id = id
                self.sequence = sequence
                self.senderId = senderId
                self.preview = preview
                self.sentAt = sentAt
            }
        }
    }

    public struct CreateConversationBody: Codable, Sendable, Hashable {
        public var id: String?
        public var kind: CreateConversationBody.Kind?
        public var memberIds: [String]
        public var title: String?

        public init(
            id: String? = nil, kind: CreateConversationBody.Kind? = nil, memberIds: [String], title: String? = nil
        ) {
            self.id = id
            self.kind = kind
            self.memberIds = memberIds
            self.title = title
        }

        public struct Kind: Word {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            public static let direct = Kind(rawValue: "direct")
            public static let group = Kind(rawValue: "group")
        }
    }

    public struct ConversationWithMembers: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var kind: ConversationSummary.Kind
        public internal(set) var title: String?
        /// Null if a backend created the conversation.
        public internal(set) var createdBy: String?
        public internal(set) var createdAt: Date
        public internal(set) var memberCount: Int
        /// Sequence number of the newest message.
        public internal(set) var lastSequence: Int
        /// Sort key of the conversation list, in descending order.
        public internal(set) var order: String
        public internal(set) var lastMessage: ConversationSummary.LastMessage?
        public internal(set) var readPosition: Int?
        /// Messages after the read position, without the caller's own and deleted ones.
        public internal(set) var unread: Int?
        public internal(set) var members: [String]

        public init(
            id: String, kind: ConversationSummary.Kind, title: String? = nil, createdBy: String? = nil, createdAt: Date,
            memberCount: Int, lastSequence: Int, order: String, lastMessage: ConversationSummary.LastMessage? = nil,
            readPosition: Int? = nil, unread: Int? = nil, members: [String]
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
            self.readPosition = readPosition
            self.unread = unread
            self.members = members
        }
    }

    public struct ChangeConversationBody: Codable, Sendable, Hashable {
        public var title: String?

        public init(title: String? = nil) {
            self.title = title
        }

        /// Null is said, since leaving it out would be another wish.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(title, forKey: .title)
        }
    }

    public struct Message: Codable, Sendable, Hashable {
        public internal(set) var id: String
        public internal(set) var conversationId: String
        public internal(set) var sequence: Int
        public internal(set) var senderId: String
        /// Empty if the message is deleted.
        public internal(set) var text: String
        public internal(set) var sentAt: Date
        public internal(set) var deletedAt: Date?

        public init(
            id: String, conversationId: String, sequence: Int, senderId: String, text: String, sentAt: Date,
            deletedAt: Date? = nil
        ) {
            self.id = id
            self.conversationId = conversationId
            self.sequence = sequence
            self.senderId = senderId
            self.text = text
            self.sentAt = sentAt
            self.deletedAt = deletedAt
        }
    }

    public struct SendMessageBody: Codable, Sendable, Hashable {
        public var id: String?
        /// At most 4,000 bytes, and not blank.
        public var text: String

        public init(id: String? = nil, text: String) {
            self.id = id
            self.text = text
        }
    }

    public struct SentMessage: Codable, Sendable, Hashable {
        public internal(set) var message: Message
        /// Unread messages of the sender in the conversation; null for a backend.
        public internal(set) var unread: Int?
        public internal(set) var badges: Badges

        public init(message: Message, unread: Int? = nil, badges: Badges) {
            self.message = message
            self.unread = unread
            self.badges = badges
        }
    }

    public struct ReadConversationBody: Codable, Sendable, Hashable {
        public var sequence: Int
        public var allowRewind: Bool?

        public init(sequence: Int, allowRewind: Bool? = nil) {
            self.sequence = sequence
            self.allowRewind = allowRewind
        }
    }

    public struct ReadPosition: Codable, Sendable, Hashable {
        public internal(set) var conversationId: String
        public internal(set) var readPosition: Int
        public internal(set) var unread: Int
        public internal(set) var badges: Badges

        public init(conversationId: String, readPosition: Int, unread: Int, badges: Badges) {
            self.conversationId = conversationId
            self.readPosition = readPosition
            self.unread = unread
            self.badges = badges
        }
    }

    public struct MessageCreated: Codable, Sendable, Hashable {
        public internal(set) var conversationId: String
        public internal(set) var message: Message
        public internal(set) var preview: String
        /// New sort key of the conversation in the list.
        public internal(set) var order: String
        /// Unread messages of the receiver in this conversation.
        public internal(set) var unread: Int
        public internal(set) var badges: Badges

        public init(
            conversationId: String, message: Message, preview: String, order: String, unread: Int, badges: Badges
        ) {
            self.conversationId = conversationId
            self.message = message
            self.preview = preview
            self.order = order
            self.unread = unread
            self.badges = badges
        }
    }

    /// `unread` and `badges` are present only if they changed.
    public struct MessageDeleted: Codable, Sendable, Hashable {
        public internal(set) var conversationId: String
        public internal(set) var messageId: String
        public internal(set) var sequence: Int
        public internal(set) var unread: Int?
        public internal(set) var badges: Badges?

        public init(conversationId: String, messageId: String, sequence: Int, unread: Int? = nil, badges: Badges? = nil)
        {
            self.conversationId = conversationId
            self.messageId = messageId
            self.sequence = sequence
            self.unread = unread
            self.badges = badges
        }
    }

    /// The conversation is new, or its title or members changed.
    public struct ConversationUpdated: Codable, Sendable, Hashable {
        public internal(set) var conversation: ConversationSummary
        public internal(set) var joined: [String]
        public internal(set) var left: [String]

        public init(conversation: ConversationSummary, joined: [String], left: [String]) {
            self.conversation = conversation
            self.joined = joined
            self.left = left
        }
    }

    /// The user is no longer a member. `badges` is present only if it changed.
    public struct ConversationRemoved: Codable, Sendable, Hashable {
        public internal(set) var conversationId: String
        public internal(set) var badges: Badges?

        public init(conversationId: String, badges: Badges? = nil) {
            self.conversationId = conversationId
            self.badges = badges
        }
    }
}
