import Foundation

/// State shared between threads, accessible only while its lock is held.
///
/// The service has the same type in `Threads` as `Locked`; apps build this module alone. `Synchronization.Mutex`
/// requires newer systems than apps support, and ThreadSanitizer on Linux does not know it and reports false races.
///
/// `@unchecked Sendable`: `state` is only accessed inside `withLock`. A reference that leaves it must be Sendable
/// itself, or be removed from the state by its taker.
package final class Guarded<State>: @unchecked Sendable {
    /// Guards `state`.
    private let lock = NSLock()
    private var state: State

    package init(_ state: State) { self.state = state }

    /// Runs `body` with the lock held. `body` must not block and must not take the same lock again.
    package func withLock<Result, Problem: Error>(
        _ body: (inout State) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}
