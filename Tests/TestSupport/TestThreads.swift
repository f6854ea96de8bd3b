import Foundation

/// The threads that run test bodies.
///
/// Swift's own pool has as many threads as the machine has cores. Many tests block their thread until a socket or a
/// database answers. On a machine with two cores, two such tests would stop every task of the code under test.
///
/// `@unchecked Sendable`: `jobs` is only accessed while `condition` is locked.
final class TestThreads: TaskExecutor, @unchecked Sendable {
    /// A few more threads than cores, because some block. Many more would slow the tests down.
    static let shared = TestThreads(count: ProcessInfo.processInfo.activeProcessorCount + 4)

    /// Guards `jobs`.
    private let condition = NSCondition()
    /// The queued jobs; the oldest is the last.
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
