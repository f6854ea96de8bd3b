import Threads

/// Wakes threads that wait for something that a transaction has written.
final class WakeSignal: Sendable {
    private let threads = Locked([LoopThread]())

    /// Adds a thread to wake.
    func add(_ thread: LoopThread) { threads.withLock { $0.append(thread) } }

    func send() {
        for thread in threads.withLock({ $0 }) { thread.wake() }
    }
}
