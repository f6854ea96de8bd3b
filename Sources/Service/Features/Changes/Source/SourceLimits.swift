/// The limits of reading an app's log, each with its reason.
enum SourceLimits {
    /// Items of one of our transactions, for which all other writes wait. A source transaction with a million rows is
    /// taken in as many parts as necessary, with only one part in memory.
    static let batchItemsMax = 500
    /// Bytes of these items in the log. Without this limit, rows of a mebibyte could be in memory five hundred times.
    static let batchBytesMax = 4 << 20
    /// Rows of a table's snapshot that are stored at once.
    static let snapshotRowsMax = 500
    /// Seconds for the snapshot of one table, which is one statement; a million rows take some minutes. Without this
    /// limit, a server that has stopped sending would hold the lock on the table forever.
    static let snapshotSecondsMax = 3_600
    /// Bytes of one message of `bellhop.notify` or `bellhop.publish`, as for requests. The functions refuse longer
    /// messages, so that the app gets an error. Without this limit, messages of any size would be in memory and in the
    /// event log.
    static let messageBytesMax = 64 * 1024
    /// The pause between queries for the database's secret while messages without it arrive. Otherwise a role that
    /// writes such messages would cause a query for each.
    static let secretPause: Duration = .seconds(1)
    /// Frames that are read before the server gets a status and the thread checks whether to stop. Ignored messages do
    /// not count towards a part, so without this limit they could arrive without end.
    static let framesAtOnceMax = 10_000
    /// Bytes of a frame above which the connection is replaced. The server sends a row or a message as one frame of up
    /// to 1 GB, and libpq keeps memory for the largest one until the connection ends.
    static let frameBytesKept = 8 << 20
    /// The interval between reports to the source about the stored position. Above half of `wal_sender_timeout`, the
    /// source would end the connection.
    static let statusPause: Duration = .seconds(2)
    /// The interval at which an idle source writes a heartbeat into its log, so that the slot advances. Otherwise the
    /// server would retain the log that its other databases write.
    static let heartbeatPause: Duration = .seconds(10)
    /// The interval between checks whether the tables are still published. For this time, streams may lack rows without
    /// a resync.
    static let publicationPause: Duration = .seconds(10)
    /// The interval between looks at the catalog, one query of about a millisecond. For this time, memberships may count
    /// whose rows a DDL statement has removed.
    static let statesPause: Duration = .seconds(2)
    /// The interval at which a standby replica checks whether the slot is free.
    static let standbyPause: Duration = .seconds(1)
    /// The first and the maximum pause after failures, so that not all replicas reconnect at once when a server
    /// returns.
    static let retryPauses: (first: Duration, most: Duration) = (.milliseconds(200), .seconds(5))
    /// The pause while streams are served more slowly than rows arrive.
    static let congestionPause: Duration = .milliseconds(50)
    /// The interval in which the same problem is logged once.
    static let noticePause: Duration = .seconds(60)
    /// Cached types of the app. Any user with the right to change the app's schema can create one.
    static let typesMax = 10_000
}
