// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// List conversations
    ///
    /// Lists the caller's conversations. The conversation with the newest message comes first.
    ///
    /// `GET /v1/conversations`
    ///
    /// - Parameters:
    ///   - unread: if true, only conversations with unread messages.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listConversations(unread: Bool? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Conversation>>
    {
        var call = try Bellhop.Call("GET", "/v1/conversations")
        call.query("unread", unread)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List conversations, page by page; `limit` is the number of items on a page.
    public func conversationPages(unread: Bool? = nil, limit: Int? = nil)
        -> Bellhop.Pages<Bellhop.Page<Bellhop.Conversation>>
    {
        Bellhop.Pages { cursor in try await listConversations(unread: unread, limit: limit, cursor: cursor) }
    }

    /// Create a conversation
    ///
    /// Creates a conversation of the caller with other users. A service token creates a conversation without joining
    /// it. Limits: 256 members per conversation, and 1,000 conversations per user (409 `conversation.too_many`).
    ///
    /// A client-chosen `id` makes the call idempotent: a repeated call returns 200 with the existing conversation. A
    /// user's id must be a random UUID of version 4 or 7, so that guessing ids reveals nothing; any other id is 422
    /// `/id`, taken or not. A backend may choose any id. An id that belongs to a conversation of other users is 409
    /// `conversation.id_taken`.
    ///
    /// Two users share one `direct` conversation, no matter which of them creates it. A user rejoins it after leaving.
    ///
    /// A file of tables can restrict new conversations to friends or teams, and exclude blocked users (403
    /// `contact.refused`). The rule applies to each member, also if the direct conversation exists.
    ///
    /// `POST /v1/conversations`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func createConversation(_ body: Bellhop.CreateConversationBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.ConversationWithMembers>
    {
        var call = try Bellhop.Call("POST", "/v1/conversations")
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Get a conversation
    ///
    /// Returns the conversation with its members and the caller's unread count.
    ///
    /// `GET /v1/conversations/{id}`
    public func getConversation(id: String) async throws -> Bellhop.Answer<Bellhop.ConversationWithMembers> {
        let call = try Bellhop.Call("GET", "/v1/conversations/{id}", ["id": id])
        return try await answer(call)
    }

    /// Rename a conversation
    ///
    /// Sets the title of a group; null removes it. Requires membership or a service token. A direct conversation is 409
    /// `conversation.direct`.
    ///
    /// `PATCH /v1/conversations/{id}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func changeConversation(id: String, _ body: Bellhop.ChangeConversationBody, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.ConversationWithMembers>
    {
        var call = try Bellhop.Call("PATCH", "/v1/conversations/{id}", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Add a member to a conversation
    ///
    /// Adds a user to a group. Requires membership or a service token. Earlier messages do not count as unread for the
    /// new member. Adding a present member changes nothing. A full conversation is 409 `conversation.full`; a direct
    /// one is 409 `conversation.direct`. A file of tables can restrict the possible new members (403
    /// `contact.refused`).
    ///
    /// `PUT /v1/conversations/{id}/members/{userId}`
    ///
    /// - Parameters:
    ///   - userId: id of the user; `me` is the caller.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func addMember(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.ConversationWithMembers>
    {
        var call = try Bellhop.Call("PUT", "/v1/conversations/{id}/members/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Remove a member from a conversation
    ///
    /// Users can remove only themselves; a service token can remove any member. The unread messages of the conversation
    /// leave the member's badge.
    ///
    /// `DELETE /v1/conversations/{id}/members/{userId}`
    ///
    /// - Parameters:
    ///   - userId: id of the user; `me` is the caller.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func removeMember(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.BadgesAfter>
    {
        var call = try Bellhop.Call("DELETE", "/v1/conversations/{id}/members/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// List messages
    ///
    /// Lists the newest messages first. With `since`, lists messages after that sequence number, the oldest first.
    /// Sequence numbers have no gaps. A deleted message keeps its number and has an empty text.
    ///
    /// `GET /v1/conversations/{id}/messages`
    ///
    /// - Parameters:
    ///   - since: sequence number of the last message that the client has.
    ///   - limit: maximum number of items on a page.
    ///   - cursor: value of `next` of the previous page. Use it with the same filters.
    public func listMessages(id: String, since: Int? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Message>>
    {
        var call = try Bellhop.Call("GET", "/v1/conversations/{id}/messages", ["id": id])
        call.query("since", since)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// List messages, page by page; `limit` is the number of items on a page.
    public func messagePages(id: String, since: Int? = nil, limit: Int? = nil)
        -> Bellhop.Pages<Bellhop.Page<Bellhop.Message>>
    {
        Bellhop.Pages { cursor in try await listMessages(id: id, since: since, limit: limit, cursor: cursor) }
    }

    /// Send a message
    ///
    /// The message gets the next sequence number of the conversation and counts as unread for every other member. Each
    /// member receives `message:created` with that member's own counts. A client-chosen `id` makes the call idempotent:
    /// a repeated call returns 200 with the first message.
    ///
    /// In a direct conversation, the rule of a file of tables applies to each message. After a later block, the answer
    /// is 403 `contact.refused`. The messages of a group need only the membership.
    ///
    /// The devices of the other members get push messages. A user may cause 5,120 of them in a minute on each replica.
    /// Further ones wait until the pace allows them, and those about one conversation become one alert. Streams receive
    /// the message at once.
    ///
    /// `POST /v1/conversations/{id}/messages`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func sendMessage(id: String, _ body: Bellhop.SendMessageBody, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.SentMessage>
    {
        var call = try Bellhop.Call("POST", "/v1/conversations/{id}/messages", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Delete a message
    ///
    /// Erases the text of the message, which then no longer counts as unread. Users can delete only their own messages;
    /// a service token can delete any. Deleting a message again changes nothing.
    ///
    /// `DELETE /v1/conversations/{id}/messages/{messageId}`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func deleteMessage(id: String, messageId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.BadgesAfter>
    {
        var call = try Bellhop.Call(
            "DELETE", "/v1/conversations/{id}/messages/{messageId}", ["id": id, "messageId": messageId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Set the read position
    ///
    /// Stores how far the caller has read. The position only moves forward, because several devices report theirs in
    /// any order; a smaller position changes nothing. With `allowRewind`, it can move back to mark messages as unread:
    /// by at most 10,000 messages, and not to before the caller joined. A position after the last message is 422. All
    /// devices of the caller receive the new position as `conversation:read`.
    ///
    /// `PUT /v1/conversations/{id}/read-position`
    ///
    /// - Parameters:
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func readConversation(id: String, _ body: Bellhop.ReadConversationBody, idempotencyKey: String? = nil)
        async throws -> Bellhop.Answer<Bellhop.ReadPosition>
    {
        var call = try Bellhop.Call("PUT", "/v1/conversations/{id}/read-position", ["id": id])
        try call.json(body)
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }
}
