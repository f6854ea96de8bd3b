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
        /// Open requests to the user that are not seen, counted by their own rows: no bound of notifications touches
        /// them.
        public let requests: Int
        /// All other unseen notifications but those of category `message`.
        public let bell: Int
        public let total: Int
        /// Grows with every change; the larger one of an epoch is the newer.
        public let version: Int
        public let epoch: String
        public let asOf: Date
        /// With `include=conversations`, those with unread messages, which add up to `messages`.
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
