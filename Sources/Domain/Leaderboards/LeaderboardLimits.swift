/// The bounds of challenges and their leaderboards, each with what breaks without it.
public enum LeaderboardLimits {
    /// Challenges of one tenant. Without it a backend that makes one for each user fills the disk with empty ones.
    public static let challengesMax = 10_000
    /// Bytes of a challenge's name, and of a name that is shown beside a score: both are drawn in one line.
    public static let nameBytesMax = 200
    public static let displayNameBytesMax = 100
    /// Entries of one board. The order of two millions takes some 120 MB of memory on each replica, and is read in two
    /// seconds.
    public static let entriesMax = 2_000_000
    /// Items of a leaderboard, if the request names no number (CUT L-1).
    public static let topDefault = 100
    /// The most items from the top: 50 KB, and as many reads of names.
    public static let topMax = 500
    /// Items on each side of the caller.
    public static let aroundDefault = 5
    public static let aroundMax = 100
    /// Lines of a board that watchers see live (CUT L-1): 10 KB once, with the longest ids and names 35; and then, once a
    /// second at most, the lines that have moved. With more, the first of many who pass one another costs as much again.
    public static let watchedTop = 100
    /// The pause between two updates of one board (DESIGN: at most one a second).
    public static let updatePauseSeconds: Int64 = 1

    /// Boards with so many entries are read into memory by whoever asks first, in some milliseconds; larger ones
    /// beside the requests, which are answered from the table meanwhile.
    public static let builtAtOnceMax = 2_000
    /// Changes that a board in memory follows one by one. Behind by more, reading it anew is cheaper.
    public static let caughtUpMax = 10_000
    /// Boards in memory, however small: each is looked at in each round.
    public static let residentBoardsMax = 10_000
    /// Changed entries that are collected until their movement is published. With more, everybody counts as moved.
    public static let movementMax = 20_000
    /// Connected users who are looked up in one pass of a quarter of a second: together a tenth of a core.
    /// With more of them, a board's round takes several passes.
    public static let lookedUpAtOnceMax = 20_000
    /// Own ranks that a stream begins with. A user of more boards asks for the others.
    public static let ownRanksMax = 20
    /// Boards that have not moved for so long are not among them: their ranks are as they were seen.
    public static let ownRanksSeconds: Int64 = 3_600
    /// Boards that are looked through for them, those that moved last: each costs a read at every opening.
    public static let latelyMovedMax = 100
    /// Rows of a deleted challenge that are removed at once: everybody who writes waits for it.
    public static let removedAtOnceMax = 1_000
}
