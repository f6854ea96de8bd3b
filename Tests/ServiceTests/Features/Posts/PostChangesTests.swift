import Domain
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// The updates that subscribers of a post receive.
@Suite(.timed) struct PostChangesTests {
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
