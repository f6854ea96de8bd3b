import Threads

/// The ended attempts of an outbox whose outcomes are not stored yet. Attempts end on other threads than the one that
/// stores their outcomes.
final class EndedAttempts<Attempt: Sendable>: Sendable {
    private let list = Locked([Attempt]())

    func add(_ attempt: Attempt) { list.withLock { $0.append(attempt) } }

    /// Passes all ended attempts to an action that stores their outcomes. If it throws, they stay for the next call.
    ///
    /// - Returns: What the action returns; nil if no attempt has ended.
    func store<Result>(_ action: ([Attempt]) throws -> Result) throws -> Result? {
        let ended = list.withLock { list in
            defer { list = [] }
            return list
        }
        guard !ended.isEmpty else { return nil }
        do {
            return try action(ended)
        } catch {
            list.withLock { $0 = ended + $0 }
            throw error
        }
    }
}
