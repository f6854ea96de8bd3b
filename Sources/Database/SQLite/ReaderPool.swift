import Foundation
import Synchronization

/// The reading connections of a store: one owner at a time each, as many as there are readers at a time.
///
/// A reader keeps its read transaction open between two reads for a moment and uses it again while nothing has been
/// committed since: beginning one costs several system calls, more than the read itself. It sees what a new
/// transaction would see, because every commit of this process counts `commits` up before anybody is answered.
///
/// `@unchecked Sendable`: `idle` and `isClosed` are only touched under `lock`; a reader that is out belongs to the
/// thread that took it.
final class ReaderPool: @unchecked Sendable {
    /// One connection that is out at most once.
    final class Reader {
        let connection: SQLiteConnection
        /// The commit count before the open snapshot was taken, and when that was.
        fileprivate var snapshot: (commits: UInt64, at: ContinuousClock.Instant)?

        fileprivate init(_ connection: SQLiteConnection) {
            self.connection = connection
        }

        fileprivate func endSnapshot() {
            snapshot = nil
            connection.rollback()
        }
    }

    /// Another process may write too (an operator with the sqlite3 tool); this bounds how long that goes unseen.
    private static let snapshotDuration: Duration = .milliseconds(100)

    private let path: String
    private let options: StoreOptions
    /// Commits of this process. Raised after each COMMIT, before its jobs are answered; and to end kept snapshots.
    private let commits = Atomic<UInt64>(0)
    /// Guards `idle` and `isClosed`.
    private let lock = NSLock()
    private var idle: [Reader] = []
    private var isClosed = false

    init(path: String, options: StoreOptions) {
        self.path = path
        self.options = options
    }

    func noteCommit() {
        commits.add(1, ordering: .releasing)
    }

    /// A reader inside a read transaction that sees everything committed so far.
    func take() throws -> Reader {
        lock.lock()
        if isClosed {
            lock.unlock()
            throw DatabaseError(.unavailable, "the store is closed")
        }
        let known = idle.popLast()
        lock.unlock()
        let reader = try known ?? Reader(SQLiteConnection(path: path, role: .reader, options: options))
        // The count first: a commit that comes after it may be in the snapshot, one before it must be.
        let seen = commits.load(ordering: .acquiring)
        let now = ContinuousClock.now
        if let snapshot = reader.snapshot {
            let isCurrent = snapshot.commits == seen && now - snapshot.at < Self.snapshotDuration
            if isCurrent, options.access == .exclusive { return reader }
            reader.endSnapshot()
        }
        try reader.connection.beginReading()
        reader.snapshot = (seen, now)
        return reader
    }

    /// Takes a reader back. After an error its transaction is not used again.
    func give(_ reader: Reader, isReusable: Bool) {
        if !isReusable || options.access == .readOnly { reader.endSnapshot() }
        lock.lock()
        let isKept = !isClosed && idle.count < options.idleReadersMax
        if isKept { idle.append(reader) }
        lock.unlock()
        if !isKept { reader.endSnapshot() }
    }

    /// Ends the transactions of readers that are not in use, and has those in use begin anew at their next read.
    ///
    /// A snapshot that began before the last page was moved keeps the WAL from being started anew; readers that
    /// come one after the other on one kept snapshot would do so for good.
    func releaseSnapshots() {
        commits.add(1, ordering: .releasing)
        lock.lock()
        defer { lock.unlock() }
        for reader in idle where reader.snapshot != nil { reader.endSnapshot() }
    }

    /// Drops the idle readers: their statements and snapshots belong to an old schema.
    func drop() {
        lock.lock()
        let dropped = idle
        idle = []
        lock.unlock()
        for reader in dropped { reader.endSnapshot() }
    }

    func close() {
        lock.lock()
        isClosed = true
        lock.unlock()
        drop()
    }
}
