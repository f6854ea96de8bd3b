import Threads
import Values

/// Counts the requests of each caller and of each tenant, the users that callers reach, and the events that they publish,
/// in the present minute (R-CNT-G4).
///
/// The counts are in memory. Replicas share the counts of busy callers, and a restart finds them (`RateSharing`).
final class RateLimiter: Sendable {
    /// The usage of a busy caller in the present minute.
    struct BusyCount: Sendable {
        let owner: Owner
        let bucket: RateBucket
        let startedAt: Int64
        let count: RateBucket.Usage
        /// Counted here, and not yet shared with the other replicas.
        let unshared: RateBucket.Usage
    }

    private let limitUser: Int
    private let limitService: Int
    let shares: TenantShares
    private let callers = RateBuckets()
    /// The buckets of whole tenants. They are kept apart, so that many users of one tenant do not push them out.
    private let tenants = RateBuckets()

    init(limitUser: Int, limitService: Int, shares: TenantShares) {
        self.limitUser = limitUser
        self.limitService = limitService
        self.shares = shares
    }

    /// Returns the allowance that all tokens of a caller share; nil means no limit.
    func allowance(of caller: Caller, at now: Timestamp) -> RateAllowance? {
        let share = shares.requests(of: caller.tenant)
        let whole = Owner(tenant: caller.tenant, userId: "")
        return RateAllowance(
            caller: bucket(of: caller, at: now),
            tenant: share > 0 ? tenants.find(whole, at: now) { RateBucket(limit: share, of: .tenant) } : nil)
    }

    /// Returns the caller's own bucket; nil means no limit.
    func bucket(of caller: Caller, at now: Timestamp) -> RateBucket? {
        let limit = caller.isService ? limitService : limitUser
        return limit > 0 ? callers.find(caller.owner, at: now) { RateBucket(limit: limit, of: .caller) } : nil
    }

    /// Returns the callers and tenants that have used a large part of their minute. A tenant has the empty user id.
    func busy(at now: Timestamp) -> [BusyCount] { callers.busy(at: now) + tenants.busy(at: now) }

    func register(in metrics: MetricsRegistry, _ clock: Clock) {
        metrics.register { [self] text in
            text.family(
                "bellhop_tenant_requests_used_ratio", .gauge,
                "Part of its requests per minute that a tenant has used, for the tenants that have used the most.")
            let now = clock.now()
            let used = tenants.all.map { owner, bucket in
                let state = bucket.state(at: now)
                return (owner.tenant, Double(state.limit - state.remaining) / Double(state.limit))
            }
            for (tenant, ratio) in TenantShares.largest(used) {
                text.sample("bellhop_tenant_requests_used_ratio", [("tenant", tenant.text)], ratio)
            }
        }
    }
}

/// A bounded set of buckets.
private final class RateBuckets: Sendable {
    private let buckets = Locked<[Owner: RateBucket]>([:])

    var all: [Owner: RateBucket] { buckets.withLock { $0 } }

    func find(_ owner: Owner, at now: Timestamp, orElse make: () -> RateBucket) -> RateBucket {
        buckets.withLock { buckets in
            if let bucket = buckets[owner] { return bucket }
            if buckets.count >= Limits.rateBucketsMax {
                buckets = buckets.filter { !$0.value.isOver(at: now) }
                // All are busy: dropping the buckets gives some a second allowance, but bounds the memory.
                if buckets.count >= Limits.rateBucketsMax { buckets.removeAll() }
            }
            let bucket = make()
            buckets[owner] = bucket
            return bucket
        }
    }

    func busy(at now: Timestamp) -> [RateLimiter.BusyCount] {
        all.compactMap { owner, bucket in bucket.busyCount(of: owner, at: now) }
    }
}

/// What limits the requests of one caller: its own bucket, and its tenant's.
struct RateAllowance: Sendable {
    private let caller: RateBucket?
    private let tenant: RateBucket?
    /// The value of the `RateLimit-Policy` header.
    let policy: String

    /// Returns nil if there is no limit.
    init?(caller: RateBucket?, tenant: RateBucket?) {
        guard caller != nil || tenant != nil else { return nil }
        (self.caller, self.tenant) = (caller, tenant)
        policy = [caller, tenant].compactMap(\.?.policy).joined(separator: ", ")
    }

    /// Counts one request. Returns the state of the caller's bucket, or of the tenant's if only that one limits.
    func take(at now: Timestamp) -> RateBucket.State? { take { $0.take(at: now) } }

    /// Counts the additional cost of one request, which was itself counted before.
    func take(_ requests: Int, at now: Timestamp) -> RateBucket.State? { take { $0.take(requests, at: now) } }

