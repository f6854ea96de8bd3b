/// The limits of erasures and exports, each with its reason.
enum ErasureLimits {
    /// Erasures of a tenant that are not done. Each looks through all tables of the tenant twice.
    static let openMax = 100
    /// Rows of a table that one transaction looks through. All writes wait for it: a millisecond or two.
    static let scannedAtOnceMax = 1000
    /// The same for rows whose content is read.
    static let readAtOnceMax = 300
    /// How long consecutive steps share a transaction of SQLite. Each transaction costs a write to the disk.
    static let transactionDuration: Duration = .milliseconds(2)
    /// Rows that one statement of an export reads. The connection to the database is in use meanwhile.
    static let exportedAtOnceMax = 500
    /// Bytes after which a piece of an export ends. With a long row, it has some more.
    static let pieceBytes = 64 * 1024
    /// Statements for a piece of an export, which may find nothing. The client would otherwise wait for the first byte
    /// until a long table is read.
    static let pieceStatementsMax = 50
    /// Seconds between two rounds. Each round may rewrite a file of SQLite while all writes wait. An administrator that
    /// requests many erasures would otherwise stop the writes of all tenants.
    static let roundSeconds: Int64 = 60
    /// Seconds between the beginning of a round and the look at the transactions that may not know of it. Within them,
    /// every replica reads whose erasures are about to end. It must be longer than twice `ErasureGate.trusted`.
    static let closingPauseSeconds: Int64 = 3
    /// Seconds between two looks at what an erasure waits for.
    static let lookSeconds: Int64 = 1
    /// Seconds until replicas have published the events that are about to be erased. A replica that is further behind finds
    /// erased events and restarts its streams. It must be longer than `LogFollower.memoryMax`, for which a replica
    /// publishes its own events without reading the log.
    static let logPauseSeconds: Int64 = 10
    /// Bytes of a file of SQLite that is rewritten at once. All writes wait for it: about a second. A larger file is
    /// rewritten in an hour that a setting names.
    static let rewrittenAtOnceBytesMax = 256 << 20
    /// Times, a second apart, that a round tries to empty the write-ahead log while reads use it. Requests that name its
    /// persons are refused meanwhile.
    static let busyCheckpointsMax = 5
    /// Seconds after which a round is tried again, while a long read keeps the write-ahead log in use or the disk is
    /// full.
    static let retrySeconds: Int64 = 60
}
