import Synchronization
import Threads

/// The reading connections of a store. Each has one owner at a time; there are as many as concurrent readers.
///
/// A reader briefly keeps its read transaction open between two reads, and reuses it if nothing was committed since.
/// Beginning one costs several system calls, which is more than the read itself. It sees the same state as a new
/// transaction, because every commit of this process increments `commits` before any caller is answered.
///
/// A reader that was taken belongs to the thread that took it.
final class ReaderPool: Sendable {
    private struct State {
        var idle: [DrivenConnection<SQLiteConnection>] = []
        var isClosed = false
    }

    /// Another process may also write (an operator with the sqlite3 tool). This bounds how long such a write goes
    /// unseen.
    private static let snapshotDuration: Duration = .milliseconds(100)

    private let file: DatabaseFile
    private let options: StoreOptions
    /// The number of commits of this process. It rises after each COMMIT, before the jobs are answered; and to end open
    /// snapshots.
    private let commits = Atomic<UInt64>(0)
    private let state = Locked(State())

    init(_ file: DatabaseFile, options: StoreOptions) {
        self.file = file
        self.options = options
    }

    func noteCommit() {
        commits.add(1, ordering: .releasing)
    }

    /// Returns a reader inside a read transaction that sees everything committed so far.
    func take() throws -> DrivenConnection<SQLiteConnection> {
        try file.requireInPlace()
        let known = try state.withLock { state in
            if state.isClosed { throw DatabaseError(.unavailable, "the store is closed") }
            return state.idle.popLast()
        }
        let reader = try known ?? DrivenConnection(SQLiteConnection(file, role: .reader, options: options))
        // The count is read first. A later commit may be in the snapshot; an earlier one must be.
        let seen = commits.load(ordering: .acquiring)
        let now = ContinuousClock.now
        if let snapshot = reader.driver.snapshot {
            let isCurrent = snapshot.commits == seen && now - snapshot.at < Self.snapshotDuration
            if isCurrent, options.access == .exclusive { return reader }
            reader.endSnapshot()
        }
        try reader.driver.control(.begin)
        reader.driver.snapshot = (seen, now)
        return reader
    }

    /// Returns a reader to the pool. After an error, its transaction is not reused.
    func give(_ reader: DrivenConnection<SQLiteConnection>, isReusable: Bool) {
        if !isReusable || options.access == .readOnly { reader.endSnapshot() }
        let isStored = state.withLock { state in
            guard !state.isClosed, state.idle.count < options.idleReadersMax else { return false }
            state.idle.append(reader)
            return true
        }
        if !isStored { reader.endSnapshot() }
    }

    /// Ends the transactions of idle readers, and makes the readers in use start a new one at their next read.
    ///
    /// A snapshot that began before the last page was checkpointed prevents the WAL from restarting. Successive readers
    /// that share one open snapshot would prevent it forever.
    func releaseSnapshots() {
        commits.add(1, ordering: .releasing)
        state.withLock { state in
            for reader in state.idle where reader.driver.snapshot != nil { reader.endSnapshot() }
        }
    }

    /// Drops the idle readers, because their statements and snapshots belong to an old schema.
    func drop() {
        let dropped = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for reader in dropped { reader.endSnapshot() }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        drop()
    }
}

extension DrivenConnection<SQLiteConnection> {
    /// Ends the transaction that a reader has kept open for the next read.
    fileprivate func endSnapshot() {
        driver.snapshot = nil
        db.rollback()
    }
}
