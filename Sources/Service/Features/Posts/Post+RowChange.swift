import Domain
import Rows
import Values

extension Post {
    /// The schema and the table under which streams subscribe to posts:
    /// `{"schema": "bellhop", "table": "posts", "event": "UPDATE", "filter": "id=in.(…)"}` (R-ENG-E-1).
    static let subscribable = (schema: "bellhop", table: "posts")

    static let rowColumns: ColumnTypes = [
        "id": .text, "author_id": .text, "visibility": .text, "sequence": .bigint, "like_count": .bigint,
        "repost_count": .bigint,
    ]

    /// The post as a row, which filters compare and `table:change` contains.
    private var row: RowChange.Row {
        [
            "id": .string(id.text), "author_id": .string(authorId.text), "visibility": .string(visibility.rawValue),
            "sequence": .integer(Int64(sequence)), "like_count": .integer(Int64(engagement.likeCount)),
            "repost_count": .integer(Int64(engagement.repostCount)),
        ]
    }

    /// Returns a change of the counts. Streams that subscribe to the post collect it into their next
    /// `engagement_update` (R-ENG-E-8).
    ///
    /// - Parameter readers: The keys that may see the post.
    func engagementChange(readers: [String]) -> RowChange {
        RowChange(
            ofOwn: Self.subscribable, .update, recordId: id.text, old: row, new: row, readers: readers,
            windowMilliseconds: PostLimits.engagementWindowMilliseconds,
            countColumns: ["likeCount": "like_count", "repostCount": "repost_count"])
    }

    func removalChange(readers: [String], at moment: Timestamp) -> RowChange {
        RowChange(
            ofOwn: Self.subscribable, .delete, recordId: id.text, old: row, new: nil, readers: readers, at: moment)
    }
}
