/// The settings of a store, each with the reason for its value.
public struct StoreOptions: Sendable {
    public enum Access: Sendable {
        /// The one service that writes. A second one is refused.
        case exclusive
        /// Reads beside a running service (`bellhop check`); takes no lock and writes nothing.
        case readOnly
        /// Makes and changes the tables (`bellhop migrate`): on PostgreSQL as a role that may do so, which the service
        /// itself must not.
        case owner
    }

    public var access: Access = .exclusive
    /// Writes that may wait. Without a bound a slow disk turns into memory that grows until the process is killed.
    public var queueDepthMax = 4096
    /// Jobs of one commit. Without a bound one fsync would be shared by thousands, but the first of them would wait
    /// for the last; 512 already makes the fsync a small part of the whole.
    public var batchJobsMax = 512
    /// After this time no further job joins a batch. Without it a few slow jobs delay the answers of all others.
    public var batchDuration: Duration = .milliseconds(20)
    /// How long to wait for a lock that another process has (the sqlite3 tool, a backup). Without it any such
    /// visitor fails our writes at once; much longer, and the queue fills up behind it.
    public var busyTimeout: Duration = .seconds(5)
    /// Pages of a connection's own cache. The writer alone uses its cache across commits, and its working set is
    /// the upper pages of all indexes; a reader's cache is emptied by every commit of the writer, so memory spent
    /// there is wasted: it reads through the memory map instead.
    public var writerCacheKiB = 16 * 1024
    public var readerCacheKiB = 2 * 1024
    /// The part of the file that readers map. Address space, not memory: the pages are the kernel's cache, shared
    /// by all connections. Without it each reader copies pages after each commit.
    public var readerMapBytes = 256 << 20
    /// Prepared statements a connection caches. A statement takes a few KiB and saves ~10 µs at each use; the
    /// service has some hundreds of texts.
    public var statementsMax = 512
    /// Idle readers that stay open. More may be open at a time; each costs a few file descriptors.
    public var idleReadersMax = 16
    /// WAL pages after which the checkpointer moves them into the database, beside the writer.
    public var checkpointPages = 2_000
    /// WAL pages after which the writer itself moves them and starts the WAL anew. Reached only when the
    /// checkpointer is too slow; without it the WAL grows as long as writes never pause, and reads slow down.
    public var checkpointPagesMax = 40_000
    /// The size the WAL file is cut back to when it is started anew; without it, it stays at its largest size forever.
    public var journalBytesMax = 32 << 20
    /// Pages the database may have, 0 for SQLite's own limit. A database that may fill the disk takes logs and
    /// everything else on it down.
    public var pagesMax = 0

    // MARK: PostgreSQL

    /// Connections that read. Each is a process of the server; more than it has cores do not make it faster.
    public var readersMax = 8
    /// Those among them that answer queries of one statement, many together.
    public var queryConnections: Int { max(1, readersMax / 2) }
    /// Connections that write, each with its own share of the users and shops: while one waits for an answer or its
    /// commit, others work. More than four wait for one another's commits, which come one after the other.
    public var writers = 4
    /// After this time the server gives a statement up, and a second later this side gives the server up. Without it
    /// a table that somebody has locked takes every worker.
    public var statementTimeout: Duration = .seconds(5)
    /// The connections go through a pooler that hands them out by transaction (PgBouncer): statements cannot be
    /// prepared by name.
    public var isPooled = false
    /// Where notifications are listened for, if not at the store's own address: a pooler does not pass them on.
    public var listenURL: DatabaseURL?

    public init() {}
}
