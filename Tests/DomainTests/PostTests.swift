import Domain
import TestSupport
import Testing
import Values

/// The parsing of a new post.
@Suite(.timed) struct PostTests {
    private static func draft(_ body: String) throws -> PostDraft {
        var fields = try Fields(Array(body.utf8))
        let draft = PostDraft(reading: &fields)
        try fields.finish()
        return draft
    }

    @Test func draft_isPublic_unlessItSaysOtherwise() throws {
        let plain = try Self.draft(#"{"text":"New cut"}"#)
        #expect(plain.visibility == .public)
        #expect(plain.text == "New cut")
        #expect(plain.media.isEmpty)
        #expect(plain.authorId == nil)
        let other = try Self.draft(#"{"media":["https://x/y.jpg"],"visibility":"followers","authorId":"b1"}"#)
        #expect(other.visibility == .followers)
        #expect(other.text.isEmpty)
        #expect(other.media == ["https://x/y.jpg"])
        #expect(other.authorId == ID("b1"))
    }

    @Test(arguments: [
        #"{}"#, #"{"text":""}"#, #"{"text":" \n "}"#, #"{"text":7}"#, #"{"text":"a","visibility":"friends"}"#,
        #"{"media":["a b"]}"#, #"{"media":[""]}"#, #"{"media":"x"}"#, #"{"text":"a","likeCount":9}"#,
        #"{"text":"a","authorId":""}"#, #"{"media":["1","2","3","4","5","6","7","8","9","10","11"]}"#,
    ])
    func badDraft_isRefused(_ body: String) {
        #expect(throws: Failure.self) { try Self.draft(body) }
    }

    @Test func text_isAcceptedUpToItsLimit() throws {
        let most = String(repeating: "a", count: PostLimits.textBytesMax)
        #expect(try Self.draft(#"{"text":"\#(most)"}"#).text == most)
        #expect(throws: Failure.self) { try Self.draft(#"{"text":"\#(most)a"}"#) }
    }
}
