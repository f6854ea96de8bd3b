/// The single writing thread. It takes the waiting jobs, runs each in a savepoint, commits once, and then answers all
/// of them.
///
/// It is created, used and released on its thread.
struct SQLiteWriter {
    let connection: DrivenConnection<SQLiteConnection>
    let file: DatabaseFile
    let queue: WriteQueue
    let readers: ReaderPool
    let checkpointer: Checkpointer
    let options: StoreOptions
    var schedule: CheckpointSchedule

    /// Works until the queue is closed and empty. The checkpointer and the readers have ended by then.
    mutating func run() {
        while let jobs = queue.take(options.batchJobsMax) {
            commit(jobs)
            checkpointIfNeeded()
        }
        checkpointer.stop()
        readers.close()
        if file.isMoved() { return }
        do {
            _ = try connection.driver.checkpoint(.truncate)
        } catch {
            // A reader that is still in use only means that the WAL remains; the next start reads it.
            if error.code != .busy { queue.count { $0.checkpointsFailed += 1 } }
        }
    }

    private func commit(_ jobs: [WriteJob]) {
        // This commit invalidates the snapshots anyway. Releasing them now lets SQLite restart a checkpointed WAL.
        if connection.driver.walPages >= options.checkpointPages { readers.releaseSnapshots() }
        connection.driver.hasWritten = false
        do {
            try file.requireInPlace()
            try connection.driver.control(.beginImmediate)
        } catch {
            abandon(jobs, after: WriteGroup(), because: error)
            return
        }
        var group = WriteGroup()
        group.completions.reserveCapacity(jobs.count)
        let deadline = ContinuousClock.now + options.batchDuration
        var waiting = jobs
        repeat {
            let next = WriteJob.takeNext(&waiting)
            do {
                group.completions += try WriteJob.run(next, on: connection.db)
            } catch {
                guard connection.driver.isInTransaction else {
                    group.failures += next.map { ($0, error) }
                    abandon(waiting, after: group, because: error)
                    return
                }
                group.add(failed: next, error, waiting: &waiting)
            }
        } while !waiting.isEmpty && ContinuousClock.now < deadline
        if !waiting.isEmpty { queue.putBack(waiting) }
        conclude(group)
    }

    private func conclude(_ group: WriteGroup) {
        let begin = ContinuousClock.now
        do {
            try connection.db.runGroupSteps()
            try connection.db.commit()
            // A commit to a file that is gone would be lost.
            file.isMoved()
            try file.requireInPlace()
        } catch {
            abandon([], after: group, because: error)
            return
        }
        readers.noteCommit()
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        let walPages = connection.driver.walPages
        let isFull: Bool? = group.isFull ? true : connection.driver.hasWritten ? false : nil
        queue.finishBatch(isFull: isFull, outcome: group.outcome) { metrics in
            metrics.countCommit(jobs: group.completions.count, seconds: seconds)
            metrics.jobsFailed += group.failures.count
            metrics.walPages = walPages
        }
        for action in connection.db.takeCommitActions() { action() }
        group.answer(.success(()))
    }

    /// Fails all jobs, because nothing of the group is stored. A job that failed by itself receives its own error.
    private func abandon(_ notBegun: [WriteJob], after group: WriteGroup, because error: any Error) {
        connection.db.rollback()
        let lost = WriteGroup.lost(error)
        let isFull = lost.cause == .full || group.isFull
        queue.finishBatch(isFull: isFull ? true : nil, outcome: isFull ? .decided : .failed) { metrics in
            metrics.batchesFailed += 1
            metrics.jobsFailed += group.failures.count + group.completions.count + notBegun.count
        }
        group.answer(.failure(lost))
        for job in notBegun { job.fail(lost) }
    }

    private mutating func checkpointIfNeeded() {
        let walPages = connection.driver.walPages
        switch schedule.step(walPages: walPages, movedPages: checkpointer.takeMovedPages()) {
        case .wait: break
        case .wakeCheckpointer: checkpointer.wake()
        case .moveHere:
            // No pages are added meanwhile, so the next commit begins at the front. Passive here too: waiting for a
            // long reader would stop all writes.
            let remaining = Checkpointer.move(by: connection.driver, readers: readers, queue: queue)?.remaining
            schedule.moved(of: walPages, remaining: remaining ?? walPages)
        }
    }
}
