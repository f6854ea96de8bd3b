import Threads

/// One unit of work for the writer.
@usableFromInline
struct WriteJob: Sendable {
    /// Answers the caller when the outcome of the group is known.
    @usableFromInline typealias Completion = @Sendable (Result<Void, any Error>) -> Void

    private enum Work: Sendable {
        case single(@Sendable (DatabaseConnection) throws -> Completion)
        /// Performed together with other jobs of its batch.
        case together(any WriteShare)
        /// Performed on its own, because it has failed together with others.
        case alone(any WriteShare)
    }

    private var work: Work
    /// Answers the caller if the work itself failed, or was never begun.
    let fail: @Sendable (any Error) -> Void
    /// The number of attempts. Lost connections, deadlocks and locks held elsewhere are temporary.
    private(set) var attempts = 0
    let queuedAt = ContinuousClock.now

    init(
        run: @escaping @Sendable (DatabaseConnection) throws -> Completion,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        (work, self.fail) = (.single(run), fail)
    }

    @usableFromInline
    init(share: any WriteShare, fail: @escaping @Sendable (any Error) -> Void) {
        (work, self.fail) = (.together(share), fail)
    }

    var retried: WriteJob {
        var job = self
        job.attempts += 1
        return job
    }

    /// The same work, to be performed on its own.
    fileprivate var alone: WriteJob {
        var job = self
        if let share { job.work = .alone(share) }
        return job
    }

    @usableFromInline var share: (any WriteShare)? {
        switch work {
        case .single: nil
        case .together(let share), .alone(let share): share
        }
    }

    private var batch: AnyObject? {
        if case .together(let share) = work { share.batch } else { nil }
    }

    /// Takes the next job, and the following jobs that are performed together with it.
    static func takeNext(_ waiting: inout [WriteJob]) -> [WriteJob] {
        guard let first = waiting.first else { return [] }
        guard let batch = first.batch, waiting.count > 1 else { return [waiting.removeFirst()] }
        var taken: [WriteJob] = []
        waiting.removeAll { job in
            guard taken.count < rowsPerStatementMax, job.batch === batch else { return false }
            taken.append(job)
            return true
        }
        return taken
    }

    /// The rows of one statement (`Insertion`). After them, the writer checks whether the group has taken long enough.
    private static let rowsPerStatementMax = 64

    /// Performs jobs that were taken together, in one savepoint.
    static func run(_ jobs: [WriteJob], on connection: DatabaseConnection) throws -> [Completion] {
        try connection.savepoint {
            guard let first = jobs.first else { return [] }
            switch first.work {
            case .single(let run): return [try run(connection)]
            case .together(let share), .alone(let share): return try share.run(jobs, on: connection)
            }
        }
    }
}

/// The outcomes of a group's jobs, before any caller is answered.
struct WriteGroup {
    var completions: [WriteJob.Completion] = []
    var failures: [(job: WriteJob, error: any Error)] = []

    /// Records the failure of jobs that were performed together. A single job has failed by itself; of several, each is
    /// retried alone.
    mutating func add(failed jobs: [WriteJob], _ error: any Error, waiting: inout [WriteJob]) {
        if jobs.count > 1 {
            waiting.insert(contentsOf: jobs.map(\.alone), at: 0)
        } else {
            failures += jobs.map { ($0, error) }
        }
    }

    /// Answers all jobs. A job that failed by itself receives its own error.
    func answer(_ outcome: Result<Void, any Error>) {
        for completion in completions { completion(outcome) }
        for failure in failures { failure.job.fail(failure.error) }
    }

    /// Whether a job failed because there is no room left.
    var isFull: Bool { failures.contains { ($0.error as? DatabaseError)?.code == .full } }

    /// Returns the error for the jobs of a group that was rolled back as a whole.
    static func lost(_ error: any Error) -> DatabaseError {
        let cause = error as? DatabaseError
        return DatabaseError(
            .unavailable, "all writes of this group were rolled back: \(cause?.detail ?? "\(error)")",
            cause: cause?.code)
    }
}

/// The bounded FIFO queue in front of the writer, with the counters of both.
final class WriteQueue: Sendable {
    private struct State {
        var jobs: [WriteJob] = []
        /// Jobs that the writer has taken and not yet decided. They count as waiting; otherwise the bound would double.
        var jobsTaken = 0
        var isClosed = false
        var isFull = false
        var metrics = StoreMetrics()

        mutating func take(_ countMax: Int) -> [WriteJob] {
            let taken = Array(jobs.prefix(countMax))
            jobs.removeFirst(taken.count)
            jobsTaken += taken.count
            return taken
        }
    }

    /// Signalled when the first job arrives, and when the queue closes.
    private let state = Locked(State())
    private let depthMax: Int

    init(depthMax: Int) {
        self.depthMax = depthMax
        state.withLock { $0.jobs.reserveCapacity(64) }
    }

    /// Appends a job; returns false if the queue is closed.
    ///
    /// - Throws: If the queue is full.
    func append(_ job: WriteJob) throws(StoreBusy) -> Bool {
        try state.withLock { queue throws(StoreBusy) in
            if queue.isClosed { return false }
            let depth = queue.jobs.count + queue.jobsTaken
            if depth >= depthMax {
                queue.metrics.refused += 1
                throw StoreBusy(queueDepth: depth)
            }
            queue.jobs.append(job)
            queue.metrics.queueDepthLargest = max(queue.metrics.queueDepthLargest, depth + 1)
            if queue.jobs.count == 1 { state.broadcast() }
            return true
        }
    }

    /// Returns the next jobs, oldest first; waits for one. Nil once the queue is closed and empty.
    func take(_ countMax: Int) -> [WriteJob]? {
        let taken: [WriteJob] = state.wait { queue in
            if queue.jobs.isEmpty { return queue.isClosed ? [] : nil }
            return queue.take(countMax)
        }
        return taken.isEmpty ? nil : taken
    }

    /// Returns the jobs that have arrived since, for a group that is not yet committed.
    func takeArrived(_ countMax: Int) -> [WriteJob] {
        state.withLock { $0.take(countMax) }
    }

    /// Puts back jobs that were taken and not begun; they stay first.
    func putBack(_ rest: [WriteJob]) {
        state.withLock { queue in
            queue.jobs.insert(contentsOf: rest, at: 0)
            queue.jobsTaken -= rest.count
        }
    }

    /// Records that a batch is decided. It is called before its jobs are answered, so that a caller with an answer
    /// finds room in the queue.
    ///
    /// - Parameter isFull: Whether the database lacked room for some of it; nil if nothing was written.
    func finishBatch(isFull: Bool?, _ change: (inout StoreMetrics) -> Void) {
        state.withLock { queue in
            queue.jobsTaken = 0
            queue.isFull = isFull ?? queue.isFull
            change(&queue.metrics)
        }
    }

    /// Whether the last batch that wrote anything found no room.
    var isFull: Bool { state.withLock { $0.isFull } }

    func count(_ change: (inout StoreMetrics) -> Void) {
        state.withLock { change(&$0.metrics) }
    }

    func snapshot() -> StoreMetrics {
        state.withLock { queue in
            var copy = queue.metrics
            copy.queueDepth = queue.jobs.count + queue.jobsTaken
            return copy
        }
    }

    /// Refuses further jobs; the waiting jobs are still done.
    func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
    }
}
