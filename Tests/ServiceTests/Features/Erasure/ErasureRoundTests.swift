import BellhopClient
import Database
import Foundation
import PostgresServer
import TestSupport
import Testing
import Values

@testable import Service

/// The end of erasures: rows that are written while they run, and the cost of a round.
@Suite(.timed) struct ErasureRoundTests {
    private static let why = Unscoped.audit("tests look at all rows")

    /// Seconds after which new tokens of an erased user are accepted.
    private static let tokenPause = Limits.clockSkewSeconds + 2

    private static func state(_ service: TestService, _ person: String, tenant: String = "default") async throws
        -> String?
    {
        try await service.call("GET", "/v1/users/\(person)/erasure", as: .service(tenant: tenant)).json["state"].string
    }

    private static func awaitDone(_ service: TestService, _ person: String, tenant: String = "default") async throws {
        try await eventually("the erasure of \(person) ends", step: { service.clock.advance(seconds: 1) }) {
            try await state(service, person, tenant: tenant) == "done"
        }
    }

    /// Lets the erasures of a service stay in the last stage, without a further step.
    private static func holdRound(_ service: TestService) throws {
        try set("stage = \(ErasureFeature.Stage.closing.rawValue), step = '', next_at = \(Int64.max)", service)
    }

    /// A round ended a moment ago, so the next erasure waits for a minute. What names the person meanwhile is erased too.
    @Test func whatAppearsWhileAnErasureWaits_isErased() async throws {
        let town = try await ErasedTown()
        let service = town.service
        try await town.erase(ErasedTown.ben, "A")
        let backend = TestService.Identity.service(tenant: "A")
        try await town.send(backend, "DELETE", "/v1/users/\(ErasedTown.ada)")
        try await eventually("the first pass ends", step: { service.clock.advance(seconds: 1) }) {
            try service.app.store.read { db in
                try db.exists(
                    """
                    SELECT 1 FROM \(ErasureFeature.erasures, unscoped: Self.why)
                    WHERE done_at IS NULL AND stage = \(ErasureFeature.Stage.waiting.rawValue)
                    """)
            } || PostgresServer.isTheStore
        }
        service.clock.advance(seconds: 1)
        let (ada, mark) = (ErasedTown.ada, ErasedTown.mark(ErasedTown.ada, "A"))
        for (user, data) in [(ada, [:]), ("eve", ["friendId": .string(ada)])] as [(String, [String: JSON])] {
            let body: JSON = [
                "userId": .string(user), "category": "visit", "priority": "NORMAL", "title": .string(mark + "late"),
                "message": "text", "data": .object(data),
            ]
            let key = ["Idempotency-Key": mark + user, "X-Request-Id": ada]
            let answer = try await service.call("POST", "/v1/notifications", as: backend, body, headers: key)
            #expect(answer.isSuccess || answer.refusal == "503 erasure.closing", "\(answer.text)")
        }
        _ = try await service.call(
            "POST", "/v1/publish", as: backend,
            ["event": "tidings", "to": [.string("user:\(ada)"), "user:eve"], "data": .string(mark)])
        var own = TestService.Identity.user(ada, tenant: "A")
        own.claims["iat"] = .integer(service.clock.now.seconds + Limits.clockSkewSeconds)
        _ = try await service.call(
            "POST", "/v1/posts", as: own, ["text": .string(mark + "post"), "visibility": "public"])
        _ = try await service.call("GET", "/v1/users/\(ada)/export", as: backend)
        try await Self.awaitDone(service, ada, tenant: "A")
        for (table, lines) in try town.rows(of: "A") where table != "event_shared" {
            let left = lines.filter { $0.contains(ada) || $0.contains(mark) }
            #expect(left.isEmpty, "\(table): \(left.prefix(2))")
        }
        try service.expectExactCounts()
    }

    /// A second request refuses the tokens that were issued meanwhile, and begins the erasure again.
    @Test func secondRequest_refusesTokensIssuedMeanwhile_andBeginsAgain() async throws {
        let service = try TestService.start(at: TestService.morning)
        _ = try await service.call("DELETE", "/v1/users/ada", as: .service())
        try Self.holdRound(service)
        service.clock.advance(seconds: Self.tokenPause)
        let middle = TestService.Identity.bearer(service.token(for: .user("ada")))
        #expect(try await service.call("GET", "/v1/badges", as: middle).status == 200)
        service.clock.advance(seconds: Self.tokenPause)
        let again = try await service.call("DELETE", "/v1/users/ada", as: .service())
        #expect(again.status == 202 && again.json["state"].string == "pending")
        #expect(again.json["requestedAt"].string == service.clock.now.rfc3339)
        #expect(try await service.call("GET", "/v1/badges", as: middle).status == 401)
        try await Self.awaitDone(service, "ada")
        #expect(try await service.call("GET", "/v1/badges", as: middle).status == 401)
    }

