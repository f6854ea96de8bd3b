import Domain
import Rows
import TestSupport
import Testing
import Values

/// The parsing of a new post, and the updates that subscribers of a post receive.
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

    private static let post = Post(
        id: ID("p1"), authorId: ID("b1"), sequence: 4, visibility: .followers, text: "x", media: [],
        createdAt: Timestamp(microseconds: 5), engagement: Engagement(likeCount: 2, repostCount: 1))

    /// R-ENG-E-8: the change is read back in the form in which the log stores it, so that a replica can read entries of
    /// another.
    @Test func engagement_changesCountsOnly() throws {
        let change = Self.post.engagementChange(readers: ["user:b1"])
        #expect(RowChange(reading: change.encoded().bytes) == change)
        #expect(change.isOnlyCounts)
        #expect(change.cause.recordId == "p1")
        // The window of streams does not add a second wait of the post's interval.
        #expect(change.windowMilliseconds == 100)
        #expect(change.countColumns == ["likeCount": "like_count", "repostCount": "repost_count"])
        #expect(change.new?["like_count"] == .integer(2))
        #expect(change.new?["text"] == nil)
        let removal = Self.post.removalChange(readers: ["user:b1"], at: Timestamp(microseconds: 9))
        #expect(RowChange(reading: removal.encoded().bytes) == removal)
        #expect(removal.new == nil)
        #expect(removal.newReaders.isEmpty)
        #expect(removal.oldReaders == ["user:b1"])
    }
}
