import Database
import Values

/// The counts of requests and of reached users that replicas share, and that a restart does not forget. Once a second,
/// each replica adds the counts of its busy callers in the database.
///
/// A caller that spreads requests over replicas, or over a restart, can exceed the limit by one second's requests, and
/// by the tenth that each replica does not share. Idle callers cost nothing.
enum RateSharing {
    static let counts = Table(
        "rate_counts", read: [], write: [], person: .rows(by: ["user_id", "started_at"], [.deleted("user_id")]))

    static let migration = Migration(
        "0001_rate_counts",
        sql: [
            .sqlite(
                """
                CREATE TABLE rate_counts (
                    tenant TEXT NOT NULL,
                    user_id TEXT NOT NULL,
                    started_at INTEGER NOT NULL,
                    count INTEGER NOT NULL,
                    reached INTEGER NOT NULL,
                    PRIMARY KEY (tenant, user_id, started_at)
                ) STRICT, WITHOUT ROWID
                """),
            // Unlogged: a crash loses at most a minute's counts.
            .postgreSQL(
                """
                CREATE UNLOGGED TABLE rate_counts (
                    tenant TEXT COLLATE "C" NOT NULL,
                    user_id TEXT COLLATE "C" NOT NULL,
                    started_at BIGINT NOT NULL,
                    count BIGINT NOT NULL,
                    reached BIGINT NOT NULL,
                    PRIMARY KEY (tenant, user_id, started_at)
                )
                """),
        ])

    private static let bookkeeping = Unscoped.bookkeeping("request counts belong to the service")
    /// The number of rows per statement.
    private static let sharedAtOnceMax = 128

    /// Runs `add` in a transaction that no erasure of a user can overtake. It passes `isClosed`, which says whether a
    /// caller was erased: no row may name such a caller again, so these counts are not shared.
    typealias Fencing =
        @Sendable (
            DatabaseConnection, _ add: (_ isClosed: (Owner) -> Bool) throws -> [Owner: RateBucket.Usage]
        ) throws -> [Owner: RateBucket.Usage]

    /// Adds the requests counted on this replica since the last call, and stores the sums.
    static func share(
        _ limiter: RateLimiter, _ clock: Clock, in store: DatabaseStore, fencing: @escaping Fencing
    ) throws {
        // A single process has nothing to learn from the others.
        let isAlone = store.engine == .sqlite
        let busy = limiter.busy(at: clock.now()).filter { !isAlone || $0.unshared != RateBucket.Usage() }
        for start in stride(from: 0, to: busy.count, by: sharedAtOnceMax) {
            // Sorted, so that replicas that share at the same moment do not deadlock.
            let part = busy[start..<min(start + sharedAtOnceMax, busy.count)].sorted {
                ($0.owner.tenant, $0.owner.userId) < ($1.owner.tenant, $1.owner.userId)
            }
            let sums = try store.writeAndWait(lane: WriteLane(1)) { db in
                try fencing(db) { isClosed in try add(part.filter { !isClosed($0.owner) }, in: db) }
            }
            for count in part { count.bucket.noteShared(count, sum: sums[count.owner] ?? count.unshared) }
        }
        guard !busy.isEmpty, let age = clock.age() else { return }
        let oldest = age.end(ofSeconds: 2 * Limits.rateWindowSeconds).seconds
        try store.writeAndWait(lane: WriteLane(1)) { db in
            _ = try db.run("DELETE FROM \(counts, unscoped: bookkeeping) WHERE started_at < \(oldest)")
        }
    }

    private static func add(
        _ part: [RateLimiter.BusyCount], in db: DatabaseConnection
    ) throws -> [Owner: RateBucket.Usage] {
        let rows = part.map { count -> SQL in
            """
            (\(count.owner.tenant), \(count.owner.userId.text), \(count.startedAt), \(count.unshared.requests),
            \(count.unshared.reached))
            """
        }
        var sums: [Owner: RateBucket.Usage] = [:]
        guard !rows.isEmpty else { return sums }
        try db.forEach(
            """
            INSERT INTO \(counts, unscoped: bookkeeping) (tenant, user_id, started_at, count, reached)
            VALUES \(SQL.joined(rows, separator: ", "))
            ON CONFLICT (tenant, user_id, started_at) DO UPDATE SET count = rate_counts.count + excluded.count,
                reached = rate_counts.reached + excluded.reached
            RETURNING tenant, user_id, count, reached
            """
        ) { row in
            sums[Owner(tenant: try row.id(0), userId: ID(try row.text(1)))] = RateBucket.Usage(
                requests: try row.integer(2), reached: try row.integer(3))
            return true
        }
        return sums
    }
}
