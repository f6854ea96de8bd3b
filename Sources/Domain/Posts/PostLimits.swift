/// The limits of posts and followers, each with its reason.
public enum PostLimits {
    /// Bytes of a post's text. One event and every page of a feed contain it.
    public static let textBytesMax = 4000
    /// Pictures and films of a post.
    public static let mediaMax = 10
    /// Bytes of the address of a picture or film.
    public static let mediaBytesMax = 1024
    /// Posts of an author. Without this limit, one author could fill the disk post by post.
    public static let postsOfAuthorMax = 100_000
    /// Authors that a user can follow. Each is a key of every open stream of that user, and an index lookup for each
    /// page of the feed. With a thousand, a page takes some milliseconds.
    public static let followedMax = 1000
    /// New posts that are counted. Above this number the answer says "more", as a banner does.
    public static let newCountMax = 1000
    /// Items of one page.
    public static let pageMax = 100
    /// The interval in which a post's engagement is published at most once, however many users like it. Without this
    /// limit, a storm of likes would append an event for each.
    ///
    /// The first like after a pause reaches streams within ``engagementWindowMilliseconds``. A later one waits for the
    /// end of the interval, for the step that runs every second (1.25 s at most), and for the window: 2.35 s at most.
    public static let engagementIntervalSeconds: Int64 = 1
    /// The window in which a stream collects the counts of several posts into one event. The interval already bounds
    /// the events of one post. Without the window, a stream that watches 100 posts would receive an event for each.
    public static let engagementWindowMilliseconds = 100
    /// Posts whose engagement is published in one step; the next step is a second later.
    public static let engagementsPerStepMax = 500
}
