import Database
import Synchronization
import Threads
import Values

/// The named backends that have used the service. No act on a user may concern their ids
/// (`Transaction.requirePerson`).
///
/// A backend is known to this process once its token is verified. It is stored with the tenant's next write.
final class Backends: Sendable {
    static let backends = Table("backends", read: [], write: [], person: .nothing("ids of backends"))

    static let migration = Migration(
        "0001_backends",
        sql: [
            """
            CREATE TABLE backends (
                tenant TEXT NOT NULL,
                user_id TEXT NOT NULL,
                kept_until INTEGER NOT NULL,
                PRIMARY KEY (tenant, user_id)
            )
            """
        ])

    private static let bookkeeping = Unscoped.bookkeeping("the list of backends belongs to the service")
    /// Backends in memory. Beyond it, backends are known from their rows only; each takes about 100 bytes.
    private static let countMax = 10_000
    /// How long a backend is known after its last token has expired: it may be idle over some days. Without an end, the
    /// id of a person that was a backend once could never be erased.
    private static let keptSeconds: Int64 = 7 * 86_400

    private struct Life {
        var keptUntil: Timestamp
        var isStored = false
    }

    private let seen = Locked([Owner: Life]())
    /// Whether some may not be stored. Makes the usual case lock-free.
    private let hasNew = Atomic<Bool>(false)

    /// Notes the holder of a verified token.
    func note(_ caller: Caller) {
        guard caller.isService, !Settings.serviceNames.contains(caller.userId.text) else { return }
        let keptUntil = caller.expiresAt.adding(seconds: Self.keptSeconds)
        seen.withLock { seen in
            let known = seen[caller.owner]
            guard known.map({ $0.keptUntil < keptUntil }) ?? (seen.count < Self.countMax) else { return }
            seen[caller.owner] = Life(keptUntil: keptUntil)
            hasNew.store(true, ordering: .releasing)
        }
    }

    /// Returns whether a backend of the tenant was seen and is not stored.
    func hasNew(in tenant: ID<Tenant>) -> Bool {
        guard hasNew.load(ordering: .acquiring) else { return false }
        return seen.withLock { seen in seen.contains { $0.key.tenant == tenant && !$0.value.isStored } }
    }

    /// Returns whether a user id is that of a backend.
    func contains(_ owner: Owner, at now: Timestamp, in db: DatabaseConnection) throws -> Bool {
        if let known = seen.withLock({ $0[owner] }), known.keptUntil > now { return true }
        return try db.exists(
            """
            SELECT 1 FROM \(Self.backends, within: owner.tenant, Self.bookkeeping)
            WHERE user_id = \(owner.userId) AND kept_until > \(now)
            """)
    }

    /// Stores the noted backends of some tenants, whose chains of audit entries are locked: no two transactions wait for
    /// each other here.
    func store(of tenants: [ID<Tenant>], in db: DatabaseConnection) throws {
        let new = seen.withLock { seen in
            seen.filter { tenants.contains($0.key.tenant) && !$0.value.isStored }.mapValues(\.keptUntil)
        }
        guard !new.isEmpty else { return }
        for (owner, keptUntil) in new {
            try db.run(
                """
                INSERT INTO \(Self.backends, within: owner.tenant, Self.bookkeeping) (tenant, user_id, kept_until)
                VALUES (\(owner.tenant), \(owner.userId), \(keptUntil))
                ON CONFLICT (tenant, user_id) DO UPDATE SET kept_until =
                    CASE WHEN excluded.kept_until > backends.kept_until
                        THEN excluded.kept_until ELSE backends.kept_until END
                """)
        }
        db.afterCommit { [self] in
            seen.withLock { seen in
                for (owner, keptUntil) in new where seen[owner]?.keptUntil == keptUntil { seen[owner]?.isStored = true }
                if seen.allSatisfy(\.value.isStored) { hasNew.store(false, ordering: .releasing) }
            }
        }
    }

    /// Deletes backends that are no longer known.
    static func removeExpired(_ age: AgeTime, of tenant: ID<Tenant>, in db: DatabaseConnection) throws {
        try db.run(
            """
            DELETE FROM \(backends, within: tenant, bookkeeping)
            WHERE kept_until <= \(age.now)
            """)
    }
}
