import Threads

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
final class WriteQueue: Sendable {
    private struct State {
        var jobs: [WriteJob] = []
        /// Jobs the writer has taken and not yet decided; they count as waiting, or the bound would double.
        var jobsTaken = 0
        var isClosed = false
        var metrics = StoreMetrics()
    }

    /// Signalled when the first job arrives and when the queue closes.
    private let state = Monitor(State())
    private let depthMax: Int

    init(depthMax: Int) {
        self.depthMax = depthMax
        state.withLock { $0.jobs.reserveCapacity(64) }
    }

    enum Refusal: Error {
        case full(StoreBusy)
        case closed
    }

    func append(_ job: WriteJob) throws(Refusal) {
        try state.withLock { queue throws(Refusal) in
            if queue.isClosed { throw .closed }
            let depth = queue.jobs.count + queue.jobsTaken
            if depth >= depthMax {
                queue.metrics.refused += 1
                throw .full(StoreBusy(queueDepth: depth))
            }
            queue.jobs.append(job)
            queue.metrics.queueDepthLargest = max(queue.metrics.queueDepthLargest, depth + 1)
            if queue.jobs.count == 1 { state.broadcast() }
        }
    }

    /// The next jobs, oldest first; waits for one. Nil once the queue is closed and empty.
    func take(_ countMax: Int) -> [WriteJob]? {
        let taken: [WriteJob] = state.wait { queue in
            if queue.jobs.isEmpty { return queue.isClosed ? [] : nil }
            let taken: [WriteJob]
            if queue.jobs.count <= countMax {
                taken = queue.jobs
                queue.jobs.removeAll(keepingCapacity: true)
            } else {
                taken = Array(queue.jobs.prefix(countMax))
                queue.jobs.removeFirst(countMax)
            }
            queue.jobsTaken = taken.count
            return taken
        }
        return taken.isEmpty ? nil : taken
    }

    /// The jobs that have arrived since, for a group that is not yet committed; none if there are none.
    func takeMore(_ countMax: Int) -> [WriteJob] {
        state.withLock { queue in
            let taken = Array(queue.jobs.prefix(countMax))
            queue.jobs.removeFirst(taken.count)
            queue.jobsTaken += taken.count
            return taken
        }
    }

    /// Puts jobs back that were taken and not begun; they stay first.
    func putBack(_ rest: ArraySlice<WriteJob>) {
        state.withLock { queue in
            queue.jobs.insert(contentsOf: rest, at: 0)
            queue.jobsTaken -= rest.count
        }
    }

    /// The batch is decided; called before its jobs are answered, so that whoever receives an answer finds room.
    func finishBatch(_ change: (inout StoreMetrics) -> Void) {
        state.withLock { queue in
            queue.jobsTaken = 0
            change(&queue.metrics)
        }
    }

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

    /// Refuses further jobs; those that wait are still done.
    func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
    }
}
