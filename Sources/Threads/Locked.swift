import Foundation

/// State that several threads share, accessible only under its lock.
///
/// `Synchronization.Mutex` would do the same, but ThreadSanitizer does not know it and reports false races.
///
/// `@unchecked Sendable`: `state` is only accessed inside `withLock`. Anything that leaves it by reference must be
/// Sendable itself, or be owned by the caller that took it out.
public final class Locked<State>: @unchecked Sendable {
    /// Guards `state`.
    @usableFromInline let lock = NSLock()
    /// The lock excludes a second access, including one of the same thread, so a check at run time could find nothing.
    @exclusivity(unchecked) @usableFromInline var state: State

    public init(_ state: State) { self.state = state }

    /// Runs `body` under the lock. The body must not wait, and must not take the same lock again.
    @inlinable @inline(__always)
    public func withLock<Result, Problem: Error>(
        _ body: (inout State) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}
