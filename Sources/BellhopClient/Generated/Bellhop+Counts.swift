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
        public internal(set) var messages: Int
        /// Open requests to the user that are not seen. Counted from the requests themselves, independent of the limit
        /// on notifications.
        public internal(set) var requests: Int
        /// All other unseen notifications, except those of the category `message`.
        public internal(set) var bell: Int
        public internal(set) var total: Int
        /// Increases with every change. Within one epoch, the larger version is the newer one.
        public internal(set) var version: Int
        public internal(set) var epoch: String
        public internal(set) var asOf: Date
        /// Only with `include=conversations`: the conversations with unread messages. Their counts add up to
        /// `messages`.
        public internal(set) var conversations: [Badges.Conversation]?

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
            public internal(set) var conversationId: String
            public internal(set) var unread: Int

            public init(conversationId: String, unread: Int) {
                self.conversationId = conversationId
                self.unread = unread
            }
        }
    }
}