    /// A post that appears behind the step for posts is counted in a row of the person. That row is still there when the
    /// post is removed.
    @Test func rowsThatAppearBehindTheirStep_areStillCounted() async throws {
        let service = try TestService.start(at: TestService.morning)
        _ = try await service.call("DELETE", "/v1/users/ada", as: .service())
        try Self.set("stage = 1, next_at = \(Int64.max)", service)
        service.clock.advance(seconds: Self.tokenPause)
        let (ada, eve) = (TestService.Identity.user("ada"), TestService.Identity.user("eve"))
        let calls: [(String, String, TestService.Identity, JSON?)] = [
            ("POST", "/v1/posts", ada, ["text": "hello", "visibility": "public"]),
            ("PUT", "/v1/users/ada/followers/me", eve, nil),
            ("POST", "/v1/requests", eve, ["kind": "friend", "toUserId": "ada", "fromName": "Eve"]),
        ]
        for (method, path, identity, body) in calls {
            #expect(try await service.call(method, path, as: identity, body).isSuccess, "\(path)")
        }
        let chat = try await service.call("POST", "/v1/conversations", as: eve, ["memberIds": ["ada"]]).json["id"]
            .string
        let path = "/v1/conversations/\(chat ?? "")/messages"
        #expect(try await service.call("POST", path, as: eve, ["text": "hello"]).isSuccess)
        // The steps of the features are behind.
        try Self.set("step = 'table badges', next_at = 0", service)
        try await Self.awaitDone(service, "ada")
        try service.expectExactCounts()
    }

    private static func set(_ changes: SQL, _ service: TestService) throws {
        try service.app.store.writeAndWait { db in
            try db.run("UPDATE \(ErasureFeature.erasures, unscoped: why) SET \(changes)")
        }
        service.app.runner.gate.lookAgain()
    }

    /// In the last seconds, what names the person is refused, and can be repeated. All else continues.
    @Test func closingErasure_refusesWhatNamesThePerson() async throws {
        let service = try TestService.start(["auditReads": "true"], at: TestService.morning)
        try await service.publish("before", to: "eve")
        _ = try await service.call("DELETE", "/v1/users/ada", as: .service())
        try Self.holdRound(service)
        func notification(_ user: String, _ data: JSON, id: String? = nil) -> JSON {
            [
                "id": id.map { .string($0) } ?? .null, "userId": .string(user), "category": "visit",
                "priority": "NORMAL", "title": "title", "message": "for ada", "data": data,
            ]
        }
        let refused: [(String, String, TestService.Identity, JSON?)] = [
            ("POST", "/v1/notifications", .service(), notification("ada", [:])),
            ("POST", "/v1/notifications", .service(), notification("eve", ["friendId": "ada"])),
            ("POST", "/v1/notifications", .service(), notification("eve", [:], id: "follow:ada:1")),
            ("POST", "/v1/publish", .service(), ["event": "tidings", "to": ["user:ada"], "data": [:]]),
            ("POST", "/v1/publish", .service(), ["event": "tidings", "to": ["user:eve"], "data": ["who": "ada"]]),
            ("POST", "/v1/conversations", .user("eve"), ["memberIds": ["ada"]]),
            ("POST", "/v1/posts", .user("ada"), ["text": "hello", "visibility": "public"]),
            ("PUT", "/v1/users/ada/followers/me", .user("eve"), nil),
            ("POST", "/v1/revocations", .service(), ["userId": "ada", "issuedBefore": "2026-01-01T00:00:00Z"]),
        ]
        service.clock.advance(seconds: Self.tokenPause)
        for (method, path, identity, body) in refused {
            for headers in [[:], ["Idempotency-Key": UUID().uuidString]] {
                let answer = try await service.call(method, path, as: identity, body, headers: headers)
                #expect(answer.refusal == "503 erasure.closing", "\(method) \(path): \(answer.text)")
                #expect(answer[header: "Retry-After"] == "5")
            }
        }
        // Texts for people may say anything; other tenants are not concerned.
        try await service.publish("after", to: "eve")
        let elsewhere = try await service.call(
            "POST", "/v1/notifications", as: .service(tenant: "B"), notification("ada", [:]))
        #expect(elsewhere.status == 201, "\(elsewhere.text)")
        _ = try await service.call("GET", "/v1/users/ada/export", as: .service())
        let audit = try ErasedTown.rows(of: "default", in: service)["audit"] ?? []
        // A digest may contain the letters.
        #expect(!audit.isEmpty && !audit.contains { $0.contains(/\bada\b/) }, "\(audit)")
        _ = try await service.call("DELETE", "/v1/users/ada", as: .service())
        try await Self.awaitDone(service, "ada")
        let later = try await service.call("POST", "/v1/notifications", as: .service(), notification("ada", [:]))
        #expect(later.status == 201)
        try service.expectExactCounts()
    }

