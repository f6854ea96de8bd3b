import Domain
import Threads
import Values

/// Counts each caller's requests, and the events they publish, in the present minute (R-CNT-G4).
///
/// The counts are in memory; replicas share the counts of busy callers (`RateSharing`).
final class RateLimiter: Sendable {
    /// The usage of a busy caller in the present minute.
    struct BusyCount: Sendable {
        let owner: Owner
        let bucket: RateBucket
        let startedAt: Int64
        let count: Int
        /// Counted here, and not yet shared with the other replicas.
        let unshared: Int
    }

    private let limitUser: Int
    private let limitService: Int
    private let buckets = Locked<[Owner: RateBucket]>([:])

    init(limitUser: Int, limitService: Int) {
        self.limitUser = limitUser
        self.limitService = limitService
    }

    /// Returns the bucket that all tokens of a caller share; nil means no limit.
    func bucket(for caller: Caller, at now: Timestamp) -> RateBucket? {
        let limit = caller.isService ? limitService : limitUser
        guard limit > 0 else { return nil }
        return buckets.withLock { buckets in
            if let bucket = buckets[caller.owner] { return bucket }
            if buckets.count >= Limits.rateBucketsMax {
                buckets = buckets.filter { !$0.value.isOver(at: now) }
                // All callers are busy: dropping the buckets gives some callers a second allowance, but bounds the
                // memory.
                if buckets.count >= Limits.rateBucketsMax { buckets.removeAll() }
            }
            let bucket = RateBucket(limit: limit)
            buckets[caller.owner] = bucket
            return bucket
        }
    }

    /// Returns the callers that have used a large part of their minute.
    func busy(at now: Timestamp) -> [BusyCount] {
        buckets.withLock { $0 }.compactMap { owner, bucket in bucket.busyCount(of: owner, at: now) }
    }
}

extension Failure {
    /// Returns the failure for a request that publishes more than the minute's budget allows.
    static func eventBudget(_ shortage: RateBucket.ExhaustedBudget) -> Failure {
        Failure(
            .rateLimited, "event_budget",
            """
            Your requests may publish \(shortage.limit) \(shortage.unit.rawValue) in \(Limits.rateWindowSeconds) \
            seconds, in addition to the share that each request has. This request publishes to too many receivers.
            """,
            retryAfterSeconds: Int(shortage.resetSeconds))
    }

    static func rateLimited(_ rate: RateBucket.State) -> Failure {
        Failure(
            .rateLimited, "rate_limited",
            "You may send \(rate.limit) requests in \(Limits.rateWindowSeconds) seconds.",
            retryAfterSeconds: Int(rate.resetSeconds))
    }
}

/// One caller's requests in one window: a minute of the clock, which is the same on all replicas.
final class RateBucket: Sendable {
    struct State: Sendable, Equatable {
        let limit: Int
        let remaining: Int
        /// Seconds until the window ends.
        let resetSeconds: Int64
        let isAllowed: Bool

        /// Writes it in the format of the `RateLimit` header.
        func write(to text: inout [UInt8]) {
            text.append(contentsOf: "\"default\";r=".utf8)
            text.append(decimal: Int64(remaining))
            text.append(contentsOf: ";t=".utf8)
            text.append(decimal: resetSeconds)
        }
    }

    /// The exhausted budget, for a request that publishes much.
    struct ExhaustedBudget: Sendable, Equatable {
        enum Unit: String, Sendable {
            case events, bytes
        }

        let unit: Unit
        /// The limit per window.
        let limit: Int
        let resetSeconds: Int64
    }

    private struct Window {
        var startedAt: Int64 = .min
        var count = 0
        /// Events published beyond the requests' shares on this replica; replicas do not add them up.
        var events = 0
        var bytes = 0
        /// The part of `count` that was shared with other replicas.
        var shared = 0
        /// The count of the other replicas.
        var elsewhere = 0

        func isOver(at now: Timestamp) -> Bool {
            // This also covers a clock that was set back: then the window lies in the future.
            startedAt != Self.start(at: now)
        }

        /// Begins the present window, if this one is over.
        mutating func roll(to now: Timestamp) {
            if isOver(at: now) { self = Window(startedAt: Self.start(at: now)) }
        }

        func resetSeconds(at now: Timestamp) -> Int64 { max(1, startedAt + Limits.rateWindowSeconds - now.seconds) }

        private static func start(at now: Timestamp) -> Int64 { now.seconds - now.seconds % Limits.rateWindowSeconds }
    }

    /// The value of the `RateLimit-Policy` header.
    let policy: String
    private let limit: Int
    private let window = Locked(Window())

    init(limit: Int) {
        self.limit = limit
        policy = "\"default\";q=\(limit);w=\(Limits.rateWindowSeconds)"
    }

    /// Counts one request.
    func take(at now: Timestamp) -> State {
        return window.withLock { window in
            window.roll(to: now)
            let isAllowed = window.count + window.elsewhere < limit
            if isAllowed { window.count += 1 }
            return state(of: window, at: now, isAllowed: isAllowed)
        }
    }

    /// Counts the additional cost of one request, which was itself counted before. The first request of a window may
    /// exceed the limit.
    func take(_ requests: Int, at now: Timestamp) -> State {
        return window.withLock { window in
            window.roll(to: now)
            let used = window.count + window.elsewhere
            let isAllowed = used + requests <= limit || used <= 1
            if isAllowed { window.count += requests }
            return state(of: window, at: now, isAllowed: isAllowed)
        }
    }

    /// Counts the events and bytes that a request publishes beyond its share. Returns nil if they fit the limit, which
    /// always holds for the first in a window.
    func take(events: Int, bytes: Int, at now: Timestamp) -> ExhaustedBudget? {
        let (eventsMax, bytesMax) = (limit * Limits.eventsPerRequest, limit * Limits.eventBytesPerRequest)
        return window.withLock { window in
            window.roll(to: now)
            let (sumEvents, sumBytes) = (window.events + events, window.bytes + bytes)
            let resetSeconds = window.resetSeconds(at: now)
            if sumEvents > eventsMax, window.events > 0 {
                return ExhaustedBudget(unit: .events, limit: eventsMax, resetSeconds: resetSeconds)
            }
            if sumBytes > bytesMax, window.bytes > 0 {
                return ExhaustedBudget(unit: .bytes, limit: bytesMax, resetSeconds: resetSeconds)
            }
            (window.events, window.bytes) = (sumEvents, sumBytes)
            return nil
        }
    }

    private func state(of window: Window, at now: Timestamp, isAllowed: Bool) -> State {
        State(
            limit: limit, remaining: max(0, limit - window.count - window.elsewhere),
            resetSeconds: window.resetSeconds(at: now), isAllowed: isAllowed)
    }

    /// Returns nil for a caller far from the limit.
    func busyCount(of owner: Owner, at now: Timestamp) -> RateLimiter.BusyCount? {
        window.withLock { window in
            guard !window.isOver(at: now), window.count > limit / Limits.rateSharedFraction else { return nil }
            return .init(
                owner: owner, bucket: self, startedAt: window.startedAt, count: window.count,
                unshared: window.count - window.shared)
        }
    }

    /// - Parameter sum: the count of all replicas, including `published`.
    func noteShared(_ published: RateLimiter.BusyCount, sum: Int) {
        window.withLock { window in
            guard window.startedAt == published.startedAt else { return }
            window.shared = published.count
            window.elsewhere = max(0, sum - published.count)
        }
    }

    func isOver(at now: Timestamp) -> Bool { window.withLock { $0.isOver(at: now) } }
}
