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
    /// The interval in which a post's engagement is published at most once. Without it, a storm of likes would append
    /// an event for each like.
    public static let engagementIntervalSeconds: Int64 = 1
    /// Posts whose engagement is published in one step. The next step follows a second later.
    public static let engagementsPerStepMax = 500
}
