// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension BellhopClient {
    /// The caller's conversations, the one with the newest message first.
    ///
    /// `GET /v1/conversations`
    ///
    /// - Parameters:
    ///   - unread: only those with unread messages.
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listConversations(unread: Bool? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Conversation>>
    {
        var call = try Bellhop.Call("GET", "/v1/conversations")
        call.query("unread", unread)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// The caller's conversations, the one with the newest message first. All pages, one after another; `limit` is how
    /// many items one of them has.
    public func conversationPages(unread: Bool? = nil, limit: Int? = nil)
        -> Bellhop.Pages<Bellhop.Page<Bellhop.Conversation>>
    {
        Bellhop.Pages { cursor in try await listConversations(unread: unread, limit: limit, cursor: cursor) }
    }

    /// A conversation of the caller with others.
    ///
    /// An id of the caller's own makes repeating it harmless: 200 with the one there is. A user's is a random UUID, of
    /// version 4 or 7, so that trying ids tells nobody which conversations there are (422 `/id` for others, taken or
    /// not); a backend's is what it likes. 409 `conversation.id_taken` if it is somebody else's. A pair has one
    /// `direct` conversation, whoever begins it; one who has left comes back to it. A backend is in none of those it
    /// makes. At most 256 members, and 1,000 conversations of each user (409 `conversation.too_many`).
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

    /// One conversation, with its members, and what of it is unread to the caller.
    ///
    /// `GET /v1/conversations/{id}`
    public func getConversation(id: String) async throws -> Bellhop.Answer<Bellhop.ConversationWithMembers> {
        let call = try Bellhop.Call("GET", "/v1/conversations/{id}", ["id": id])
        return try await answer(call)
    }

    /// Another title; null for none.
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

    /// Adds somebody to a group, who has nothing unread from before.
    ///
    /// Members and backends add. Who is in it already stays. A full conversation is 409 `conversation.full`.
    ///
    /// `PUT /v1/conversations/{id}/members/{userId}`
    ///
    /// - Parameters:
    ///   - userId: a user's id; `me` is the caller.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func addMember(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.ConversationWithMembers>
    {
        var call = try Bellhop.Call("PUT", "/v1/conversations/{id}/members/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Leaves a conversation; its unread messages leave the badge.
    ///
    /// Members leave by themselves; backends remove anybody.
    ///
    /// `DELETE /v1/conversations/{id}/members/{userId}`
    ///
    /// - Parameters:
    ///   - userId: a user's id; `me` is the caller.
    ///   - idempotencyKey: the same call with the same key is done once; the answer is kept for 24 hours.
    @discardableResult
    public func removeMember(id: String, userId: String, idempotencyKey: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.BadgesAfter>
    {
        var call = try Bellhop.Call("DELETE", "/v1/conversations/{id}/members/{userId}", ["id": id, "userId": userId])
        try call.header("Idempotency-Key", idempotencyKey)
        return try await answer(call)
    }

    /// Messages, the newest first; with `since`, the oldest first from behind that number.
    ///
    /// Numbers have no gaps. A deleted message keeps its number, and has no text.
    ///
    /// `GET /v1/conversations/{id}/messages`
    ///
    /// - Parameters:
    ///   - since: the last sequence that is known.
    ///   - cursor: the `next` of the page before, with the same filters.
    public func listMessages(id: String, since: Int? = nil, limit: Int? = nil, cursor: String? = nil) async throws
        -> Bellhop.Answer<Bellhop.Page<Bellhop.Message>>
    {
        var call = try Bellhop.Call("GET", "/v1/conversations/{id}/messages", ["id": id])
        call.query("since", since)
        call.query("limit", limit)
        call.query("cursor", cursor)
        return try await answer(call)
    }

    /// Messages, the newest first; with `since`, the oldest first from behind that number. All pages, one after
    /// another; `limit` is how many items one of them has.
    public func messagePages(id: String, since: Int? = nil, limit: Int? = nil)
        -> Bellhop.Pages<Bellhop.Page<Bellhop.Message>>
    {
        Bellhop.Pages { cursor in try await listMessages(id: id, since: since, limit: limit, cursor: cursor) }
    }

    /// Sends a message.
    ///
    /// It gets the conversation's next number, is unread to every other member, and is told to each with that member's
    /// own counts (`message:created`). An id of the sender's own makes repeating it harmless: 200 with the first.
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

    /// Takes a message's text away; it is unread no more.
    ///
    /// Senders delete their own, backends any. Doing it again changes nothing.
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

    /// How far the caller has read.
    ///
    /// A position only grows, since several devices report theirs in any order: a smaller one changes nothing, unless
    /// `allowRewind` says that messages are to be unread again (back over 10,000 at most, and not before the caller
    /// joined). One behind the last message is 422. The answer is told to all of the caller's devices as
    /// `conversation:read`.
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
