import Foundation

/// Variables that several threads share, and the lock without which nobody reaches them.
///
/// The service has the same in `Threads`; apps build this module alone. `Synchronization.Mutex` asks for newer systems than
/// apps support, and ThreadSanitizer on Linux does not know it and reports races that are none.
///
/// `@unchecked Sendable`: `state` is only touched inside `withLock`. What leaves it by reference must be Sendable itself,
/// or belong to whoever took it out.
final class Locked<State>: @unchecked Sendable {
    /// Guards `state`.
    private let lock = NSLock()
    private var state: State

    init(_ state: State) { self.state = state }

    /// Runs `body` with the lock taken. It must not wait, and not take the same lock again.
    func withLock<Result, Problem: Error>(
        _ body: (inout State) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}
