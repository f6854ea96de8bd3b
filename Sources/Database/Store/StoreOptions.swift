/// The settings of a store, each with the reason for its value.
public struct StoreOptions: Sendable {
    public enum Access: Sendable {
        /// The one service that writes. A second one is refused.
        case exclusive
        /// Reads while a service is running (`bellhop check`); takes no lock and writes nothing.
        case readOnly
        /// Creates and changes the tables (`bellhop migrate`). On PostgreSQL it needs a role with that right, which the
        /// service itself must not have.
        case owner
    }

    public var access: Access = .exclusive
    /// Queued writes. Without this limit, memory grows behind a slow disk until the process is killed.
    public var queueDepthMax = 4096
    /// Jobs of one commit. Without this limit, thousands would share one fsync, but the first of them would wait for
    /// the last. With 512, the fsync is already a small part of the whole.
    public var batchJobsMax = 512
    /// After this time, no further job joins a batch. Without it, a few slow jobs delay the answers of all others.
    public var batchDuration: Duration = .milliseconds(20)
    /// How long to wait for a lock that another process holds (the sqlite3 tool, a backup). Without it, such a process
    /// would fail our writes at once. With a much longer time, the queue would fill up.
    public var busyTimeout: Duration = .seconds(5)
    /// The page cache of a connection. Only the writer uses its cache across commits; its working set is the upper
    /// pages of all indexes. Every commit of the writer empties a reader's cache, so memory spent there is wasted:
    /// readers use the memory map instead.
    public var writerCacheKiB = 16 * 1024
    public var readerCacheKiB = 2 * 1024
    /// The part of the file that readers map. It is address space, not memory: the pages are the kernel's cache, shared
    /// by all connections. Without it, each reader copies pages after each commit.
    public var readerMapBytes = 256 << 20
    /// Prepared statements that a connection caches. A statement takes a few KiB and saves ~10 µs at each use. The
    /// service has some hundreds of texts.
    public var statementsMax = 512
    /// Idle readers that stay open. More may be open temporarily; each costs a few file descriptors.
    public var idleReadersMax = 16
    /// WAL pages after which the checkpointer moves them into the database, in parallel with the writer.
    public var checkpointPages = 2_000
    /// When the checkpointer has moved all pages that it saw, and fewer than this came meanwhile, the writer moves the
    /// rest, and its next commit restarts the WAL. Without it, the WAL grows as long as writes never pause. With much
    /// more, writes would wait noticeably for this move.
    public var checkpointPagesLeft = 1_600
    /// WAL pages after which the writer itself moves all of them. It is reached if a long read keeps pages in the WAL,
    /// or if the checkpointer is too slow. Without it, the WAL grows and reads slow down. With much more, writes wait
    /// longer for the move: 65 ms for 40,000 pages.
    public var checkpointPagesMax = 12_000
    /// The size to which the WAL file is truncated when it restarts. Without it, the file keeps its largest size
    /// forever.
    public var journalBytesMax = 32 << 20
    /// Pages that the database may have; 0 for SQLite's own limit. A database that may fill the disk takes down logs
    /// and everything else on that disk.
    public var pagesMax = 0

    // MARK: PostgreSQL

    /// Connections that read. Each is a process of the server; more than the server has cores do not make it faster.
    public var readersMax = 8
    /// The reading connections that serve batched single-statement queries.
    public var queryConnections: Int { max(1, readersMax / 2) }
    /// Connections that write, from one queue. While one commits, the next collects a group; others begin only beside a
    /// group that waits for a lock. With more than four, they wait for one another's commits, which are serialized.
    public var writers = 4
    /// After this time the server cancels a statement, and a second later this side gives up on the server. Without it,
    /// a table locked by another client would occupy every worker.
    public var statementTimeout: Duration = .seconds(5)
    /// Whether the connections go through a pooler that assigns them per transaction (PgBouncer). Then statements
    /// cannot be prepared by name.
    public var isPooled = false
    /// Where to listen for notifications, if not at the store's own address. A pooler does not forward them.
    public var listenURL: DatabaseURL?

    public init() {}
}
