/// Variables that several threads share, with a lock and a way to wait for what others change of them.
///
/// `@unchecked Sendable`: `state` is only touched while `condition` is locked. What leaves it by reference must be
/// Sendable itself, or belong to whoever took it out.
public final class Monitor<State>: @unchecked Sendable {
    /// Guards `state`.
    @usableFromInline let condition = Condition()
    /// Like that of a ``Locked``.
    @exclusivity(unchecked) @usableFromInline var state: State

    public init(_ state: State) { self.state = state }

    /// Runs `body` with the lock taken. It must not wait, and not take the same lock again.
    @inlinable @inline(__always)
    public func withLock<Result, Problem: Error>(
        _ body: (inout State) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        condition.lock()
        defer { condition.unlock() }
        return try body(&state)
    }

    /// Waits until `body` has a result: it is asked at once, and again after each signal, with the lock taken.
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

    /// The same for a bounded time; nil when it is over and `body` still has none.
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

    /// Wakes one who waits. May be called inside `withLock` and outside.
    @inlinable
    public func signal() { condition.signal() }

    /// Wakes all who wait. May be called inside `withLock` and outside.
    @inlinable
    public func broadcast() { condition.broadcast() }
}
