import Domain
import Foundation

/// How many requests each caller has made in the present minute (CNT G4).
///
/// In memory and of this process: with several replicas each counts for itself.
///
/// `@unchecked Sendable`: `buckets` is only touched while `lock` is held.
final class RateLimiter: @unchecked Sendable {
    private struct Owner: Hashable {
        let tenant: String
        let userId: String
    }

    private let limitUser: Int
    private let limitService: Int
    /// Guards `buckets`.
    private let lock = NSLock()
    private var buckets: [Owner: RateBucket] = [:]

    init(limitUser: Int, limitService: Int) {
        self.limitUser = limitUser
        self.limitService = limitService
    }

    /// The bucket that all tokens of a caller share; nil: it has no limit.
    func bucket(for caller: Caller, at now: Timestamp) -> RateBucket? {
        let limit = caller.isService ? limitService : limitUser
        guard limit > 0 else { return nil }
        let owner = Owner(tenant: caller.tenant, userId: caller.userId.text)
        return lock.withLock {
            if let bucket = buckets[owner] { return bucket }
            if buckets.count >= Limits.rateBucketsMax {
                buckets = buckets.filter { !$0.value.isOver(at: now) }
                // All are busy: forgetting them gives some callers a second allowance, and memory its bound.
                if buckets.count >= Limits.rateBucketsMax { buckets.removeAll() }
            }
            let bucket = RateBucket(limit: limit)
            buckets[owner] = bucket
            return bucket
        }
    }
}

extension Failure {
    static func rateLimited(_ rate: RateBucket.State) -> Failure {
        Failure(
            .rateLimited, "rate_limited",
            "You may make \(rate.limit) requests in \(Limits.rateWindowSeconds) seconds.",
            retryAfterSeconds: Int(rate.resetSeconds))
    }
}

/// One caller's requests in one window.
///
/// `@unchecked Sendable`: the variables are only touched while `lock` is held.
final class RateBucket: @unchecked Sendable {
    struct State: Sendable, Equatable {
        let limit: Int
        let remaining: Int
        /// Seconds until the window ends.
        let resetSeconds: Int64
        let isAllowed: Bool
    }

    private let limit: Int
    /// Guards `startedAt` and `count`.
    private let lock = NSLock()
    private var startedAt: Int64 = .min
    private var count = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// Counts one request.
    func take(at now: Timestamp) -> State {
        let second = now.seconds
        return lock.withLock {
            if startedAt == .min || second >= startedAt + Limits.rateWindowSeconds || second < startedAt {
                startedAt = second
                count = 0
            }
            let isAllowed = count < limit
            if isAllowed { count += 1 }
            return State(
                limit: limit, remaining: limit - count,
                resetSeconds: max(1, startedAt + Limits.rateWindowSeconds - second), isAllowed: isAllowed)
        }
    }

    func isOver(at now: Timestamp) -> Bool {
        lock.withLock { startedAt == .min || now.seconds >= startedAt + Limits.rateWindowSeconds }
    }
}
