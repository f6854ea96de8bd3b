import Foundation

/// The threads that test bodies run on.
///
/// Swift's own pool has as many threads as the machine has cores. Many tests block their thread until a socket or a
/// database answers. On the pool, two of them stop all tasks of the code under test on a machine with two cores.
///
/// `@unchecked Sendable`: `jobs` is only touched while `condition` is locked.
final class TestThreads: TaskExecutor, @unchecked Sendable {
    /// A few more threads than cores, so that some can block. Many more would let the tests slow each other down.
    static let shared = TestThreads(count: ProcessInfo.processInfo.activeProcessorCount + 4)

    /// Guards `jobs`.
    private let condition = NSCondition()
    /// The oldest is the last.
    private var jobs: [UnownedJob] = []

    private init(count: Int) {
        for _ in 0..<count {
            Thread.detachNewThread { [self] in
                while true { takeJob().runSynchronously(on: asUnownedTaskExecutor()) }
            }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.withLock {
            jobs.insert(job, at: 0)
            condition.signal()
        }
    }

    private func takeJob() -> UnownedJob {
        condition.withLock {
            while true {
                if let job = jobs.popLast() { return job }
                condition.wait()
            }
        }
    }
}
