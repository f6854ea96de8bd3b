import Foundation

/// Variables that several threads share, and the lock without which nobody reaches them.
///
/// `Synchronization.Mutex` would do the same; ThreadSanitizer does not know it and reports races that are none.
///
/// `@unchecked Sendable`: `state` is only touched inside `withLock`. What leaves it by reference must be Sendable itself,
/// or belong to whoever took it out.
public final class Locked<State>: @unchecked Sendable {
    /// Guards `state`.
    @usableFromInline let lock = NSLock()
    /// The lock excludes a second access, also of the same thread: a check at run time could find nothing.
    @exclusivity(unchecked) @usableFromInline var state: State

    public init(_ state: State) { self.state = state }

    /// Runs `body` with the lock taken. It must not wait, and not take the same lock again.
    @inlinable @inline(__always)
    public func withLock<Result, Problem: Error>(
        _ body: (inout State) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}
