import Foundation

/// A clock that stands still until a test advances it.
///
/// `@unchecked Sendable`: the variables are only accessed while `lock` is held.
public final class StandingClock: @unchecked Sendable {
    private let lock = NSLock()
    /// Milliseconds since 1970.
    private var current: Int
    private var sleepers: [Int: (until: Int, continuation: CheckedContinuation<Void, any Error>)] = [:]
    private var ended: Set<Int> = []
    private var count = 0

    public init(at moment: Int = 1_768_035_600_000) {
        current = moment
    }

    public var now: Int { lock.withLock { current } }

    public func advance(to moment: Int) {
        let due = lock.withLock {
            current = max(current, moment)
            let due = sleepers.filter { $0.value.until <= current }
            for key in due.keys { sleepers[key] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    public func advance(milliseconds: Int) { advance(to: now + milliseconds) }

    /// Waits until a test has advanced the clock to `moment`, or the task is cancelled.
    public func wait(until moment: Int) async throws {
        let key = lock.withLock {
            count += 1
            return count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = lock.withLock {
                    if current >= moment || ended.remove(key) != nil { return true }
                    sleepers[key] = (moment, continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let sleeper = lock.withLock {
                let sleeper = sleepers.removeValue(forKey: key)
                if sleeper == nil { ended.insert(key) }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
        try Task.checkCancellation()
    }
}
