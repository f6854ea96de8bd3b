import Database
import Domain
import Values

extension RequestsFeature {
    static let requests = Table(
        "user_requests", read: ["user:{from_user_id}", "user:{to_user_id}", "tenant:service"],
        write: ["user:{from_user_id}", "user:{to_user_id}", "tenant:service"])

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
                    PRIMARY KEY (tenant, id),
                    CHECK ((status = 'open') = (answered_at IS NULL))
                ) STRICT
                """,
                // One open request of a kind, about one thing; this repeats the service's own check.
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

    /// The columns ``request(_:)`` reads, in its order.
    static let columns: SQL =
        "id, kind, from_user_id, to_user_id, from_name, about_id, status, created_at, answered_at"

    static func request(_ row: Row) throws -> UserRequest {
        guard let kind = UserRequest.Kind(rawValue: try row.text(1)),
            let status = UserRequest.Status(rawValue: try row.text(6))
        else { throw DatabaseError(.corrupt, "a request has a kind or a status that cannot be") }
        return UserRequest(
            id: try row.id(0), kind: kind, fromUserId: try row.id(2), toUserId: try row.id(3),
            fromName: try row.optionalText(4), aboutId: try row.optionalText(5), status: status,
            createdAt: try row.moment(7), answeredAt: try row.optionalMoment(8))
    }

    /// Requests to a user or from a user; newest first.
    static func listing(
        of userId: ID<User>, isOutgoing: Bool, status: UserRequest.Status?, kind: UserRequest.Kind?, after: String?,
        limit: Int, visibleTo scope: Scope
    ) -> SQL {
        let conditions: [SQL?] = [
            isOutgoing ? "from_user_id = \(userId)" : "to_user_id = \(userId)",
            status.map { "status = \($0.rawValue)" },
            kind.map { "kind = \($0.rawValue)" }, after.map { "id < \($0)" },
        ]
        return """
            SELECT \(columns) FROM \(requests, visibleTo: scope)
            WHERE \(SQL.all(conditions)) ORDER BY id DESC LIMIT \(limit)
            """
    }

    /// - Throws: 404 for one that is not, and equally for one between others.
    static func require(_ id: ID<UserRequest>, _ tx: Transaction) throws -> UserRequest {
        try tx.db.row(
            "SELECT \(columns) FROM \(requests, visibleTo: tx.scope) WHERE id = \(id)", request
        ).required("request")
    }

    static func findOpen(like wanted: UserRequest, _ tx: Transaction) throws -> UserRequest? {
        try tx.db.row(
            """
            SELECT \(columns) FROM \(requests, visibleTo: tx.scope)
            WHERE from_user_id = \(wanted.fromUserId) AND to_user_id = \(wanted.toUserId)
                AND kind = \(wanted.kind.rawValue) AND COALESCE(about_id, '') = \(wanted.aboutId ?? "")
                AND status = 'open'
            """, request)
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
                (tenant, id, kind, from_user_id, to_user_id, from_name, about_id, status, created_at)
            VALUES (\(tx.tenant), \(request.id), \(request.kind.rawValue), \(request.fromUserId), \(request.toUserId),
                \(request.fromName), \(request.aboutId), \(request.status.rawValue), \(request.createdAt))
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

    static func delete(_ request: UserRequest, _ tx: Transaction) throws {
        try tx.db.run("DELETE FROM \(requests, writableBy: tx.scope) WHERE id = \(request.id)")
    }

    /// Deletes answered requests after their retention.
    static let pruning = Tick(name: "requests.forgetting", everySeconds: 60) { tx in
        let before = tx.now.adding(seconds: -RequestLimits.answeredRetentionSeconds)
        try tx.db.run(pruning(tenant: tx.tenant, before: before))
    }

    static func pruning(tenant: String, before: Timestamp) -> SQL {
        """
        DELETE FROM \(requests, unscoped: .bookkeeping("what is long past is nobody's business"))
        WHERE tenant = \(tenant) AND id IN (
            SELECT id FROM user_requests
            WHERE tenant = \(tenant) AND answered_at IS NOT NULL AND answered_at < \(before)
            ORDER BY answered_at LIMIT \(Limits.prunedAtOnceMax))
        """
    }
}
