import Cryptography
import Database
import MicroHTTP
import Values
import Visibility

/// Stores answers by `Idempotency-Key`, so that a repeated request gets the stored answer and is not executed again.
///
/// The answer is stored in the same transaction as the work: there is no moment at which the work is done and the
/// answer not stored. Two requests with the same key are never both "in flight": the second waits for the first, on
/// whichever replica it arrives.
enum Idempotency {
    static let answers = Table(
        "idempotent_answers", read: [], write: [],
        kept: "24 hours",
        person: .rows(
            by: ["user_id", "route", "key"], [.deleted("user_id")], .content("body"), isExported: false))

    static let migration = Migration(
        "0001_idempotency",
        sql: [
            """
            CREATE TABLE idempotent_answers (
                tenant TEXT NOT NULL,
                user_id TEXT NOT NULL,
                route TEXT NOT NULL,
                key TEXT NOT NULL,
                fingerprint BLOB NOT NULL,
                status INTEGER NOT NULL,
                headers TEXT NOT NULL,
                body BLOB NOT NULL,
                created_at INTEGER NOT NULL,
                PRIMARY KEY (tenant, user_id, route, key)
            ) STRICT
            """,
            "CREATE INDEX idempotent_answers_age ON idempotent_answers (created_at)",
        ])

    private static let allAnswers: SQL =
        "\(answers, unscoped: .bookkeeping("expired answers of all tenants are deleted"))"

    /// A key with the request that it was sent for.
    struct Claim: Sendable {
        let tenant: ID<Tenant>
        let userId: String
        let route: String
        /// A digest of the caller's key, which may name a person.
        let key: String
        let fingerprint: [UInt8]

        /// The lock that is held while the answer is looked up and made, so that two replicas with the same key run one
        /// after the other.
        var lockName: String { AudienceKey.make("idempotency", tenant.text, userId, route, key) }
    }

    /// Returns the key of a header. It may be in quotes, and look like a weak tag.
    private static func unquoted(_ header: String) -> String {
        var text = header.drop { $0 == " " }
        if text.hasPrefix("W/") { text = text.dropFirst(2) }
        while text.last == " " { text = text.dropLast() }
        guard text.count >= 2, text.first == "\"", text.last == "\"" else { return String(text) }
        return String(text.dropFirst().dropLast())
    }

