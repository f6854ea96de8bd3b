/// The limits of challenges and their leaderboards, each with its reason.
public enum LeaderboardLimits {
    /// Challenges of one tenant. Without this limit, a backend that creates one per user would fill the disk with empty
    /// ones.
    public static let challengesMax = 10_000
    /// Bytes of a challenge's name, and of a name that is shown beside a score. Both are drawn in one line.
    public static let nameBytesMax = 200
    public static let displayNameBytesMax = 100
    /// Entries of one leaderboard. The order of two million entries takes some 120 MB of memory on each replica, and is
    /// loaded in two seconds.
    public static let entriesMax = 2_000_000
    /// Items of a leaderboard if the request names no number (R-CUT-L-1).
    public static let topDefault = 100
    /// The maximum number of items from the top: 50 KB, and as many reads of names.
    public static let topMax = 500
    /// Default number of items on each side of the caller.
    public static let aroundDefault = 5
    public static let aroundMax = 100
    /// Lines that watchers see live (R-CUT-L-1). The first update has 10 KB, or 35 KB with the longest ids and names.
    /// After that, at most one update per second carries the lines that moved. With more lines, many entries that pass
    /// one another would cost as much again.
    public static let watchedTop = 100
    /// The pause between two updates of one leaderboard: at most one update per second.
    public static let updatePauseSeconds: Int64 = 1

    /// Leaderboards with up to this many entries are loaded by the first request that needs them, in a few
    /// milliseconds. Larger ones are loaded in the background; meanwhile requests are answered from the table.
    public static let loadedInlineMax = 2_000
    /// Changes that a leaderboard in memory catches up with one by one. Beyond that, reloading it is cheaper.
    public static let caughtUpMax = 10_000
    /// Leaderboards in memory, however small. Each round visits every one of them.
    public static let residentBoardsMax = 10_000
    /// Changed entries that are collected until their movement is published. Beyond that, all entries count as moved.
    public static let movementMax = 20_000
    /// Connected users that are looked up in one pass of a quarter of a second; these lookups take a tenth of a core.
    /// With more users, the round of a leaderboard takes several passes.
    public static let lookupsPerPassMax = 20_000
    /// Own ranks in the first event of a stream. A user on more leaderboards requests the others.
    public static let ownRanksMax = 20
    /// Leaderboards that have not moved for this long are left out of the first event, because their ranks are
    /// unchanged since the user last saw them.
    public static let ownRanksSeconds: Int64 = 3_600
    /// The number of most recently moved leaderboards that are searched for own ranks. Each costs a read whenever a
    /// stream opens.
    public static let recentlyMovedMax = 100
    /// Rows of a deleted challenge that are removed in one step. All other writes wait for the step.
    public static let removedAtOnceMax = 1_000
}
