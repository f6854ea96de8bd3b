import Domain
import TestSupport
import Testing
import Values

/// The parsing of requests about conversations, and the previews of messages in lists.
@Suite(.timed) struct MessageTests {
    @Test(arguments: [
        ("Hello", "Hello"), ("  two\n\n lines\t", "two lines"), ("", ""),
        (String(repeating: "a", count: 120), String(repeating: "a", count: 120)),
        (String(repeating: "é", count: 121), String(repeating: "é", count: 120) + "…"),
        (String(repeating: "👩‍👩‍👧", count: 200), String(repeating: "👩‍👩‍👧", count: 120) + "…"),
    ])
    func preview_isOneShortLine(_ text: String, _ line: String) {
        #expect(MessagePreview.line(of: text) == line)
    }

    @Test func deletedMessage_showsNothing() {
        let message = Message(
            id: ID("m"), conversationId: ID("c"), sequence: 3, senderId: ID("u"), text: "",
            sentAt: Timestamp(microseconds: 0), deletedAt: Timestamp(microseconds: 1))
        #expect(message.preview.preview == nil)
    }

    private static func wish(_ body: String) throws -> ConversationDraft {
        var fields = try Fields(Array(body.utf8))
        let wish = ConversationDraft(reading: &fields)
        try fields.finish()
        return wish
    }

    @Test func members_areDistinct_includingTheCaller() throws {
        let wish = try Self.wish(#"{"memberIds":["b","a","b"]}"#)
        #expect(wish.kind == .group)
        #expect(try wish.members(with: ID("a")) == [ID("a"), ID("b")])
        #expect(try wish.members(with: nil) == [ID("a"), ID("b")])
    }

    @Test(arguments: [
        #"{}"#, #"{"memberIds":null}"#,
        #"{"memberIds":"u1"}"#, #"{"memberIds":["a\u0007"]}"#, #"{"memberIds":["a"],"kind":"crowd"}"#,
        #"{"memberIds":["a"],"kind":"direct","id":"c1"}"#, #"{"memberIds":["a"],"kind":"direct","title":"us"}"#,
        #"{"memberIds":["a"],"title":"two\nlines"}"#, #"{"memberIds":["a"],"members":[]}"#,
    ])
    func unusableWish_isRefused(_ body: String) {
        #expect(throws: Failure.self) { try Self.wish(body) }
    }

    @Test func pairHasTwoMembers_andAGroupAtLeastOne() throws {
        let direct = try Self.wish(#"{"memberIds":["b"],"kind":"direct"}"#)
        #expect(try direct.members(with: ID("a")).count == 2)
        #expect(throws: Failure.self) { try direct.members(with: ID("b")) }
        #expect(throws: Failure.self) { try direct.members(with: nil) }
        let empty = try Self.wish(#"{"memberIds":[]}"#)
        #expect(try empty.members(with: ID("a")) == [ID("a")])
        #expect(throws: Failure.self) { try empty.members(with: nil) }
        let many = (0..<ConversationLimits.membersMax).map { "\"u\($0)\"" }.joined(separator: ",")
        let full = try Self.wish(#"{"memberIds":[\#(many)]}"#)
        #expect(try full.members(with: ID("u0")).count == ConversationLimits.membersMax)
        #expect(throws: Failure.self) { try full.members(with: ID("one more")) }
    }

    @Test(arguments: ["{}", #"{"text":""}"#, #"{"text":" \n "}"#, #"{"text":7}"#, #"{"text":"a","kind":"b"}"#])
    func unusableMessage_isRefused(_ body: String) throws {
        var fields = try Fields(Array(body.utf8))
        _ = MessageDraft(reading: &fields)
        #expect(throws: Failure.self) { try fields.finish() }
    }
}
