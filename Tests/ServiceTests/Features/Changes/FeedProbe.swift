import BellhopClient
import Cryptography
import Foundation
import Rows
import TestSupport
import Testing
import Values

/// A service with the tables of the recorded payloads, and a feed that sends to it.
///
/// Every row is visible to its whole tenant and invalidates one key, which has the name of the table. Windows are
/// long, and tests end them explicitly. A row of `marks` ends a wait: anything silent before it stays silent.
struct FeedProbe {
    static let secret = "the feed's shared secret"
    /// Base64 of 24 bytes each.
    static let signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    static let nextSigningSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"

    let service: TestService

    init(_ overrides: [String: String] = [:]) throws {
        service = try TestService.start(Self.settings(overrides))
    }

    init(_ service: TestService) {
        self.service = service
    }

    static func settings(_ overrides: [String: String] = [:]) throws -> [String: String] {
        try ["changesSecret": secret, "tables": file.get()].merging(overrides) { $1 }
    }

    private static let directory = Result { try TemporaryDirectory() }
    /// The declarations, in a file that is written once.
    private static let file = Result {
        let tables = [
            ("public", "student_stickers", "id"), ("public", "notes", "id"), ("public", "test", "id"),
            ("public", "posts", "id"), ("public", "customers", "id"), ("inventory", "customers", "id"),
            ("s1", "a", "pk"), ("public", "marks", "id"),
        ].map { schema, table, key in
            """
              - schema: \(schema)
                table: \(table)
                primaryKey: [\(key)]
                tenant: {constant: default}
                windowMs: 60000
                audience: {select: [everyone]}
                invalidates:
                  - keys: [["\(schema).\(table)"]]
            """
        }
        // A table of many tenants, with a membership, so that its rows are stored.
        let members = """
              - table: members
                primaryKey: [id]
                tenant: {column: tenant}
                windowMs: 60000
                audience: {select: ["user:{user_id}"]}
                invalidates:
                  - keys: [[members, "{user_id}"]]
                memberships:
                  - name: team
                    subject: user:{user_id}
                    grants: team:{team_id}:member
            """
        let text = (["version: 1", "tables:"] + tables + [members]).joined(separator: "\n")
        return try directory.get().write(text, to: "feeds.yaml")
    }

    // MARK: Sending

    func send(
        _ bytes: Data, _ headers: [String: String] = [:], format: String? = nil,
        with proof: [String: String] = ["X-Webhook-Secret": secret]
    ) async throws -> ServiceAnswer {
        let own = ["Content-Type": "application/json", "X-Client-Id": "the-feed"]
        let sent = own.merging(proof) { $1 }.merging(headers) { $1 }
        return try await service.call(
            "POST", "/v1/changes" + (format.map { "?format=\($0)" } ?? ""), bytes, headers: sent)
    }

    func send(
        _ body: JSON, _ headers: [String: String] = [:], format: String? = nil,
        with proof: [String: String] = ["X-Webhook-Secret": secret]
    ) async throws -> ServiceAnswer {
        try await send(body.data, headers, format: format, with: proof)
    }

    func send(_ body: JSON, as identity: TestService.Identity) async throws -> ServiceAnswer {
        try await send(body, with: ["Authorization": "Bearer \(identity.token ?? service.token(for: identity))"])
    }

    /// Returns the headers with which Standard Webhooks signs a body.
    func signed(
        _ body: Data, id: String = "msg_1", secret: String = signingSecret, at seconds: Int64? = nil
    ) throws -> [String: String] {
        let moment = seconds ?? service.clock.now.seconds
        let key = try #require(Data(base64Encoded: String(secret.dropFirst(6))))
        let code = AuthenticationKey(key).code(for: Data("\(id).\(moment).".utf8) + body)
        return [
            "webhook-id": id, "webhook-timestamp": "\(moment)",
            "webhook-signature": "v1,\(Data(code).base64EncodedString())",
        ]
    }

    static func fixture(_ name: String) throws -> Data {
        let folder = repository.appendingPathComponent("Tests/Fixtures/Changes")
        return try Data(contentsOf: folder.appendingPathComponent("\(name).json"))
    }

    // MARK: Rows in each format

    static func note(_ id: String, _ text: String = "hello") -> JSON { ["id": .string(id), "body": .string(text)] }

    /// Returns an insert into `notes` in the given format; different numbers are different changes.
    static func insertion(_ number: Int, in format: ChangeFormat) -> JSON {
        let record = note("n\(number)")
        let webhook = School.insert("notes", record)
        switch format {
        case .supabaseWebhook, .batch: return webhook
        case .supabaseRealtime:
            return [
                "topic": "realtime:notes", "event": "postgres_changes", "ref": nil,
                "payload": [
                    "ids": [1],
                    "data": [
                        "type": "INSERT", "schema": "public", "table": "notes", "record": record, "errors": nil,
                        "commit_timestamp": "2026-01-10T09:30:00Z", "columns": [["name": "id", "type": "text"]],
                    ],
                ],
            ]
        case .broadcastChanges:
            return [
                "event": "INSERT", "type": "broadcast",
                "payload": [
                    "id": .string("broadcast-\(number)"), "operation": "INSERT", "schema": "public", "table": "notes",
                    "record": record, "old_record": nil,
                ],
            ]
        case .debezium: return debezium(number)
        case .cloudEvents: return event(number)
        }
    }

    static func debezium(_ number: Int, lsn: Int? = nil, op: String = "c") -> JSON {
        [
            "before": nil, "after": note("n\(number)"), "op": .string(op), "ts_ms": 1_559_033_904_863,
            "source": [
                "connector": "postgresql", "name": "db", "schema": "public", "table": "notes",
                "ts_ms": 1_559_033_904_863,
                "txId": 555, "lsn": .integer(Int64(lsn ?? 1000 + number)),
            ],
        ]
    }

    static func event(_ number: Int, id: String? = nil, source: String = "/notes") -> JSON {
        [
            "specversion": "1.0", "type": "com.example.row", "source": .string(source),
            "id": .string(id ?? "event-\(number)"), "data": School.insert("notes", note("n\(number)")),
        ]
    }

    // MARK: Receiving

    func listen(as user: String = "ann", tenant: String? = nil) async throws -> StreamListener {
        try await service.listen(as: .user(user, tenant: tenant))
    }

    /// Returns everything that the stream has received since the last call, up to a row of `marks`.
    func received(_ stream: StreamListener) async throws -> [JSON] {
        let mark = UUID().uuidString
        let answer = try await send(School.insert("marks", ["id": .string(mark)]))
        #expect(answer.json["accepted"].int == 1, "\(answer.text)")
        var causes: [JSON] = []
        while true {
            let event = try await stream.next("query:invalidate")
            let batch = event.json["causes"].array ?? []
            causes += batch.filter { $0["table"].string != "marks" }
            if batch.contains(where: { $0["recordId"].string == mark }) { return causes }
        }
    }
}
