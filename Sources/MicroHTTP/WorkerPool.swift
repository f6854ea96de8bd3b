import Threads

/// A pool of threads for blocking work, with a bounded queue. The jobs of one owner start in order, and owners take
/// turns. So an owner with many queued jobs delays another owner by at most one job.
public final class WorkerPool: Sendable {
    public typealias Job = @Sendable () -> Void

    /// A first-in, first-out queue.
    private struct Line<Element> {
        private var elements: [Element] = []
        /// The index of the first element that is not taken. Taken elements are removed in batches.
        private var first = 0

        var count: Int { elements.count - first }

        mutating func append(_ element: Element) { elements.append(element) }

        mutating func popFirst() -> Element? {
            guard first < elements.count else { return nil }
            let element = elements[first]
            first += 1
            if first == elements.count || first > 1024 {
                elements.removeFirst(first)
                first = 0
            }
            return element
        }
    }

    private struct Queue {
        private enum Next {
            case job(Job)
            /// The owner's first job.
            case owner(Int)
        }

        private var turns = Line<Next>()
        /// The jobs of owners that have a turn.
        private var waiting: [Int: Line<Job>] = [:]
        private(set) var depth = 0
        var isStopping = false

        /// - Parameter ownerMax: The maximum number of waiting jobs of one owner.
        mutating func append(_ job: @escaping Job, of owner: Int?, ownerMax: Int) -> Bool {
            if let owner {
                let isNew = waiting[owner] == nil
                guard isNew || (waiting[owner]?.count ?? 0) < ownerMax else { return false }
                waiting[owner, default: Line()].append(job)
                if isNew { turns.append(.owner(owner)) }
            } else {
                turns.append(.job(job))
            }
            depth += 1
            return true
        }

        mutating func popFirst() -> Job? {
            guard let next = turns.popFirst() else { return nil }
            depth -= 1
            switch next {
            case .job(let job): return job
            case .owner(let owner):
                let job = waiting[owner]?.popFirst()
                if (waiting[owner]?.count ?? 0) > 0 { turns.append(.owner(owner)) } else { waiting[owner] = nil }
                return job
            }
        }
    }

    private enum Turn {
        case job(Job)
        case end
    }

    private let queueMax: Int
    private let ownerMax: Int
    private let threads: [LoopThread]
    /// Signalled when a job arrives, and at the end.
    private let queue = Locked(Queue())

    /// - Parameters:
    ///   - queueMax: The maximum number of waiting jobs.
    ///   - ownerMax: The maximum number of waiting jobs of one owner; nil means `queueMax`.
    public init(name: String, threads: Int, queueMax: Int, ownerMax: Int? = nil) {
        self.queueMax = queueMax
        self.ownerMax = ownerMax ?? queueMax
        self.threads = (0..<threads).map { LoopThread("\(name)-\($0)") }
        for thread in self.threads {
            thread.start { [queue] in
                while case .job(let job) = Self.next(of: queue) { job() }
            }
        }
    }

    /// Adds a job to the queue.
    ///
    /// - Parameter owner: A number that identifies the job's user; nil for a job with its own turn.
    /// - Returns: False if the job will not run: the queue is full, the owner has too many jobs, or the pool has
    ///   stopped.
    public func submit(of owner: Int? = nil, _ job: @escaping Job) -> Bool {
        let isTaken = queue.withLock { queue in
            guard !queue.isStopping, queue.depth < queueMax else { return false }
            return queue.append(job, of: owner, ownerMax: ownerMax)
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

    private static func next(of queue: Locked<Queue>) -> Turn {
        queue.wait { queue in queue.popFirst().map { .job($0) } ?? (queue.isStopping ? .end : nil) }
    }
}
