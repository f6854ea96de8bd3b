/// The bounds of reading an app's log, each with what breaks without it.
enum SourceLimits {
    /// Items of one of our transactions: all other writes wait for it. A transaction of the source with a million rows is
    /// taken in so many parts; none of it is in memory but one part.
    static let batchItemsMax = 500
    /// Bytes of them as the log has them: some rows of a mebibyte would otherwise be in memory five hundred times.
    static let batchBytesMax = 4 << 20
    /// Rows of a table that are fetched, and stored, at once while it is read as it stands.
    static let snapshotRowsMax = 500
    /// Bytes of what `bellhop.notify` and `bellhop.publish` write, as for requests.
    static let messageBytesMax = 64 * 1024
    /// How often the source is told how far its log is stored here. Less often than half of `wal_sender_timeout`, it would
    /// end the connection.
    static let statusPause: Duration = .seconds(2)
    /// An idle source writes into its log this often, so that the slot moves on: what other databases of the server write
    /// would be retained for it.
    static let heartbeatPause: Duration = .seconds(10)
    /// How often a replica that stands by looks whether the slot is free.
    static let standbyPause: Duration = .seconds(1)
    /// After a failure: at first, and at most. A server that comes back is not to be met by everybody at once.
    static let retryPauses: (first: Duration, most: Duration) = (.milliseconds(200), .seconds(5))
    /// How long it is waited while streams are served more slowly than rows come.
    static let congestionPause: Duration = .milliseconds(50)
    /// The same trouble is logged once in this time.
    static let noticePause: Duration = .seconds(60)
    /// Types of an app's own that are known without asking. Each is made by somebody who may change its schema.
    static let typesMax = 10_000
}
