import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Values
import Yams

@testable import Service

/// Who may act on whom: each operation that takes the id of another user, as each kind of caller, and ids that belong to
/// no user.
///
/// Rows are protected by the policies of their tables. Operations that decide about the access of a user also refuse
/// the ids of backends and of the service.
@Suite(.timed) struct AuthorityTests {
    /// The callers, in the order of the table. All belong to tenant A, except the administrator of B and the backend of
    /// all tenants. A person at the command line calls no operation.
    private enum Kind: String, CaseIterable {
        case user, staff, admin, foreignAdmin, backend, backendOfAll

        var identity: TestService.Identity {
            switch self {
            case .user: .user("eve", tenant: "A")
            case .staff:
                .init(subject: "sam", metadata: ["tenant": "A", "user_role": "staff", "shop_ids": ["s2"]])
            case .admin: .init(subject: "root", metadata: ["tenant": "A", "user_role": "admin"])
            case .foreignAdmin: .init(subject: "other", metadata: ["tenant": "B", "user_role": "admin"])
            case .backend: .init(subject: "bot", metadata: ["tenant": "A", "user_role": "service_role"])
            case .backendOfAll: .init(subject: "bots", metadata: ["user_role": "service_role"])
            }
        }
    }

    /// What a backend does in the name of a user, and an operation undoes. Callers without the right get the same answer as
    /// for something absent, and remove nothing.
    private enum Deed {
        case like, repost, follow, score

        var operation: String {
            switch self {
            case .like: "PUT /v1/posts/{post}/likes/{userId}"
            case .repost: "PUT /v1/posts/{post}/reposts/{userId}"
            case .follow: "PUT /v1/users/zoe/followers/{followerId}"
            case .score: "POST /v1/challenges/{challenge}/scores"
            }
        }

        var isUndoneBy: Set<Kind> { self == .score ? [.admin, .backend] : [.backend] }
    }

    private struct Row {
        let operation: String
        /// The statuses, in the order of ``Kind``.
        let statuses: [Int]
        var query = ""
        var deed: Deed?
        /// Makes the body for a user.
        var body: (@Sendable (String) -> JSON)?

        init(
            _ operation: String, _ statuses: [Int], query: String = "", undoing deed: Deed? = nil,
            _ body: (@Sendable (String) -> JSON)? = nil
        ) {
            (self.operation, self.statuses, self.query) = (operation, statuses, query)
            (self.deed, self.body) = (deed, body)
        }
    }

