/// The limits of erasures and exports, each with its reason.
enum ErasureLimits {
    /// Rows of a table that one transaction looks through. All writes wait for it: a millisecond or two.
    static let scannedAtOnceMax = 1000
    /// The same for rows whose content is read.
    static let readAtOnceMax = 300
    /// Rows that one statement of an export reads. The connection to the database is in use meanwhile.
    static let exportedAtOnceMax = 500
    /// Bytes after which a piece of an export ends. With a long row, it has some more.
    static let pieceBytes = 64 * 1024
    /// Statements for a piece of an export, which may find nothing. The client would otherwise wait for the first byte
    /// until a long table is read.
    static let pieceStatementsMax = 50
    /// Seconds until replicas have published the events that are about to be erased. A replica that is further behind finds
    /// erased events and restarts its streams. It must be longer than `LogFollower.memoryMax`, for which a replica
    /// publishes its own events without reading the log.
    static let logPauseSeconds: Int64 = 10
    /// Repetitions of an erasure for which rows of the person appear while it runs. An app that stores new rows about the
    /// person again and again would keep it from ending.
    static let passesMax = 3
    /// Bytes of a file of SQLite that is rewritten at once. All writes wait for it: about a second. A larger file is
    /// rewritten in an hour that a setting names.
    static let rewrittenAtOnceBytesMax = 256 << 20
    /// Seconds after which a last step is tried again, while a long read keeps the write-ahead log in use or the disk is
    /// full.
    static let retrySeconds: Int64 = 5
}
