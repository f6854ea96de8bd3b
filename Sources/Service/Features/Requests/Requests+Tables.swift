import Database
import Domain
import Values

extension RequestsFeature {
    static let requests = Table(
        "user_requests", read: ["user:{from_user_id}", "user:{to_user_id}", "tenant:service"],
        write: ["user:{from_user_id}", "user:{to_user_id}", "tenant:service"],
        kept: "90 days after the answer", person: .rows(by: ["id"], [.step("from_user_id"), .step("to_user_id")]))

    static let migrations = [
        Migration(
            "0001_user_requests",
            sql: [
                """
                CREATE TABLE user_requests (
                    tenant TEXT NOT NULL,
                    id TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    from_user_id TEXT NOT NULL,
                    to_user_id TEXT NOT NULL,
                    from_name TEXT,
                    about_id TEXT,
                    status TEXT NOT NULL,
                    created_at INTEGER NOT NULL,
                    answered_at INTEGER,
                    seen_at INTEGER,
                    PRIMARY KEY (tenant, id),
                    CHECK ((status = 'open') = (answered_at IS NULL))
                ) STRICT
                """,
                // One open request of a kind about one subject; this repeats the service's own check.
                """
                CREATE UNIQUE INDEX user_requests_open
                ON user_requests (tenant, from_user_id, to_user_id, kind, COALESCE(about_id, ''))
                WHERE status = 'open'
                """,
                "CREATE INDEX user_requests_outgoing ON user_requests (tenant, from_user_id, id)",
                "CREATE INDEX user_requests_incoming ON user_requests (tenant, to_user_id, id)",
                """
                CREATE INDEX user_requests_answered ON user_requests (tenant, answered_at)
                WHERE answered_at IS NOT NULL
                """,
            ])
    ]

    static let columns = UserRequest.columns()

    /// The selection of a user's requests in a list.
    struct Filter {
        /// Whether they are from the user, not to the user.
        var isOutgoing: Bool
        var status: UserRequest.Status?
        var kind: UserRequest.Kind?
    }

    /// Returns a query of the requests to a user or from a user, newest first.
    static func listing(
        of userId: ID<User>, _ filter: Filter, after: String?, limit: Int, visibleTo scope: Scope
    ) -> SQL {
        let conditions: [SQL?] = [
            filter.isOutgoing ? "from_user_id = \(userId)" : "to_user_id = \(userId)",
            filter.status.map { "status = \($0.rawValue)" },
            filter.kind.map { "kind = \($0.rawValue)" }, after.map { "id < \($0)" },
        ]
        return """
            SELECT \(columns) FROM \(requests, visibleTo: scope)
            WHERE \(SQL.all(conditions)) ORDER BY id DESC LIMIT \(limit)
            """
    }

    /// Returns a request.
    ///
    /// - Throws: 404 for one that does not exist, and equally for one between other users.
    static func require(_ id: ID<UserRequest>, _ tx: Transaction) throws -> UserRequest {
        try tx.db.row(
            "SELECT \(columns) FROM \(requests, visibleTo: tx.scope) WHERE id = \(id)", UserRequest.init(row:)
        ).required("request")
    }

    static func findOpen(like wanted: UserRequest, _ tx: Transaction) throws -> UserRequest? {
        try tx.db.row(
            """
            SELECT \(columns) FROM \(requests, visibleTo: tx.scope)
            WHERE from_user_id = \(wanted.fromUserId) AND to_user_id = \(wanted.toUserId)
                AND kind = \(wanted.kind.rawValue) AND COALESCE(about_id, '') = \(wanted.aboutId ?? "")
                AND status = 'open'
            """, UserRequest.init(row:))
    }

    static func countOpen(of userId: ID<User>, _ tx: Transaction) throws -> Int {
        try tx.db.integer(
            """
            SELECT COUNT(*) FROM \(requests, visibleTo: tx.scope)
            WHERE from_user_id = \(userId) AND status = 'open'
            """) ?? 0
    }