    /// The user that a request concerns is `USER` in queries.
    private static let table: [Row] = [
        // The access of a user.
        Row("DELETE /v1/users/{id}", [403, 403, 202, 202, 202, 202]),
        Row("GET /v1/users/{id}/erasure", [403, 403, 404, 404, 404, 404]),
        Row("GET /v1/users/{id}/export", [403, 403, 403, 403, 200, 200]),
        Row("POST /v1/revocations", [403, 403, 403, 403, 201, 201]) {
            ["userId": .string($0), "issuedBefore": "2036-01-01T00:00:00Z"]
        },
        Row("DELETE /v1/revocations", [403, 403, 403, 403, 404, 404], query: "?userId=USER"),
        Row("GET /v1/audit", [403, 403, 200, 200, 200, 200], query: "?actor=USER&target=USER"),
        // What others see or do in a user's name.
        Row("POST /v1/notifications", [403, 403, 403, 403, 201, 201]) {
            ["userId": .string($0), "category": "visit", "priority": "HIGH", "title": "T", "message": "M"]
        },
        Row("POST /v1/events", [403, 403, 403, 403, 201, 201]) {
            ["id": .string("e-\($0)"), "type": "visit.created", "userId": .string($0), "data": ["visitId": "v1"]]
        },
        Row("POST /v1/bookings", [422, 422, 201, 404, 201, 404]) {
            [
                "userId": .string($0), "shopId": "s1", "barberId": nil, "service": "cut",
                "scheduledStart": "2026-01-12T12:00:00Z", "durationMinutes": 30,
            ]
        },
        Row("GET /v1/bookings", [200, 200, 200, 200, 200, 200], query: "?userId=USER"),
        Row("POST /v1/shops/{shop}/queue/entries", [403, 403, 201, 404, 201, 404]) {
            ["userId": .string($0), "service": "cut", "customerName": "K"]
        },
        Row("POST /v1/posts", [403, 403, 201, 201, 201, 201]) {
            ["authorId": .string($0), "text": "x", "visibility": "public"]
        },
        Row("GET /v1/posts", [200, 200, 200, 200, 200, 200], query: "?authorId=USER"),
        Row("PUT /v1/posts/{post}/likes/{userId}", [403, 403, 403, 404, 200, 404]),
        Row("DELETE /v1/posts/{post}/likes/{userId}", [200, 200, 200, 404, 200, 404], undoing: .like),
        Row("PUT /v1/posts/{post}/reposts/{userId}", [403, 403, 403, 404, 200, 404]),
        Row("DELETE /v1/posts/{post}/reposts/{userId}", [200, 200, 200, 404, 200, 404], undoing: .repost),
        Row("GET /v1/users/{id}", [200, 200, 200, 200, 200, 200]),
        Row("GET /v1/users/{id}/followers", [200, 200, 200, 200, 200, 200]),
        Row("GET /v1/users/{id}/following", [200, 200, 200, 200, 200, 200]),
        Row("GET /v1/users/zoe/followers/{followerId}", [404, 404, 404, 404, 404, 404]),
        Row("PUT /v1/users/zoe/followers/{followerId}", [403, 403, 403, 403, 201, 201]),
        Row("DELETE /v1/users/zoe/followers/{followerId}", [204, 204, 204, 204, 204, 204], undoing: .follow),
        Row("POST /v1/requests", [422, 422, 422, 422, 201, 201]) {
            ["kind": "friend", "fromUserId": .string($0), "toUserId": "zoe", "fromName": "x"]
        },
        Row("POST /v1/conversations", [201, 201, 201, 201, 201, 201]) { ["memberIds": [.string($0), "zoe"]] },
        Row("PUT /v1/conversations/{conversation}/members/{userId}", [404, 404, 404, 404, 200, 404]),
        Row("DELETE /v1/conversations/{conversation}/members/{userId}", [404, 404, 404, 404, 404, 404]),
        Row("POST /v1/challenges/{challenge}/scores", [403, 403, 200, 404, 200, 404]) {
            ["userId": .string($0), "score": 1, "displayName": "x"]
        },
        Row("DELETE /v1/challenges/{challenge}/scores/{userId}", [403, 403, 204, 404, 204, 404], undoing: .score),
        Row("POST /v1/publish", [403, 403, 403, 403, 202, 202]) {
            ["event": "tidings", "to": [.string("user:\($0)")], "data": 1]
        },
    ]

    private let service: TestService
    private var ids: [String: String] = ["shop": "s1", "challenge": "c1"]

    init() async throws {
        service = try TestService.start(at: TestService.morning)
        let backend = service.client(as: Kind.backend.identity)
        try await backend.replaceShop(id: "s1", .init(name: "S", timeZone: "UTC"))
        _ = try await service.call(
            "PUT", "/v1/challenges/c1", as: Kind.backend.identity,
            ["name": "C", "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2026-02-01T00:00:00Z", "mode": "add"])
        let post = try await service.call(
            "POST", "/v1/posts", as: Kind.backend.identity, ["authorId": "zoe", "text": "x", "visibility": "public"])
        let conversation = try await service.call(
            "POST", "/v1/conversations", as: Kind.backend.identity, ["memberIds": ["zoe", "yan"], "title": "T"])
        ids["post"] = post.json["id"].string
        ids["conversation"] = conversation.json["id"].string
    }

