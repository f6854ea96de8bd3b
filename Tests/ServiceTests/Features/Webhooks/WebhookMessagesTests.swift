import BellhopClient
import TestSupport
import Testing

/// The webhooks about messages that a member has not read, and the counts of every webhook, with a real receiver.
@Suite(.timed) struct WebhookMessagesTests {
    private static let ben = TestService.Identity.user("ben")

    /// Returns the id of a conversation of Ada and Ben.
    private static func conversation(_ probe: WebhookProbe) async throws -> String {
        let body = #"{"memberIds":["ada"],"title":"Trip"}"#
        let made = try await probe.service.call("POST", "/v1/conversations", as: ben, body)
        return try #require(made.json["id"].string)
    }

    private static func say(_ text: String, in id: String, _ probe: WebhookProbe) async throws {
        let body = #"{"text":"\#(text)"}"#
        let sent = try await probe.service.call("POST", "/v1/conversations/\(id)/messages", as: ben, body)
        #expect(sent.status == 201)
    }

    private static func read(_ id: String, _ probe: WebhookProbe) async throws {
        let path = "/v1/conversations/\(id)"
        let messages = try await probe.service.call("GET", "\(path)/messages", as: .user("ada")).items
        let body = #"{"sequence":\#(messages[0]["sequence"].int ?? 0)}"#
        let answer = try await probe.service.call("PUT", "\(path)/read-position", as: .user("ada"), body)
        #expect(answer.isSuccess, "\(answer.refusal)")
    }

    @Test func unreadMessages_areSentOnce_withTheNewest_andTheCountsOfThatMoment() async throws {
        let probe = try WebhookProbe()
        let id = try await Self.conversation(probe)
        try await Self.say("One", in: id, probe)
        try await Self.say("Two", in: id, probe)
        #expect(try probe.rows() == 1, "one webhook waits for each member")
        probe.passTime()
        let sent = try #require(try await probe.deliveries(1).first)
        #expect(sent.type == "message.unreached")
        let data = sent.json["data"]
        #expect(data["conversationId"].string == id && data["userId"] == "ada" && data["title"] == "Trip")
        #expect(data["unread"] == 2 && data["message"]["text"] == "Two" && data["quietHours"] == false)
        let badges = try await probe.service.call("GET", "/v1/badges", as: .user("ada")).json
        #expect(data["badges"]["total"] == 2)
        for (name, value) in badges.object ?? [:] { #expect(data["badges"][name] == value, "\(name)") }
    }

    @Test func conversationReadInTime_isNeverSent() async throws {
        let probe = try WebhookProbe()
        let id = try await Self.conversation(probe)
        try await Self.say("One", in: id, probe)
        try await Self.read(id, probe)
        #expect(try probe.rows() == 0)
    }

    /// A later message is sent again, and one withdrawal ends all.
    @Test func laterMessage_isSentAgain_andReadingWithdraws() async throws {
        let probe = try WebhookProbe()
        let id = try await Self.conversation(probe)
        try await Self.say("One", in: id, probe)
        probe.passTime()
        _ = try await probe.deliveries(1)
        try await probe.settled()
        try await Self.say("Two", in: id, probe)
        #expect(try probe.rows() == 1, "the new webhook replaces the sent one")
        try await Self.read(id, probe)
        let sent = try await probe.deliveries(2)
        #expect(sent.map(\.type) == ["message.unreached", "message.withdrawn"])
        #expect(sent[1].user == sent[0].user)
        #expect(sent[1].json["data"]["conversationId"].string == id && sent[1].json["data"]["reason"] == "read")
        #expect(sent[1].json["data"]["badges"]["total"] == 0)
        #expect(sent[0].id != sent[1].id)
    }

    @Test func messages_canBeLeftOut() async throws {
        let probe = try WebhookProbe(["webhookMessages": "false"])
        try await Self.say("One", in: Self.conversation(probe), probe)
        #expect(try probe.rows() == 0)
    }

    /// A receiver that was away gets the counts of the moment at which it comes back.
    @Test func counts_areThoseOfTheAttempt() async throws {
        let probe = try WebhookProbe()
        let first = try await probe.notify()
        try await probe.notify()
        let low = try await probe.notify("ada", "NORMAL")
        try await probe.mark(low)
        probe.passTime()
        let sent = try await probe.deliveries(2)
        #expect(sent.map { $0.json["data"]["badges"]["bell"] } == [2, 2])
        try await probe.mark(first)
        #expect(try await probe.deliveries(3)[2].json["data"]["badges"]["bell"] == 1)
    }
}