    static func insert(_ request: UserRequest, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(requests, writableBy: tx.scope)
                (tenant, \(columns))
            VALUES (\(tx.tenant), \(request.values))
            """)
    }

    static func storeAnswer(to request: UserRequest, _ tx: Transaction) throws {
        try tx.db.run(
            """
            UPDATE \(requests, writableBy: tx.scope) SET status = \(request.status.rawValue),
                answered_at = \(request.answeredAt)
            WHERE id = \(request.id)
            """)
    }

    /// Stores that the caller has, or has not, seen open requests. Returns how many of them changed.
    static func storeSeen(_ requests: ArraySlice<ID<UserRequest>>, _ isSeen: Bool, _ tx: Transaction) throws -> Int {
        let (value, before): (SQL, SQL) = isSeen ? ("\(tx.now)", "IS NULL") : ("NULL", "IS NOT NULL")
        return try tx.db.run(
            """
            UPDATE \(Self.requests, writableBy: tx.scope) SET seen_at = \(value)
            WHERE to_user_id = \(tx.caller.userId) AND status = 'open' AND seen_at \(before)
                AND id IN \(values: requests.map(\.text))
            """)
    }

    /// Stores that the caller has seen the open requests up to one, oldest first. Returns the previously unseen ones.
    static func storeSeen(upTo last: ID<UserRequest>, _ tx: Transaction) throws -> [ID<UserRequest>] {
        try tx.db.rows(
            """
            UPDATE \(requests, writableBy: tx.scope) SET seen_at = \(tx.now)
            WHERE to_user_id = \(tx.caller.userId) AND status = 'open' AND seen_at IS NULL AND id IN (
                SELECT id FROM \(requests, visibleTo: tx.scope)
                WHERE to_user_id = \(tx.caller.userId) AND status = 'open' AND seen_at IS NULL AND id <= \(last)
                ORDER BY id LIMIT \(RequestLimits.seenAtOnceMax))
            RETURNING id
            """
        ) { try $0.id(0) }
    }

    static let share = CountedShare(share: .requests) { db in
        var counted: [Owner: Int] = [:]
        try db.forEach(
            """
            SELECT tenant, to_user_id, count(*) FROM \(requests, unscoped: .audit("a recount reads the rows of all users"))
            WHERE status = 'open' AND seen_at IS NULL GROUP BY 1, 2
            """
        ) { row in
            counted[Owner(tenant: try row.id(0), userId: try row.id(1))] = try row.integer(2)
            return true
        }
        return counted
    }

    static func delete(_ request: UserRequest, _ tx: Transaction) throws {
        try tx.db.run("DELETE FROM \(requests, writableBy: tx.scope) WHERE id = \(request.id)")
    }

    /// Deletes answered requests after their retention.
    static let pruning = Tick.forgetting(
        name: "requests.forgetting", everySeconds: 60,
        due: { age in
            Tenants.all(
                where: """
                    EXISTS (SELECT 1 FROM \(requests, unscoped: bookkeeping) AS r WHERE r.tenant = t.tenant
                        AND r.answered_at IS NOT NULL AND r.answered_at < \(answeredBefore(age)))
                    """)
        }
    ) { age, tx in try tx.db.run(pruning(tenant: tx.tenant, before: answeredBefore(age))) }

    private static let bookkeeping = Unscoped.bookkeeping("expired requests belong to no user")

    private static func answeredBefore(_ age: AgeTime) -> Timestamp {
        age.end(ofSeconds: RequestLimits.answeredRetentionSeconds)
    }

    static func pruning(tenant: ID<Tenant>, before: Timestamp) -> SQL {
        """
        DELETE FROM \(requests, within: tenant, bookkeeping)
        WHERE id IN (
            SELECT id FROM \(requests, within: tenant, bookkeeping)
            WHERE answered_at IS NOT NULL AND answered_at < \(before)
            ORDER BY answered_at LIMIT \(Limits.prunedAtOnceMax))
        """
    }
}