    @Test func operationsOnOtherUsers_areForTheirCallersOnly() async throws {
        for (row, line) in Self.table.enumerated() {
            for (kind, status) in zip(Kind.allCases, line.statuses) {
                // A user of its own, so that no request depends on one before.
                let user = "ada-\(row)-\(kind)"
                let what: Comment = "\(line.operation) as \(kind)"
                if let deed = line.deed { try await perform(deed, of: user) }
                let answer = try await call(line, on: user, as: kind)
                #expect(answer.status == status, "\(what): \(answer.text)")
                if let deed = line.deed {
                    let left = try await deeds(of: user)
                    try await perform(deed, of: user)
                    #expect(try await (deeds(of: user) != left) == deed.isUndoneBy.contains(kind), what)
                }
                // Whatever callers of other tenants do, it is in their own.
                guard kind == .foreignAdmin || kind == .backendOfAll || status >= 400 else { continue }
                var own = TestService.Identity.user(user, tenant: "A")
                own.claims["iat"] = .integer(service.clock.now.seconds - 60)
                let still = try await service.call("GET", "/v1/me", as: own)
                #expect(still.status == 200, "\(line.operation) as \(kind) ended the access of a user of A")
            }
        }
    }

    /// A new operation that takes a user's id must be in the table.
    @Test func table_hasEachOperationWithAUserId() throws {
        let text = try String(contentsOf: repository.appendingPathComponent("openapi.yaml"), encoding: .utf8)
        let document = try #require(try Yams.compose(yaml: text))
        let names: Set = ["userId", "authorId", "followerId", "fromUserId", "memberIds", "actor", "target"]
        var found: Set<String> = []
        for (path, item) in try #require(document["paths"]?.mapping) {
            let path = path.string ?? ""
            for (verb, operation) in item.mapping ?? [:] where operation["operationId"] != nil {
                let request = [operation["parameters"], operation["requestBody"], item["parameters"]].compactMap(\.self)
                let isOfUser = path.hasPrefix("/v1/users/{id}")
                let named = request.flatMap { Self.names($0, in: document, depth: 0) }
                if isOfUser || !names.isDisjoint(with: named) {
                    found.insert("\((verb.string ?? "").uppercased()) \(path)")
                }
            }
        }
        let listed = Set(
            Self.table.map { row in
                row.operation.replacingOccurrences(of: "{shop}", with: "{id}").replacingOccurrences(
                    of: "{post}", with: "{id}"
                ).replacingOccurrences(of: "{conversation}", with: "{id}").replacingOccurrences(
                    of: "{challenge}", with: "{id}"
                ).replacingOccurrences(of: "/zoe/", with: "/{id}/")
            })
        #expect(found.subtracting(listed).sorted() == [])
    }

    /// Returns the names of the parameters and members of a part of the contract.
    private static func names(_ node: Node, in document: Node, depth: Int) -> [String] {
        guard depth < 12 else { return [] }
        if let sequence = node.sequence { return sequence.flatMap { names($0, in: document, depth: depth + 1) } }
        guard let mapping = node.mapping else { return [] }
        return mapping.flatMap { key, value -> [String] in
            switch key.string ?? "" {
            case "$ref":
                let parts = (value.string ?? "").split(separator: "/").dropFirst()
                let target = parts.reduce(Optional(document)) { node, part in node?[String(part)] }
                return target.map { names($0, in: document, depth: depth + 1) } ?? []
            case "properties":
                return (value.mapping?.keys.compactMap(\.string) ?? []) + names(value, in: document, depth: depth + 1)
            case "name": return value.string.map { [$0] } ?? []
            case "example", "examples": return []
            default: return names(value, in: document, depth: depth + 1)
            }
        }
    }

    private func perform(_ deed: Deed, of user: String) async throws {
        let row = Row(deed.operation, []) { ["userId": .string($0), "score": 1, "displayName": "x"] }
        let answer = try await call(row, on: user, as: .backend)
        #expect(answer.status < 300, "\(answer.text)")
    }

    /// Returns which deeds of a user are in effect.
    private func deeds(of user: String) async throws -> [Bool] {
        let own = TestService.Identity.user(user, tenant: "A")
        let post = try await service.call("GET", "/v1/posts/\(ids["post"] ?? "")", as: own).json
        let follows = try await service.call("GET", "/v1/users/zoe/followers/\(user)", as: own).status
        let board = try await service.call("GET", "/v1/challenges/c1/leaderboard?limit=100", as: own).text
        return [
            post["liked"].bool == true, post["reposted"].bool == true, follows == 200, board.contains("\"\(user)\""),
        ]
    }

    private func call(_ row: Row, on user: String, as kind: Kind) async throws -> ServiceAnswer {
        let parts = row.operation.split(separator: " ").map(String.init)
        var path = parts[1]
        for (name, id) in ids { path = path.replacingOccurrences(of: "{\(name)}", with: id) }
        for name in ["{id}", "{userId}", "{followerId}"] { path = path.replacingOccurrences(of: name, with: user) }
        path += row.query.replacingOccurrences(of: "USER", with: user)
        let isRead = parts[0] == "GET"
        return try await service.call(
            parts[0], path, as: kind.identity, parts[0] == "POST" ? row.body?(user) : nil,
            headers: isRead ? [:] : ["Idempotency-Key": "\(UUID())"])
    }

    // MARK: Ids that are no user's

    private func expectRefusals(of id: String, _ comment: Comment) async throws {
        for kind in [Kind.admin, .backend] {
            let erased = try await service.call("DELETE", "/v1/users/\(id)", as: kind.identity)
            #expect(erased.status == 403, "\(comment): \(erased.text)")
            #expect(erased.json["code"].string == "user.is_service", comment)
        }
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: Kind.backend.identity,
            ["userId": .string(id), "issuedBefore": "2036-01-01T00:00:00Z"])
        #expect(revoked.status == 403, "\(comment): \(revoked.text)")
        #expect(revoked.json["code"].string == "user.is_service", comment)
        #expect(try await service.call("GET", "/v1/me", as: Kind.backend.identity).status == 200, comment)
    }

    @Test func idsOfTheService_areNotErased_norRevoked() async throws {
        for id in Settings.serviceNames { try await expectRefusals(of: id, "\(id)") }
    }

    @Test func idsOfBackends_areNotErased_norRevoked_alsoAfterARestart() async throws {
        try await expectRefusals(of: "bot", "has written")
        let reading = TestService.Identity(subject: "reader", metadata: Kind.backend.identity.metadata)
        #expect(try await service.call("GET", "/v1/me", as: reading).status == 200)
        try await expectRefusals(of: "reader", "has only read")
        // Any write of the tenant stores the backends that were seen.
        try await service.client(as: Kind.user.identity).replacePreferences(.init(sound: false))
        try await service.restart()
        try await expectRefusals(of: "bot", "after a restart")
        try await expectRefusals(of: "reader", "after a restart")
        // An id belongs to a tenant.
        let other = try await service.call("DELETE", "/v1/users/bot", as: Kind.foreignAdmin.identity)
        #expect(other.status == 202)
    }

    /// A person that once had the token of a backend can be erased some days after it has expired.
    @Test func backend_isForgotten_daysAfterItsTokensHaveExpired() async throws {
        #expect(try await service.call("POST", "/v1/revocations", as: .service(), ["tokenId": "x"]).status == 201)
        func erasure() async throws -> Int {
            try await service.call("DELETE", "/v1/users/backend", as: .admin).status
        }
        #expect(try await erasure() == 403)
        let looking = Unscoped.bookkeeping("the test looks at the list of backends")
        func stored() throws -> [String] {
            try service.app.store.read { db in
                try db.rows(
                    "SELECT user_id FROM \(Backends.backends, unscoped: looking) WHERE tenant = 'default'"
                ) { try $0.text(0) }
            }
        }
        #expect(try stored() == ["backend"])
        for (days, status) in [(6, 403), (2, 202)] {
            service.clock.advance(seconds: Int64(days) * 86_400)
            #expect(try await erasure() == status, "after \(days) more days")
        }
        try await service.run(StreamsFeature.pruning)
        #expect(try stored() == [])
    }

    /// A revocation of a user, even one from before the backend was seen, does not end a backend of the same id.
    @Test func revocationsOfUsers_doNotEndBackends() async throws {
        let late = TestService.Identity(subject: "late", metadata: Kind.backend.identity.metadata)
        let revoked = try await service.call(
            "POST", "/v1/revocations", as: Kind.backend.identity,
            ["userId": "late", "issuedBefore": "2036-01-01T00:00:00Z"])
        #expect(revoked.status == 201)
        let erased = try await service.call("DELETE", "/v1/users/late", as: Kind.admin.identity)
        #expect(erased.status == 202)
        #expect(try await service.call("GET", "/v1/me", as: late).status == 200)
        #expect(try await service.call("GET", "/v1/me", as: .user("late", tenant: "A")).status == 401)
        try await service.restart()
        #expect(try await service.call("GET", "/v1/me", as: late).status == 200)
    }

    /// A stolen token of a backend is revoked by its id, which any other token of a backend can lift.
    @Test func revocation_isLifted() async throws {
        var stolen = Kind.backend.identity
        (stolen.claims["jti"], stolen.claims["session_id"]) = ("j1", "s1")
        let ada = TestService.Identity.user("ada", tenant: "A")
        for (member, body, identity): (String, JSON, TestService.Identity) in [
            ("tokenId=j1", ["tokenId": "j1"], stolen), ("sessionId=s1", ["sessionId": "s1"], stolen),
            ("userId=ada", ["userId": "ada", "issuedBefore": "2036-01-01T00:00:00Z"], ada),
        ] {
            func status() async throws -> Int { try await service.call("GET", "/v1/me", as: identity).status }
            let backend = Kind.backend.identity
            #expect(try await service.call("POST", "/v1/revocations", as: backend, body).status == 201)
            #expect(try await status() == 401, "\(member)")
            for other in [Kind.user, .admin] {
                let refused = try await service.call("DELETE", "/v1/revocations?\(member)", as: other.identity)
                #expect(refused.status == 403)
            }
            // A revocation belongs to a tenant.
            let foreign = try await service.call("DELETE", "/v1/revocations?\(member)", as: .service(tenant: "B"))
            #expect(foreign.status == 404)
            #expect(try await status() == 401, "\(member)")
            #expect(try await service.call("DELETE", "/v1/revocations?\(member)", as: backend).status == 204)
            #expect(try await status() == 200, "\(member)")
            #expect(try await service.call("DELETE", "/v1/revocations?\(member)", as: backend).status == 404)
            try await service.restart()
            #expect(try await status() == 200, "\(member) after a restart")
        }
        for query in ["", "?tokenId=a&userId=b", "?tokenId="] {
            let answer = try await service.call("DELETE", "/v1/revocations\(query)", as: Kind.backend.identity)
            #expect(answer.status == 422, "\(query)")
        }
        let entries = try await service.call("GET", "/v1/audit?target=ada", as: Kind.admin.identity).json["items"].array
        #expect(
            entries?.map { $0["action"].string } == ["DELETE /v1/revocations", "POST /v1/revocations"],
            "\(String(describing: entries))")
    }

    @Test func erasure_isNotLifted() async throws {
        var ada = TestService.Identity.user("ada", tenant: "A")
        ada.claims["iat"] = .integer(service.clock.now.seconds - 60)
        #expect(try await service.call("DELETE", "/v1/users/ada", as: Kind.admin.identity).status == 202)
        #expect(try await service.call("GET", "/v1/me", as: ada).status == 401)
        _ = try await service.call("DELETE", "/v1/revocations?userId=ada", as: Kind.backend.identity)
        #expect(try await service.call("GET", "/v1/me", as: ada).status == 401)
    }

    // MARK: Refusals

    @Test func refusal_namesTheRoleSeen_andTheRoleNeeded() async throws {
        let answer = try await service.call("DELETE", "/v1/users/ada", as: Kind.staff.identity)
        #expect(answer.json["code"].string == "insufficient_scope")
        #expect(
            answer.json["detail"].string
                == "This operation requires the role admin or service_role. The token has the role staff.")
    }
}
