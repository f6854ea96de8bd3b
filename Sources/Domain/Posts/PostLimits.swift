/// The bounds of posts and followers, each with what breaks without it.
public enum PostLimits {
    /// Bytes of a post's text. It stands in one event and in each page of a feed.
    public static let textBytesMax = 4000
    /// Pictures and films of a post.
    public static let mediaMax = 10
    /// Bytes of the address of one of them.
    public static let mediaBytesMax = 1024
    /// Posts of an author. Without it one author could fill the disk, a post at a time.
    public static let postsOfAuthorMax = 100_000
    /// Authors that a user can follow. Each is a key of every open stream of that user, and a look into an index for
    /// each page of the feed: with a thousand a page takes some milliseconds.
    public static let followedMax = 1000
    /// New posts that are counted; above it the answer says "more", as a banner does.
    public static let newCountMax = 1000
    /// Items of one page.
    public static let pageMax = 100
    /// The interval in which the engagement of a post is published at most once, however many like it. Without it a
    /// storm of likes would append an event for each.
    public static let engagementIntervalSeconds: Int64 = 1
    /// Posts whose engagement is published in one step; the next step is a second later.
    public static let engagementsPerStepMax = 500
}