    /// Returns nil without the header.
    static func claim(of call: Call, route: String) throws(Failure) -> Claim? {
        guard let header = call.request.header("Idempotency-Key") else { return nil }
        let key = unquoted(header)
        guard !key.isEmpty, key.utf8.count <= Limits.idempotencyKeyBytesMax,
            key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw Failure(
                .malformed, "idempotency.malformed_key", "The Idempotency-Key is invalid.",
                fields: [
                    Failure.Field(
                        "Idempotency-Key",
                        "must be 1 to \(Limits.idempotencyKeyBytesMax) visible characters without spaces")
                ])
        }
        // The empty id separates a backend without a `sub` from a backend whose `sub` equals its role: no token has an
        // empty `sub`.
        let userId = call.caller.isAnonymous ? "" : call.caller.userId.text
        return Claim(
            tenant: call.caller.tenant, userId: userId, route: route,
            key: RFC4648.encodeURL(SHA256.hash([call.caller.tenant.text, userId, key].joined(separator: "\0").utf8)),
            fingerprint: fingerprint(of: call.request))
    }

    /// Returns a digest of everything that defines the request.
    private static func fingerprint(of request: Request) -> [UInt8] {
        var hash = SHA256()
        hash.update(Array(request.path.utf8) + [0])
        for item in request.queryItems { hash.update("\(item.name)=\(item.value ?? "")&".utf8) }
        hash.update(Array((request.header("If-Match") ?? "").utf8) + [0])
        // Sorted, because a proxy may reorder headers.
        for line in request.headers.compactMap(meaning).sorted() { hash.update(Array(line.utf8) + [0]) }
        hash.update(request.body)
        return hash.finalize()
    }

    /// Returns a header that affects the meaning of the body, in normalized form; nil for all others.
    ///
    /// - `ce-…`: a CloudEvent in binary mode has its id, type and source there, and only its row in the body.
    /// - `webhook-id`: equal rows with different ids are different deliveries. A sender that retries sends the same id.
    /// - `Content-Type`: distinguishes a batch of CloudEvents from a single one. JSON is the default, so it is left
    ///   out, and so are parameters.
    ///
    /// The sender's credentials (`Authorization`, `webhook-timestamp`, `webhook-signature`) are left out, because each
    /// retry has new ones. `X-Client-Id` is left out, because another process may send the retry.
    private static func meaning(of header: (name: String, value: String)) -> String? {
        let name = header.name.lowercased()
        if name == "content-type" {
            let type = header.value.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
            return type == "application/json" ? nil : "\(name):\(type)"
        }
        return name.hasPrefix("ce-") || name == "webhook-id" ? "\(name):\(header.value)" : nil
    }

    /// Returns the stored answer, marked as a replay, or nil.
    ///
    /// - Parameter age: Nil finds an answer of any age: while the time is in doubt, no request is executed again.
    static func find(_ claim: Claim, _ age: AgeTime?, in db: DatabaseConnection) throws -> Response? {
        let oldest = age.map(oldest) ?? Timestamp(microseconds: .min)
        return try db.row(
            """
            SELECT fingerprint, status, headers, body FROM \(answers, of: ID(claim.userId), in: claim.tenant)
            WHERE route = \(claim.route) AND key = \(claim.key) AND created_at > \(oldest.microseconds)
            """
        ) { row in
            guard try row.blob(0) == claim.fingerprint else {
                throw Failure(
                    .invalid, "idempotency.key_reused",
                    "This Idempotency-Key was already used for a different request.",
                    fields: [
                        Failure.Field("Idempotency-Key", "was already used with a different body or different headers")
                    ])
            }
            var headers = try row.text(2).split(separator: "\n").reduce(into: HeaderFields()) { headers, line in
                guard let colon = line.firstIndex(of: ":") else { return }
                headers.append((String(line[..<colon]), String(line[colon...].dropFirst(2))))
            }
            headers.append("Idempotency-Replayed", "true")
            let body = try row.blob(3)
            return Response(status: try row.integer(1), headers: headers, body: body.isEmpty ? .none : .bytes(body))
        }
    }

    /// Stores an answer. Answers with a secret (`no-store`) are not stored: a repeated request is executed again.
    static func store(_ response: Response, for claim: Claim, at now: Timestamp, in db: DatabaseConnection) throws {
        guard response.headers["Cache-Control"]?.contains("no-store") != true else { return }
        var body: [UInt8] = []
        if case .bytes(let bytes) = response.body { body = bytes }
        let headers = response.headers.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        try db.run(
            """
            INSERT INTO \(answers, of: ID(claim.userId), in: claim.tenant)
                (tenant, user_id, route, key, fingerprint, status, headers, body, created_at)
            VALUES (\(claim.tenant), \(claim.userId), \(claim.route), \(claim.key), \(claim.fingerprint),
                \(response.status), \(headers), \(body), \(now.microseconds))
            ON CONFLICT (tenant, user_id, route, key) DO UPDATE SET fingerprint = excluded.fingerprint,
                status = excluded.status, headers = excluded.headers, body = excluded.body,
                created_at = excluded.created_at
            """)
    }

    private static func oldest(_ age: AgeTime) -> Timestamp { age.end(ofSeconds: Limits.idempotencySeconds) }

    /// Removes the oldest expired answers, a limited number at once.
    static let pruning = Pruning(
        name: "idempotency",
        due: { age in
            guard let age else { return nil }
            return """
                SELECT 1 FROM \(allAnswers) WHERE created_at <= \(oldest(age).microseconds) LIMIT 1
                """
        },
        prune: { age, db in try age.map { try prune($0, in: db) } ?? 0 })

    private static func prune(_ age: AgeTime, in db: DatabaseConnection) throws -> Int {
        try db.run(
            """
            DELETE FROM \(allAnswers) WHERE (tenant, user_id, route, key) IN (
                SELECT tenant, user_id, route, key FROM \(allAnswers)
                WHERE created_at <= \(oldest(age).microseconds) ORDER BY created_at LIMIT \(Limits.prunedAtOnceMax))
            """)
    }
}
