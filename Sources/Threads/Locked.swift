/// State that several threads share, accessible only under its lock. A thread can wait until another one changes it.
///
/// `Synchronization.Mutex` has the same lock, but ThreadSanitizer does not know it and reports false races.
///
/// `@unchecked Sendable`: `state` is only accessed while `condition` is locked. Anything that leaves it by reference
/// must be Sendable itself, or be owned by the caller that took it out.
public final class Locked<State>: @unchecked Sendable {
    /// Guards `state`.
    @usableFromInline let condition = Condition()
    /// The lock excludes a second access, including one of the same thread, so a check at run time could find nothing.
    @exclusivity(unchecked) @usableFromInline var state: State

    public init(_ state: State) { self.state = state }

    /// Runs `body` under the lock. The body must not wait, and must not take the same lock again.
    @inlinable @inline(__always)
    public func withLock<Result, Problem: Error>(
        _ body: (inout State) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        condition.lock()
        defer { condition.unlock() }
        return try body(&state)
    }

    /// Waits until `body` returns a result. It is called at once, and again after each signal, under the lock.
    @inlinable
    public func wait<Result, Problem: Error>(
        for body: (inout State) throws(Problem) -> Result?
    ) throws(Problem) -> Result {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let result = try body(&state) { return result }
            condition.wait()
        }
    }

    /// Waits until `body` returns a result, or for a limited time; returns nil after that.
    @inlinable
    public func wait<Result, Problem: Error>(
        atMost duration: Duration, for body: (inout State) throws(Problem) -> Result?
    ) throws(Problem) -> Result? {
        let deadline = ContinuousClock.now + duration
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let result = try body(&state) { return result }
            let rest = ContinuousClock.now.duration(to: deadline)
            guard rest > .zero else { return nil }
            condition.wait(atMost: rest)
        }
    }

    /// Wakes one waiting thread. May be called inside and outside `withLock`.
    @inlinable
    public func signal() { condition.signal() }

    /// Wakes all waiting threads. May be called inside and outside `withLock`.
    @inlinable
    public func broadcast() { condition.broadcast() }
}
