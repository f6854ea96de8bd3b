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
    let lane: WriteLane

    init(
        lane: WriteLane,
        run: @escaping @Sendable (DatabaseConnection) throws -> Completion,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        (work, self.lane, self.fail) = (.single(run), lane, fail)
    }

    @usableFromInline
    init(lane: WriteLane, share: any WriteShare, fail: @escaping @Sendable (any Error) -> Void) {
        (work, self.lane, self.fail) = (.together(share), lane, fail)
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

    /// What the group shows about further writes, if it was not rolled back. Jobs that could not be done, where none
    /// could, may have met a single lock or a store that takes no writes.
    var outcome: BatchOutcome {
        let isDoubtful =
            completions.isEmpty
            && failures.contains {
                let error = $0.error as? DatabaseError
                return error?.isTransient == true && error?.code != .full
            }
        return isDoubtful ? .doubtful : .decided
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

/// What a batch shows about further writes.
enum BatchOutcome {
    /// Its jobs were stored, or failed by their own faults.
    case decided
    /// Nothing was stored, which may be due to its jobs or to the store. A trial shows it.
    case doubtful
    /// It failed as a whole.
    case failed
}

/// How several writers share a queue, so that each commit serves as many jobs as the load allows.
///
/// On PostgreSQL the processor's work for a notification falls with the size of its group, because statements, the
/// commit and its notification are shared.
struct WriteSharing: Sendable {
    let writers: Int
    /// While one writer collects a group, another begins only if a job has waited for this long: the first may be
    /// waiting for a lock.
    var patience: Duration = .milliseconds(5)
    /// The longest wait of the first job for further ones.
    var collectingMax: Duration = .milliseconds(5)
    /// The size at which a group no longer waits: the rows of the largest statement (`Insertion`). More jobs would
    /// need more statements.
    var groupWanted = 64
}

/// The bounded queue in front of the writers, with the counters of all of them.
///
/// Tenants take turns (``WriteLane/group``); the jobs of each keep their order. While only one tenant has jobs, nothing is
/// counted.
///
/// A writer takes all jobs that wait. Meanwhile and until its commit, no other writer takes any, so that the next group
/// becomes large; during the commit the next group is collected. A group that could begin at once waits shortly if the
/// group before shows that more jobs are to be expected. A single client never waits, because its next job follows the
/// answer to the one before.
final class WriteQueue: Sendable {
    /// What a writer holds from taking jobs to their outcome. They count as waiting; otherwise the bound would double.
    private struct Holding {
        var jobs = 0
        var lanes: [Int] = []
        /// Whether its group is not yet at its commit.
        var isCollecting = false
    }

    /// Whether most of the jobs belong to one tenant.
    private enum Crowding {
        case unknown
        case none
        case by(Int)
    }

    private struct State {
        var jobs: [WriteJob] = []
        /// Whether the jobs may belong to several tenants.
        var isMixed = false
        /// The tenant of most of the jobs, while the queue is full.
        var crowding: Crowding = .unknown
        var holdings: [Holding]
        /// The lanes of jobs that are being done, with their writer.
        var lanes: [Int: Int] = [:]
        /// The jobs to be expected in the next group: all that were here when the last one ended, with the jobs of
        /// other writers. Clients of two groups that take turns so come together in one.
        var expected = 1
        var isClosed = false
        var isFull = false
        /// What counts against the store since the last batch that was written and had room: each batch that failed as
        /// a whole, and otherwise 1 for a batch without a job that could be done. After a failed trial it is at least
        /// ``failuresMax``.
        var failures = 0
        var metrics = StoreMetrics()

        var depth: Int { jobs.count + holdings.reduce(0) { $0 + $1.jobs } }

        mutating func append(_ job: WriteJob) {
            if let last = jobs.last, last.lane.group != job.lane.group { isMixed = true }
            jobs.append(job)
        }

        /// Puts jobs that were taken back to the front.
        mutating func putBack(_ rest: [WriteJob]) {
            jobs.insert(contentsOf: rest, at: 0)
            isMixed = isMixed || jobs.contains { $0.lane.group != jobs[0].lane.group }
        }

        /// Whether a job may enter the full queue: that of another tenant than the one that fills it.
        mutating func hasReserve(for job: WriteJob, depth: Int, depthMax: Int) -> Bool {
            guard depth < depthMax + depthMax / WriteQueue.reserveFraction else { return false }
            if case .unknown = crowding { crowding = majority() }
            guard case .by(let group) = crowding else { return false }
            return group != job.lane.group
        }

        /// Returns the tenant of more than half of the jobs (Boyer and Moore's vote).
        private func majority() -> Crowding {
            var (group, votes) = (0, 0)
            for job in jobs {
                if votes == 0 { group = job.lane.group }
                votes += job.lane.group == group ? 1 : -1
            }
            let count = jobs.reduce(0) { $0 + ($1.lane.group == group ? 1 : 0) }
            return count > jobs.count / 2 ? .by(group) : .none
        }

        /// Sorts the jobs so that tenants take turns: first the first job of each, then the second of each.
        private mutating func arrangeTurns() {
            var taken: [Int: Int] = [:]
            let turns = jobs.map { job in
                taken[job.lane.group, default: 0] += 1
                return taken[job.lane.group] ?? 0
            }
            isMixed = taken.count > 1
            guard isMixed else { return }
            let order = jobs.indices.sorted { turns[$0] == turns[$1] ? $0 < $1 : turns[$0] < turns[$1] }
            jobs = order.map { jobs[$0] }
        }

        /// Takes the next jobs that a writer may do, in order.
        mutating func take(_ countMax: Int, by writer: Int) -> [WriteJob] {
            crowding = .unknown
            if isMixed { arrangeTurns() }
            var taken: [WriteJob] = []
            if holdings.count == 1 {
                taken = Array(jobs.prefix(countMax))
                jobs.removeFirst(taken.count)
            } else {
                let waiting = jobs
                jobs = []
                for job in waiting {
                    let lane = job.lane.number
                    guard taken.count < countMax, isFree(lane, for: writer) else {
                        jobs.append(job)
                        continue
                    }
                    if lanes.updateValue(writer, forKey: lane) == nil { holdings[writer].lanes.append(lane) }
                    taken.append(job)
                }
            }
            holdings[writer].jobs += taken.count
            return taken
        }

        private func isFree(_ lane: Int, for writer: Int) -> Bool {
            lanes[lane].map { $0 == writer } ?? true
        }

        mutating func release(_ writer: Int) {
            for lane in holdings[writer].lanes { lanes[lane] = nil }
            holdings[writer] = Holding()
        }

        /// Returns how long an idle writer must wait before it takes jobs; nil without jobs for it.
        func pause(_ sharing: WriteSharing) -> Duration? {
            guard let oldest = jobs.first(where: { lanes[$0.lane.number] == nil }) else { return nil }
            if isClosed || sharing.writers == 1 { return .zero }
            let age = ContinuousClock.now - oldest.queuedAt
            if holdings.contains(where: \.isCollecting) { return sharing.patience - age }
            return jobs.count >= wanted(sharing) ? .zero : sharing.collectingMax - age
        }

        func wanted(_ sharing: WriteSharing) -> Int { min(expected, sharing.groupWanted) }
    }

    /// The part of the queue's length that is added for other tenants while one tenant fills it. Without it, that tenant
    /// would cause the refusal of the others' writes.
    private static let reserveFraction = 8

    /// Signalled when a writer may find jobs to take.
    private let state: Locked<State>
    private let depthMax: Int
    private let sharing: WriteSharing

    init(depthMax: Int, sharing: WriteSharing = WriteSharing(writers: 1)) {
        (self.depthMax, self.sharing) = (depthMax, sharing)
        state = Locked(State(holdings: Array(repeating: Holding(), count: sharing.writers)))
        state.withLock { $0.jobs.reserveCapacity(64) }
    }

    /// Appends a job; returns false if the queue is closed.
    ///
    /// - Throws: If the queue is full.
    func append(_ job: WriteJob) throws(StoreBusy) -> Bool {
        try state.withLock { queue throws(StoreBusy) in
            if queue.isClosed { return false }
            let depth = queue.depth
            if depth >= depthMax, !queue.hasReserve(for: job, depth: depth, depthMax: depthMax) {
                queue.metrics.refused += 1
                throw StoreBusy(queueDepth: depth)
            }
            queue.append(job)
            queue.metrics.queueDepthLargest = max(queue.metrics.queueDepthLargest, depth + 1)
            if queue.jobs.count == 1 || queue.jobs.count == queue.wanted(sharing) { state.signal() }
            return true
        }
    }

    /// Returns the next jobs, in order; waits for one. Nil once the queue is closed and empty.
    func take(_ countMax: Int, by writer: Int = 0) -> [WriteJob]? {
        while true {
            let pause: Duration? = state.wait { queue in
                if let pause = queue.pause(sharing) { return .some(pause) }
                // The last jobs of a closed queue may be in the hands of others.
                return queue.isClosed && queue.jobs.isEmpty ? .some(nil) : nil
            }
            guard let pause else { return nil }
            let taken: [WriteJob]? = state.wait(atMost: pause) { queue in
                guard let pause = queue.pause(sharing) else { return [] }
                guard pause <= .zero else { return nil }
                let taken = queue.take(countMax, by: writer)
                queue.holdings[writer].isCollecting = true
                wakeNext(queue)
                return taken
            }
            if let taken, !taken.isEmpty { return taken }
        }
    }

    /// Returns the jobs that have arrived since, for a group that is not yet committed.
    func takeArrived(_ countMax: Int, by writer: Int = 0) -> [WriteJob] {
        state.withLock { $0.take(countMax, by: writer) }
    }

    /// Records that a writer's group takes no more jobs, so that the next writer begins.
    func finishCollecting(by writer: Int) {
        state.withLock { queue in
            queue.holdings[writer].isCollecting = false
            wakeNext(queue)
        }
    }

    /// Puts back jobs that were taken and not done; they are first again.
    func putBack(_ rest: [WriteJob], by writer: Int = 0) {
        state.withLock { queue in
            queue.putBack(rest)
            queue.holdings[writer].jobs -= rest.count
        }
    }

    /// Records that a batch is decided. It is called before its jobs are answered, so that a caller with an answer
    /// finds room in the queue.
    ///
    /// - Parameters:
    ///   - isFull: Whether the database lacked room for some of it; nil if nothing was written.
    ///   - outcome: What it shows about further writes.
    func finishBatch(
        by writer: Int = 0, isFull: Bool?, outcome: BatchOutcome = .decided, _ change: (inout StoreMetrics) -> Void
    ) {
        state.withLock { queue in
            queue.expected = queue.depth
            queue.release(writer)
            queue.isFull = isFull ?? queue.isFull
            switch outcome {
            case .failed: queue.failures += 1
            case .doubtful: queue.failures = max(queue.failures, 1)
            case .decided: if isFull == false { queue.failures = 0 }
            }
            change(&queue.metrics)
            wakeNext(queue)
        }
    }

    /// Wakes a writer for jobs that one has left or may now do, and all of them at the end.
    private func wakeNext(_ queue: borrowing State) {
        if queue.isClosed {
            state.broadcast()
        } else if !queue.jobs.isEmpty {
            state.signal()
        }
    }

    /// Whether the last batch that wrote anything found no room.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// Failures in a row from which on the store counts as blocked. A single one may have met a restart of the server.
    private static let failuresMax = 2

    /// Whether the store takes no writes.
    var isBlocked: Bool { state.withLock { $0.failures >= Self.failuresMax } }

    /// Whether something counts against the store. A trial shows whether it is blocked.
    var isInDoubt: Bool { state.withLock { $0.failures > 0 } }

    /// Records that a trial failed: the store counts as blocked until a batch is written.
    func noteFailedTrial() { state.withLock { $0.failures = max($0.failures, Self.failuresMax) } }

    func count(_ change: (inout StoreMetrics) -> Void) {
        state.withLock { change(&$0.metrics) }
    }

    func snapshot() -> StoreMetrics {
        state.withLock { queue in
            var copy = queue.metrics
            copy.queueDepth = queue.depth
            return copy
        }
    }

    /// Refuses further jobs; the waiting jobs are still done.
    func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
    }
}
