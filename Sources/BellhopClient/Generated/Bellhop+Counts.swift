// Written by .ci/client-models from openapi.yaml: change that, and run it.

import Foundation

extension Bellhop {
    public struct GetBadgesInclude: Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let conversations = GetBadgesInclude(rawValue: "conversations")
    }

    public struct Badges: Codable, Sendable, Hashable {
        /// Unread messages.
        public let messages: Int
        /// Open requests to the user that are not seen. Counted from the requests themselves, independent of the limit
        /// on notifications.
        public let requests: Int
        /// All other unseen notifications, except those of the category `message`.
        public let bell: Int
        public let total: Int
        /// Increases with every change. Within one epoch, the larger version is the newer one.
        public let version: Int
        public let epoch: String
        public let asOf: Date
        /// Only with `include=conversations`: the conversations with unread messages. Their counts add up to
        /// `messages`.
        public let conversations: [Badges.Conversation]?

        public init(
            messages: Int, requests: Int, bell: Int, total: Int, version: Int, epoch: String, asOf: Date,
            conversations: [Badges.Conversation]? = nil
        ) {
            self.messages = messages
            self.requests = requests
            self.bell = bell
            self.total = total
            self.version = version
            self.epoch = epoch
            self.asOf = asOf
            self.conversations = conversations
        }

        public struct Conversation: Codable, Sendable, Hashable {
            public let conversationId: String
            public let unread: Int

            public init(conversationId: String, unread: Int) {
                self.conversationId = conversationId
                self.unread = unread
            }
        }
    }
}
