import Threads

/// A pool of threads for blocking work, with a bounded queue. Groups of owners take turns, and so do the owners of a
/// group. So an owner with many queued jobs delays another by at most one job, and a group with many owners delays
/// another group by at most one.
public final class WorkerPool: Sendable {
    public typealias Job = @Sendable () -> Void

    /// Whose turn a job waits for.
    public struct Owner: Sendable {
        let group: Int
        let member: Int?

        /// - Parameters:
        ///   - group: A number that identifies the user's tenant.
        ///   - member: A number that identifies the user. The jobs of a member start in order. Nil for a job with a turn
        ///     of its own in the group.
        public init(group: Int, member: Int?) {
            (self.group, self.member) = (group, member)
        }
    }

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

    /// The jobs of one group.
    private struct Group {
        private enum Next {
            case job(Job)
            /// The member's first job.
            case member(Int)
        }

        private var turns = Line<Next>()
        /// The jobs of members that have a turn.
        private var waiting: [Int: Line<Job>] = [:]

        var isEmpty: Bool { turns.count == 0 }

        mutating func append(_ job: @escaping Job, of member: Int?, memberMax: Int) -> Bool {
            guard let member else {
                turns.append(.job(job))
                return true
            }
            let count = waiting[member]?.count
            guard count ?? 0 < memberMax else { return false }
            waiting[member, default: Line()].append(job)
            if count == nil { turns.append(.member(member)) }
            return true
        }

        mutating func popFirst() -> Job? {
            switch turns.popFirst() {
            case nil: return nil
            case .job(let job): return job
            case .member(let member):
                let job = waiting[member]?.popFirst()
                if waiting[member]?.count ?? 0 > 0 { turns.append(.member(member)) } else { waiting[member] = nil }
                return job
            }
        }
    }

    private struct Queue {
        private var turns = Line<Int>()
        /// The groups that have a turn.
        private var groups: [Int: Group] = [:]
        private(set) var depth = 0
        var isStopping = false

        /// - Parameter ownerMax: The maximum number of waiting jobs of one owner.
        mutating func append(_ job: @escaping Job, of owner: Owner, ownerMax: Int) -> Bool {
            let isNew = groups[owner.group] == nil
            guard groups[owner.group, default: Group()].append(job, of: owner.member, memberMax: ownerMax) else {
                return false
            }
            if isNew { turns.append(owner.group) }
            depth += 1
            return true
        }

        mutating func popFirst() -> Job? {
            guard let group = turns.popFirst() else { return nil }
            depth -= 1
            let job = groups[group]?.popFirst()
            if groups[group]?.isEmpty == false { turns.append(group) } else { groups[group] = nil }
            return job
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
    /// - Parameter owner: Nil for a job without an owner; these jobs have the turns of one group.
    /// - Returns: False if the job will not run: the queue is full, the owner has too many jobs, or the pool has
    ///   stopped.
    public func submit(of owner: Owner? = nil, _ job: @escaping Job) -> Bool {
        let isTaken = queue.withLock { queue in
            guard !queue.isStopping, queue.depth < queueMax else { return false }
            return queue.append(job, of: owner ?? Owner(group: 0, member: nil), ownerMax: ownerMax)
        }
        if isTaken { queue.signal() }
        return isTaken
    }

    /// Runs the next job on the calling thread, for a pool without threads. Returns false if no job waits.
    func runNext() -> Bool {
        guard let job = queue.withLock({ $0.popFirst() }) else { return false }
        job()
        return true
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
