// Written by .ci/client-models from openapi.yaml: change that, and run it.

/// What the contract says of the list of the store `notifications` (`x-stores`).
enum NotificationsList: ListData {
    static let list = ListDescription(
        name: "list", path: "/v1/notifications?limit=50", more: "more:{next}",
        storedMax: 50, keptMax: 50, isAscending: false,
        refused: ListRefusal(event: "notifications:refused", member: "ids", areSeveral: true),
        events: [
            "notification:created": ListChange(kind: .byHand),
            "notification:updated": ListChange(kind: .patch, of: "state", by: "ids"),
            "notification:removed": ListChange(kind: .remove, by: "ids"),
        ],
        writes: [
            "change": ListWrite(
                method: "PATCH", path: "/v1/notifications/{id}", name: "change", answer: "notification",
                removesMissing: true),
            "remove": ListWrite(
                method: "DELETE", path: "/v1/notifications/{id}", name: "change", isRemoval: true, removesMissing: true),
            "changeAll": ListWrite(method: "PATCH", path: "/v1/notifications", name: "change"),
        ])

    static func key(_ item: Bellhop.Notification) -> String { item.id }
    static func precedes(_ one: Bellhop.Notification, _ other: Bellhop.Notification) -> Bool {
        one.id > other.id
    }
}

/// What the contract says of the list of the store `conversations` (`x-stores`).
enum ConversationsList: ListData {
    static let list = ListDescription(
        name: "list", path: "/v1/conversations?limit=100", more: "more",
        storedMax: 1000, keptMax: 100, isAscending: false,
        events: [
            "message:created": ListChange(kind: .byHand),
            "message:deleted": ListChange(kind: .byHand),
            "conversation:read": ListChange(kind: .patch, by: "conversationId", set: ["readPosition", "unread"]),
            "conversation:updated": ListChange(kind: .upsert, of: "conversation"),
            "conversation:removed": ListChange(kind: .remove, by: "conversationId"),
        ], writes: [:])

    static func key(_ item: Bellhop.Conversation) -> String { item.id }
    static func precedes(_ one: Bellhop.Conversation, _ other: Bellhop.Conversation) -> Bool {
        one.order > other.order
    }
}

/// What the contract says of the list of the store `conversation` (`x-stores`).
enum ConversationList: ListData {
    static let list = ListDescription(
        name: "list", path: "/v1/conversations/{conversationId}/messages?limit=50", more: "earlier",
        storedMax: 500, keptMax: 50, isAscending: true,
        events: [
            "message:created": ListChange(kind: .add, of: "message", in: "conversationId"),
            "message:deleted": ListChange(kind: .byHand),
        ], writes: [:])

    static func key(_ item: Bellhop.Message) -> String { item.id }
    static func precedes(_ one: Bellhop.Message, _ other: Bellhop.Message) -> Bool {
        one.sequence < other.sequence
    }
}

/// What the contract says of the list of the store `requests` (`x-stores`).
enum RequestsList: ListData {
    static let list = ListDescription(
        name: "list", path: "/v1/requests?direction={direction}&limit=50", more: "more:{next}",
        storedMax: 500, keptMax: 50, isAscending: false,
        refused: ListRefusal(event: "requests:refused", member: "id"),
        events: [
            "request:created": ListChange(kind: .upsert),
            "request:updated": ListChange(kind: .upsert),
            "request:removed": ListChange(kind: .remove, by: "id"),
        ],
        writes: [
            "answer": ListWrite(method: "PATCH", path: "/v1/requests/{id}", name: "settle", answer: "request"),
            "withdraw": ListWrite(
                method: "DELETE", path: "/v1/requests/{id}", name: "settle", isRemoval: true, removesMissing: true),
        ])

    static func key(_ item: Bellhop.UserRequest) -> String { item.id }
    static func precedes(_ one: Bellhop.UserRequest, _ other: Bellhop.UserRequest) -> Bool {
        one.id > other.id
    }
}

/// What the contract says of the list of the store `feed` (`x-stores`).
enum FeedList: ListData {
    static let list = ListDescription(
        name: "feed", path: "/v1/feed?limit=50", more: "more",
        storedMax: 500, keptMax: 50, isAscending: false,
        refused: ListRefusal(event: "feed:refused", member: "postId"),
        events: [
            "feed:new_post": ListChange(kind: .byHand),
            "feed:post_removed": ListChange(kind: .remove, by: "postId"),
            "engagement_update": ListChange(kind: .patchEach, of: "updates", isOnce: true),
        ],
        writes: [
            "like": ListWrite(
                method: "PUT", path: "/v1/posts/{id}/likes/me", name: "engage", set: ["liked": true],
                members: ["likeCount", "repostCount", "liked", "reposted"]),
            "unlike": ListWrite(
                method: "DELETE", path: "/v1/posts/{id}/likes/me", name: "engage", set: ["liked": false],
                members: ["likeCount", "repostCount", "liked", "reposted"]),
            "repost": ListWrite(
                method: "PUT", path: "/v1/posts/{id}/reposts/me", name: "engage", set: ["reposted": true],
                members: ["likeCount", "repostCount", "liked", "reposted"]),
            "unrepost": ListWrite(
                method: "DELETE", path: "/v1/posts/{id}/reposts/me", name: "engage", set: ["reposted": false],
                members: ["likeCount", "repostCount", "liked", "reposted"]),
        ])

    static func key(_ item: Bellhop.PostView) -> String { item.id }
    static func precedes(_ one: Bellhop.PostView, _ other: Bellhop.PostView) -> Bool {
        one.sequence > other.sequence
    }
}
