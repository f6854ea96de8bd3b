import Threads

/// The one thread that writes: takes what waits, runs each job in a savepoint, commits once, then answers all.
///
/// Made, used and let go on its thread.
final class SQLiteWriter {
    private let connection: SQLiteConnection
    /// The WAL's length at which the next checkpoint is worth its fsync.
    private var checkpointWanted: Int
    private let queue: WriteQueue
    private let readers: ReaderPool
    private let checkpointer: Checkpointer
    private let options: StoreOptions

    init(
        connection: SQLiteConnection, queue: WriteQueue, readers: ReaderPool, checkpointer: Checkpointer,
        options: StoreOptions
    ) {
        self.connection = connection
        self.queue = queue
        self.readers = readers
        self.checkpointer = checkpointer
        self.options = options
        checkpointWanted = options.checkpointPages
    }

    /// Works until the queue is closed and empty; the checkpointer and the readers have ended then.
    func run() {
        while let jobs = queue.take(options.batchJobsMax) {
            commit(jobs)
            checkpointIfNeeded()
        }
        checkpointer.close()
        readers.close()
        do {
            _ = try connection.checkpoint(.truncate)
        } catch {
            // A reader that is still out only means that the WAL stays; the next start reads it.
            if error.code != .busy { queue.count { $0.checkpointsFailed += 1 } }
        }
    }

    private struct Answer {
        let job: WriteJob
        let completion: @Sendable (WriteJob.Outcome) -> Void
    }

    private func commit(_ jobs: [WriteJob]) {
        // This commit ends their use anyway; gone now, they let SQLite start a moved WAL anew.
        if connection.walPages >= options.checkpointPages { readers.releaseSnapshots() }
        do {
            try connection.beginWriting()
        } catch {
            abandon(jobs[...], answers: [], failures: [], because: error)
            return
        }
        var answers: [Answer] = []
        answers.reserveCapacity(jobs.count)
        var failures: [(job: WriteJob, error: any Error)] = []
        let deadline = ContinuousClock.now + options.batchDuration
        for (index, job) in jobs.enumerated() {
            if index > 0, ContinuousClock.now >= deadline {
                queue.putBack(jobs[index...])
                break
            }
            do {
                answers.append(Answer(job: job, completion: try connection.savepoint { try job.run(connection) }))
            } catch {
                failures.append((job, error))
                guard connection.isInTransaction else {
                    abandon(jobs[(index + 1)...], answers: answers, failures: failures, because: error)
                    return
                }
            }
        }
        conclude(answers, failures)
    }

    private func conclude(_ answers: [Answer], _ failures: [(job: WriteJob, error: any Error)]) {
        let begin = ContinuousClock.now
        do {
            try connection.runGroupSteps()
            try connection.commit()
        } catch {
            abandon([], answers: answers, failures: failures, because: error)
            return
        }
        readers.noteCommit()
        let seconds = Double((ContinuousClock.now - begin).nanoseconds) / 1e9
        let walPages = connection.walPages
        queue.finishBatch { metrics in
            metrics.countCommit(jobs: answers.count, seconds: seconds)
            metrics.jobsFailed += failures.count
            metrics.walPages = walPages
        }
        for action in connection.takeCommitActions() { action() }
        for answer in answers { answer.completion(.committed) }
        for failure in failures { failure.job.fail(failure.error) }
    }

    /// Nothing of the group is stored. Each job receives that as its error; one that failed by itself receives its own.
    private func abandon(
        _ notBegun: ArraySlice<WriteJob>, answers: [Answer], failures: [(job: WriteJob, error: any Error)],
        because error: any Error
    ) {
        connection.rollback()
        let cause = error as? DatabaseError
        let lost = DatabaseError(
            .unavailable, "nothing of this group of writes was kept: \(cause?.detail ?? "\(error)")",
            cause: cause?.code)
        queue.finishBatch { metrics in
            metrics.batchesFailed += 1
            metrics.jobsFailed += failures.count + answers.count + notBegun.count
        }
        for answer in answers { answer.completion(.failed(lost)) }
        for failure in failures { failure.job.fail(failure.error) }
        for job in notBegun { job.fail(lost) }
    }

    private func checkpointIfNeeded() {
        let pages = connection.walPages
        // The WAL was started anew.
        if pages < options.checkpointPages { checkpointWanted = options.checkpointPages }
        guard pages >= checkpointWanted else { return }
        checkpointWanted = pages + options.checkpointPages
        guard pages >= options.checkpointPagesMax else {
            checkpointer.wake()
            return
        }
        // Passive here too: while the writer itself moves pages none are added, so all are moved, and the next
        // commit begins at the front. Waiting for a long reader would stop all writes.
        movePages(by: connection, readers: readers, queue: queue)
    }
}

/// One checkpoint that makes nobody wait, and its count.
private func movePages(by connection: SQLiteConnection, readers: ReaderPool, queue: WriteQueue) {
    readers.releaseSnapshots()
    do {
        _ = try connection.checkpoint(.passive)
        queue.count { $0.checkpoints += 1 }
    } catch {
        // Busy: the other thread is at it already.
        if error.code != .busy { queue.count { $0.checkpointsFailed += 1 } }
    }
}

/// Moves pages from the WAL into the database on a thread and a connection of its own, so that neither the writer
/// nor anybody who waits for it pays for that fsync.
final class Checkpointer: Sendable {
    private let thread = LoopThread("sqlite-checkpoint")

    /// Starts the thread, to which the connection belongs from here on: it is closed when the thread ends.
    init(_ connection: sending SQLiteConnection, readers: ReaderPool, queue: WriteQueue) {
        thread.start { [thread] in
            while thread.wait() { movePages(by: connection, readers: readers, queue: queue) }
        }
    }

    func wake() { thread.wake() }

    /// Ends the thread and waits for it.
    func close() { thread.stop() }
}