    private func take(_ take: (RateBucket) -> RateBucket.State) -> RateBucket.State? {
        let own = caller.map(take)
        // A request that the caller's own limit refuses costs the tenant nothing.
        if let own, !own.isAllowed { return own }
        guard let shared = tenant.map(take) else { return own }
        return shared.isAllowed ? own ?? shared : shared
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

    /// Returns the failure for a request that reaches more other users than the minute's budget allows.
    static func contactBudget(_ shortage: RateBucket.ExhaustedBudget) -> Failure {
        Failure(
            .rateLimited, "contact_budget",
            """
            You may reach \(shortage.limit) other \(shortage.unit.rawValue) in \(Limits.rateWindowSeconds) seconds, with \
            notifications, as new members of conversations, and as a follower.
            """,
            retryAfterSeconds: Int(shortage.resetSeconds))
    }

    /// - Parameter reason: A further sentence, or nothing.
    static func rateLimited(_ rate: RateBucket.State, _ reason: String = "") -> Failure {
        let limit = "\(rate.limit) requests in \(Limits.rateWindowSeconds) seconds."
        return switch rate.share {
        case .caller:
            Failure(
                .rateLimited, "rate_limited", "You may send \(limit)\(reason)",
                retryAfterSeconds: Int(rate.resetSeconds))
        case .tenant:
            Failure(
                .rateLimited, "tenant.rate_limited",
                "All users and backends of your tenant together may send \(limit)\(reason)",
                retryAfterSeconds: Int(rate.resetSeconds))
        }
    }
}

/// The requests of one caller or tenant in one window: a minute of the clock, which is the same on all replicas.
final class RateBucket: Sendable {
    /// Whose requests a bucket counts, and the name of its policy in headers.
    enum Share: String, Sendable {
        case caller = "default"
        case tenant
    }

    struct State: Sendable, Equatable {
        let share: Share
        let limit: Int
        let remaining: Int
        /// Seconds until the window ends.
        let resetSeconds: Int64
        let isAllowed: Bool

        /// Writes it in the format of the `RateLimit` header.
        func write(to text: inout [UInt8]) {
            text.append(contentsOf: "\"\(share.rawValue)\";r=".utf8)
            text.append(decimal: Int64(remaining))
            text.append(contentsOf: ";t=".utf8)
            text.append(decimal: resetSeconds)
        }
    }

    /// The exhausted budget, for a request that publishes much.
    struct ExhaustedBudget: Sendable, Equatable {
        enum Unit: String, Sendable {
            case events, bytes, users
        }

        let unit: Unit
        /// The limit per window.
        let limit: Int
        let resetSeconds: Int64
    }

    /// What replicas add up.
    struct Usage: Sendable, Equatable {
        var requests = 0
        /// Other users that requests have reached.
        var reached = 0

        static func - (left: Usage, right: Usage) -> Usage {
            Usage(requests: left.requests - right.requests, reached: left.reached - right.reached)
        }
    }

    private struct Window {
        var startedAt: Int64 = .min
        var count = Usage()
        /// Events published beyond the requests' shares on this replica; replicas do not add them up.
        var events = 0
        var bytes = 0
        /// The part of `count` that was shared with other replicas.
        var shared = Usage()
        /// The count of the other replicas.
        var elsewhere = Usage()

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
    private let share: Share
    private let window = Locked(Window())

    init(limit: Int, of share: Share) {
        (self.limit, self.share) = (limit, share)
        policy = "\"\(share.rawValue)\";q=\(limit);w=\(Limits.rateWindowSeconds)"
    }

    /// Returns the present state without counting anything.
    func state(at now: Timestamp) -> State {
        window.withLock { window in
            window.roll(to: now)
            return state(of: window, at: now, isAllowed: true)
        }
    }

    /// Counts one request.
    func take(at now: Timestamp) -> State {
        return window.withLock { window in
            window.roll(to: now)
            let isAllowed = window.count.requests + window.elsewhere.requests < limit
            if isAllowed { window.count.requests += 1 }
            return state(of: window, at: now, isAllowed: isAllowed)
        }
    }

    /// Counts the additional cost of one request, which was itself counted before. The first request of a window may
    /// exceed the limit.
    func take(_ requests: Int, at now: Timestamp) -> State {
        return window.withLock { window in
            window.roll(to: now)
            let used = window.count.requests + window.elsewhere.requests
            let isAllowed = used + requests <= limit || used <= 1
            if isAllowed { window.count.requests += requests }
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

    /// Counts the other users that a request reaches. Returns nil if they fit the limit, which always holds for the first
    /// in a window.
    func take(reached: Int, at now: Timestamp) -> ExhaustedBudget? {
        let reachedMax = reachedMax
        return window.withLock { window in
            window.roll(to: now)
            let known = window.count.reached + window.elsewhere.reached
            guard known == 0 || known + reached <= reachedMax else {
                return ExhaustedBudget(
                    unit: .users, limit: reachedMax, resetSeconds: window.resetSeconds(at: now))
            }
            window.count.reached += reached
            return nil
        }
    }

    private var reachedMax: Int { max(1, limit / Limits.requestsPerReachedUser) }

    private func state(of window: Window, at now: Timestamp, isAllowed: Bool) -> State {
        State(
            share: share, limit: limit, remaining: max(0, limit - window.count.requests - window.elsewhere.requests),
            resetSeconds: window.resetSeconds(at: now), isAllowed: isAllowed)
    }

    /// Returns nil for a caller far from the limit.
    func busyCount(of owner: Owner, at now: Timestamp) -> RateLimiter.BusyCount? {
        window.withLock { window in
            let (count, part) = (window.count, Limits.rateSharedFraction)
            guard !window.isOver(at: now), count.requests > limit / part || count.reached > reachedMax / part else {
                return nil
            }
            return .init(
                owner: owner, bucket: self, startedAt: window.startedAt, count: window.count,
                unshared: window.count - window.shared)
        }
    }

    /// - Parameter sum: the count of all replicas, including `published`.
    func noteShared(_ published: RateLimiter.BusyCount, sum: Usage) {
        window.withLock { window in
            guard window.startedAt == published.startedAt else { return }
            let others = sum - published.count
            window.shared = published.count
            window.elsewhere = Usage(requests: max(0, others.requests), reached: max(0, others.reached))
        }
    }

    func isOver(at now: Timestamp) -> Bool { window.withLock { $0.isOver(at: now) } }
}
