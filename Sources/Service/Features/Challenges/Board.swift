import Domain
import Threads
import Values

/// One board in memory: its name, and its order under a lock.
final class Board: Sendable {
    struct Key: Hashable, Sendable {
        let tenant: String
        let id: String
    }

    let key: Key
    let challengeId: ID<Challenge>
    let order: Challenge.Order
    /// Those who write wait for whoever has the lock: nobody reads the database with it.
    private let state = Locked(BoardState())

    init(_ key: Key, challengeId: ID<Challenge>, order: Challenge.Order) {
        self.key = key
        self.challengeId = challengeId
        self.order = order
    }

    func withLock<Value>(_ body: (inout BoardState) -> Value) -> Value { state.withLock { body(&$0) } }

    var presence: BoardState.Presence { withLock { $0.presence } }
    var bytes: Int { withLock { $0.leaderboard.bytes } }

    var isReady: Bool { if case .ready = presence { true } else { false } }

    /// What has changed since it was last taken, with the number of changes; nil for nothing.
    func takeMovement() -> (movement: SettledMovement, changes: Int)? {
        // Sorted with nobody waiting.
        withLock { $0.takeMovement() }.map { (SettledMovement($0.movement), $0.changes) }
    }
}
