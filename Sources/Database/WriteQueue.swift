import Foundation

/// One piece of work for the writer.
struct WriteJob: Sendable {
    enum Outcome: Sendable {
        case committed
        case failed(any Error)
    }

    /// Does the work inside its savepoint; what it returns answers the caller when the outcome is known.
    let run: @Sendable (Connection) throws -> (@Sendable (Outcome) -> Void)
    /// Answers the caller when the work itself failed, or was never begun.
    let fail: @Sendable (any Error) -> Void
    let queuedAt = ContinuousClock.now
}

/// The bounded queue in front of the writer, first come first served, with the counters of both.
///
/// `@unchecked Sendable`: everything mutable is only touched while `condition` is locked.
final class WriteQueue: @unchecked Sendable {
    /// The last step of a group, before it is committed: what its jobs have left for it, in their order.
    typealias LastStep = @Sendable (Connection, [any Sendable]) throws -> Void

    /// Guards all variables below; signalled when a job arrives, the queue closes, or a checkpoint is wanted.
    private let condition = NSCondition()
    private var jobs: [WriteJob] = []
    /// Jobs the writer has taken and not yet decided; they count as waiting, or the bound would double.
    private var jobsTaken = 0
    private var isClosed = false
    private var isFinished = false
    private var metrics = StoreMetrics()
    private var lastStep: LastStep?
    private let depthMax: Int

    init(depthMax: Int) {
        self.depthMax = depthMax
        jobs.reserveCapacity(64)
    }

    enum Refusal: Error {
        case full(StoreBusy)
        case closed
    }

    func append(_ job: WriteJob) throws(Refusal) {
        condition.lock()
        defer { condition.unlock() }
        if isClosed { throw .closed }
        let depth = jobs.count + jobsTaken
        if depth >= depthMax {
            metrics.refused += 1
            throw .full(StoreBusy(queueDepth: depth))
        }
        jobs.append(job)
        metrics.queueDepthLargest = max(metrics.queueDepthLargest, depth + 1)
        if jobs.count == 1 { condition.broadcast() }
    }

    /// The next jobs, oldest first; waits for one. Nil once the queue is closed and empty.
    func take(_ countMax: Int) -> [WriteJob]? {
        condition.lock()
        defer { condition.unlock() }
        while jobs.isEmpty {
            if isClosed { return nil }
            condition.wait()
        }
        let taken: [WriteJob]
        if jobs.count <= countMax {
            taken = jobs
            jobs.removeAll(keepingCapacity: true)
        } else {
            taken = Array(jobs.prefix(countMax))
            jobs.removeFirst(countMax)
        }
        jobsTaken = taken.count
        return taken
    }

    /// The jobs that have arrived since, for a group that is not yet committed; none if there are none.
    func takeMore(_ countMax: Int) -> [WriteJob] {
        condition.lock()
        defer { condition.unlock() }
        let taken = Array(jobs.prefix(countMax))
        jobs.removeFirst(taken.count)
        jobsTaken += taken.count
        return taken
    }

    /// Puts jobs back that were taken and not begun; they stay first.
    func putBack(_ rest: ArraySlice<WriteJob>) {
        condition.lock()
        defer { condition.unlock() }
        jobs.insert(contentsOf: rest, at: 0)
        jobsTaken -= rest.count
    }

    /// The batch is decided; called before its jobs are answered, so that whoever hears an answer finds room.
    func finishBatch(_ change: (inout StoreMetrics) -> Void) {
        condition.lock()
        defer { condition.unlock() }
        jobsTaken = 0
        change(&metrics)
    }

    func count(_ change: (inout StoreMetrics) -> Void) {
        condition.lock()
        defer { condition.unlock() }
        change(&metrics)
    }

    func snapshot() -> StoreMetrics {
        condition.lock()
        defer { condition.unlock() }
        var copy = metrics
        copy.queueDepth = jobs.count + jobsTaken
        return copy
    }

    var willCommit: LastStep? {
        get { condition.withLock { lastStep } }
        set { condition.withLock { lastStep = newValue } }
    }

    /// Refuses further jobs; those that wait are still done.
    func close() {
        condition.lock()
        defer { condition.unlock() }
        isClosed = true
        condition.broadcast()
    }

    func noteFinished() {
        condition.lock()
        defer { condition.unlock() }
        isFinished = true
        condition.broadcast()
    }

    func waitUntilFinished() {
        condition.lock()
        defer { condition.unlock() }
        while !isFinished { condition.wait() }
    }
}
