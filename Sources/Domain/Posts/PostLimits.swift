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
    /// Authors that a user can follow. Each is a key of every open stream of that user, and a look into an index for each
    /// page of the feed: with a thousand a page takes some milliseconds.
    public static let followedMax = 1000
    /// New posts that are counted; more are said to be more. A banner says so too.
    public static let newCountMax = 1000
    /// Items of one page.
    public static let pageMax = 100
    /// Engagement of a post is told at most once in this time, however many like it: by it a storm of likes costs the log
    /// one event a second.
    public static let tellingSeconds: Int64 = 1
    /// Posts whose engagement one step of the telling tells; the next step is a second later.
    public static let toldAtOnceMax = 500
}
