import Foundation

/// Threads for work that may block, with a bounded queue in front.
///
/// `@unchecked Sendable`: the variables are only touched while `condition` is locked.
public final class WorkerPool: @unchecked Sendable {
    private let queueMax: Int
    /// Guards everything below.
    private let condition = NSCondition()
    private var queue: [@Sendable () -> Void] = []
    /// The first job in `queue` that is not taken; the taken ones are dropped together.
    private var first = 0
    private var isStopping = false
    private var runningThreads: Int

    public init(name: String, threads: Int, queueMax: Int) {
        self.queueMax = queueMax
        runningThreads = threads
        for index in 0..<threads {
            let thread = Thread { [self] in run() }
            thread.name = "\(name)-\(index)"
            thread.start()
        }
    }

    /// False: the queue is full, or the pool has stopped; the job is not done.
    public func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        condition.withLock {
            guard !isStopping, queue.count - first < queueMax else { return false }
            queue.append(job)
            condition.signal()
            return true
        }
    }

    /// Jobs that wait.
    public var depth: Int { condition.withLock { queue.count - first } }

    /// Does what is queued, and returns when all threads have ended. Not to be called by one of them.
    public func shutdown() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
            while runningThreads > 0 { condition.wait() }
        }
    }

    private func run() {
        while let job = take() { job() }
        condition.withLock {
            runningThreads -= 1
            condition.broadcast()
        }
    }

    private func take() -> (@Sendable () -> Void)? {
        condition.withLock {
            while first == queue.count {
                if isStopping { return nil }
                condition.wait()
            }
            let job = queue[first]
            first += 1
            if first == queue.count || first > 1024 {
                queue.removeFirst(first)
                first = 0
            }
            return job
        }
    }
}
