import Synchronization
import Threads

/// The reading connections of a store: one owner at a time each, as many as there are readers at a time.
///
/// A reader leaves its read transaction open between two reads for a moment and uses it again while nothing has been
/// committed since: beginning one costs several system calls, more than the read itself. It sees what a new
/// transaction would see, because every commit of this process counts `commits` up before anybody is answered.
///
/// A reader that is out belongs to the thread that took it.
final class ReaderPool: Sendable {
    private struct State {
        var idle: [SQLiteConnection] = []
        var isClosed = false
    }

    /// Another process may write too (an operator with the sqlite3 tool); this bounds how long that goes unseen.
    private static let snapshotDuration: Duration = .milliseconds(100)

    private let file: DatabaseFile
    private let options: StoreOptions
    /// Commits of this process. Raised after each COMMIT, before its jobs are answered; and to end open snapshots.
    private let commits = Atomic<UInt64>(0)
    private let state = Locked(State())

    init(_ file: DatabaseFile, options: StoreOptions) {
        self.file = file
        self.options = options
    }

    func noteCommit() {
        commits.add(1, ordering: .releasing)
    }

    /// A reader inside a read transaction that sees everything committed so far.
    func take() throws -> SQLiteConnection {
        try file.requireInPlace()
        let known = try state.withLock { state in
            if state.isClosed { throw DatabaseError(.unavailable, "the store is closed") }
            return state.idle.popLast()
        }
        let reader = try known ?? SQLiteConnection(file, role: .reader, options: options)
        // The count first: a commit that comes after it may be in the snapshot, one before it must be.
        let seen = commits.load(ordering: .acquiring)
        let now = ContinuousClock.now
        if let snapshot = reader.snapshot {
            let isCurrent = snapshot.commits == seen && now - snapshot.at < Self.snapshotDuration
            if isCurrent, options.access == .exclusive { return reader }
            reader.endSnapshot()
        }
        try reader.control(.begin)
        reader.snapshot = (seen, now)
        return reader
    }

    /// Takes a reader back. After an error its transaction is not used again.
    func give(_ reader: SQLiteConnection, isReusable: Bool) {
        if !isReusable || options.access == .readOnly { reader.endSnapshot() }
        let isStored = state.withLock { state in
            guard !state.isClosed, state.idle.count < options.idleReadersMax else { return false }
            state.idle.append(reader)
            return true
        }
        if !isStored { reader.endSnapshot() }
    }

    /// Ends the transactions of readers that are not in use, and has those in use begin anew at their next read.
    ///
    /// A snapshot that began before the last page was moved prevents the WAL from being started anew; readers that
    /// come one after the other on one open snapshot would do so for good.
    func releaseSnapshots() {
        commits.add(1, ordering: .releasing)
        state.withLock { state in
            for reader in state.idle where reader.snapshot != nil { reader.endSnapshot() }
        }
    }

    /// Drops the idle readers: their statements and snapshots belong to an old schema.
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
