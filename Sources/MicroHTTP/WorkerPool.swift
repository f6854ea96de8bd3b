import Threads

/// Threads for blocking work, with a bounded queue.
public final class WorkerPool: Sendable {
    private struct Queue {
        var jobs: [@Sendable () -> Void] = []
        /// The index of the first waiting job; the taken ones before it are removed together.
        var first = 0
        var isStopping = false

        var depth: Int { jobs.count - first }

        mutating func popFirst() -> (@Sendable () -> Void)? {
            guard first < jobs.count else { return nil }
            let job = jobs[first]
            first += 1
            if first == jobs.count || first > 1024 {
                jobs.removeFirst(first)
                first = 0
            }
            return job
        }
    }

    private enum Turn {
        case job(@Sendable () -> Void)
        case end
    }

    private let queueMax: Int
    private let threads: [LoopThread]
    /// Signalled when a job arrives, and at the end.
    private let queue = Monitor(Queue())

    public init(name: String, threads: Int, queueMax: Int) {
        self.queueMax = queueMax
        self.threads = (0..<threads).map { LoopThread("\(name)-\($0)") }
        for thread in self.threads {
            thread.start { [queue] in
                while case .job(let job) = Self.next(of: queue) { job() }
            }
        }
    }

    /// Queues a job. Returns false, without doing the job, if the queue is full or the pool has stopped.
    public func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = queue.withLock { queue in
            guard !queue.isStopping, queue.depth < queueMax else { return false }
            queue.jobs.append(job)
            return true
        }
        if isTaken { queue.signal() }
        return isTaken
    }

    /// The number of waiting jobs.
    public var depth: Int { queue.withLock { $0.depth } }

    /// Does the queued work, and returns when all threads have ended. Must not be called on one of them.
    public func shutdown() {
        queue.withLock { $0.isStopping = true }
        queue.broadcast()
        for thread in threads { thread.join() }
    }

    private static func next(of queue: Monitor<Queue>) -> Turn {
        queue.wait { queue in queue.popFirst().map { .job($0) } ?? (queue.isStopping ? .end : nil) }
    }
}