    /// An id that no one has leaves no row, and the file is not rewritten for it.
    @Test(.enabled(if: !PostgresServer.isTheStore)) func fileIsRewritten_onlyIfSomethingWasErased() async throws {
        let service = try TestService.start(at: TestService.morning)
        for number in 0..<300 { try await service.publish("n\(number)", to: "eve") }
        try service.app.store.writeAndWait { db in
            try db.run("DELETE FROM \(EventLog.events, unscoped: Self.why)")
        }
        func freePages() throws -> Int { try service.app.store.read { try $0.integer("PRAGMA freelist_count") ?? 0 } }
        let before = try freePages()
        #expect(before > 10)
        for number in 0..<20 {
            #expect(try await service.call("DELETE", "/v1/users/nobody-\(number)", as: .service()).status == 202)
        }
        for number in 0..<20 { try await Self.awaitDone(service, "nobody-\(number)") }
        #expect(try freePages() > 0)
        _ = try await service.call("DELETE", "/v1/users/eve", as: .service())
        try await Self.awaitDone(service, "eve")
        #expect(try freePages() == 0)
    }

    /// Each open erasure looks through the tables of the tenant. More of them are refused, but not repeated ones.
    @Test func openErasures_areBounded() async throws {
        let service = try TestService.start(at: TestService.morning)
        _ = try await service.call("DELETE", "/v1/users/ada", as: .service())
        try Self.holdRound(service)
        try service.app.store.writeAndWait { db in
            for number in 1..<ErasureLimits.openMax {
                try db.run(
                    """
                    INSERT INTO \(ErasureFeature.erasures, unscoped: Self.why)
                        (tenant, mark, encrypted_id, requested_at, stage, step, next_at)
                    VALUES ('default', \("m\(number)"), 'x', 0, 1, '', \(Int64.max))
                    """)
            }
        }
        let refused = try await service.call("DELETE", "/v1/users/ben", as: .service())
        #expect(refused.refusal == "429 erasure.too_many")
        #expect(refused[header: "Retry-After"] == "60")
        #expect(try await service.call("DELETE", "/v1/users/ada", as: .service()).status == 202)
        #expect(try await service.call("DELETE", "/v1/users/ben", as: .service(tenant: "B")).status == 202)
    }

    /// Keys that callers choose may name a person. Only digests of them are stored, and repeated requests are recognized.
    @Test func keysThatCallersChoose_areStoredAsDigests() async throws {
        let service = try TestService.start(
            ["changesSecret": School.secret, "tables": "school"], at: TestService.morning)
        let headers = ["Idempotency-Key": "for-zoe-q7", "X-Request-Id": "zoe-q7.1"]
        let body: JSON = ["userId": "eve", "category": "visit", "priority": "NORMAL", "title": "t", "message": "m"]
        for status in [201, 201] {
            let answer = try await service.call("POST", "/v1/notifications", as: .service(), body, headers: headers)
            #expect(answer.status == status && answer[header: "X-Request-Id"] == "zoe-q7.1")
        }
        let row = School.insert("parent_students", ["parent_id": "p", "student_id": "s", "school_id": "default"])
        for count in ["accepted", "duplicates"] {
            let answer = try await service.call(
                "POST", "/v1/changes", row,
                headers: ["X-Webhook-Secret": School.secret, "webhook-id": "delivery-zoe-q7"])
            #expect(answer.json[count].int == 1, "\(answer.text)")
        }
        let shop: JSON = ["name": "One", "timeZone": "UTC"]
        _ = try await service.call("PUT", "/v1/shops/s1", as: .service(), shop, headers: headers)
        for (table, lines) in try ErasedTown.rows(of: "default", in: service) {
            #expect(!lines.contains { $0.contains("zoe-q7") }, "\(table)")
        }
        // As `printf %s zoe-q7.1 | sha256sum | cut -c 1-32` prints it.
        let audit = try ErasedTown.rows(of: "default", in: service)["audit"] ?? []
        #expect(audit.contains { $0.contains("request_id: sha256:b14c085ba6a3dd9673a4f847ae5a6766") }, "\(audit)")
        #expect(try await service.all(of: "eve").count == 1)
    }
}
