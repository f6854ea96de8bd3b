/// The limits of reading an app's log, each with its reason.
enum SourceLimits {
    /// Items of one of our transactions, for which all other writes wait. A source transaction with a million rows is
    /// taken in as many parts as necessary, with only one part in memory.
    static let batchItemsMax = 500
    /// Bytes of these items in the log. Without this limit, rows of a mebibyte could be in memory five hundred times.
    static let batchBytesMax = 4 << 20
    /// Rows of a table that are stored at once while it is read as it stands.
    static let snapshotRowsMax = 500
    /// Seconds for one table that is read as it stands, which is one statement: a million rows take some minutes. Without
    /// an end a server that has stopped sending would keep the lock on the table.
    static let snapshotSecondsMax = 3_600
    /// Bytes of what `bellhop.notify` and `bellhop.publish` write, as for requests. The functions refuse more, so that the
    /// app learns of it; a message of any size would be in memory whole, and in the event log.
    static let messageBytesMax = 64 * 1024
    /// How often the database is asked for its secret while messages come that do not have it. A role that writes such
    /// messages would otherwise have a query run for each.
    static let secretPause: Duration = .seconds(1)
    /// Frames that are read before the server is answered and the thread looks whether to stop. Messages that are ignored
    /// fill no part, so that they could go on without end.
    static let framesAtOnceMax = 10_000
    /// Bytes of a frame after which the connection is made again. The server sends a row or a message as one frame, of up
    /// to 1 GB; libpq has memory for the largest one until the connection ends.
    static let frameBytesKept = 8 << 20
    /// How often the source is told how far its log is stored here. Less often than half of `wal_sender_timeout`, it would
    /// end the connection.
    static let statusPause: Duration = .seconds(2)
    /// The interval at which an idle source writes a heartbeat into its log, so that the slot advances. Otherwise the
    /// server would retain the log that its other databases write.
    static let heartbeatPause: Duration = .seconds(10)
    /// How often it is asked whether the tables are still published. So long streams may lack rows without being told.
    static let publicationPause: Duration = .seconds(10)
    /// How often a replica that stands by looks whether the slot is free.
    static let standbyPause: Duration = .seconds(1)
    /// The first and the maximum pause after failures. All replicas must not reconnect at once when a server returns.
    static let retryPauses: (first: Duration, most: Duration) = (.milliseconds(200), .seconds(5))
    /// The pause while streams are served more slowly than rows arrive.
    static let congestionPause: Duration = .milliseconds(50)
    /// The interval in which the same problem is logged once.
    static let noticePause: Duration = .seconds(60)
    /// Cached types of the app. Any user with the right to change the app's schema can create one.
    static let typesMax = 10_000
}
