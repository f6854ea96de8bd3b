import Synchronization
import Threads

/// Moves pages from the WAL into the database whenever it is woken.
///
/// It has its own thread and connection, so that neither the writer nor its callers pay for its flush.
final class Checkpointer: Sendable {
    private let thread = LoopThread("sqlite-checkpoint")
    /// The length of the WAL when the last pass had moved all of it; 0 if the pass left pages, or if the writer knows.
    private let movedPages = Atomic<Int>(0)

    func start(_ connection: sending SQLiteConnection, readers: ReaderPool, queue: WriteQueue) {
        thread.start { [self] in
            while thread.wait() {
                guard let log = Self.move(by: connection, readers: readers, queue: queue), log.remaining == 0 else {
                    continue
                }
                movedPages.store(log.pages, ordering: .releasing)
            }
        }
    }

    func wake() { thread.wake() }
    func stop() { thread.stop() }

    /// Returns the length of the WAL when the last pass had moved all of it, if the pass ended since the last call.
    func takeMovedPages() -> Int? {
        // Most calls find nothing, and a load is cheaper than an exchange.
        guard movedPages.load(ordering: .relaxed) != 0 else { return nil }
        return movedPages.exchange(0, ordering: .acquiring)
    }

    /// Runs one checkpoint that blocks nothing, and counts it. Returns nil if it failed.
    static func move(
        by connection: SQLiteConnection, readers: ReaderPool, queue: WriteQueue
    ) -> SQLiteConnection.CheckpointedLog? {
        readers.releaseSnapshots()
        do {
            let log = try connection.checkpoint(.passive)
            queue.count { $0.checkpoints += 1 }
            return log
        } catch {
            // Busy: the other thread is already at it.
            if error.code != .busy { queue.count { $0.checkpointsFailed += 1 } }
            return nil
        }
    }
}
