import BellhopClient
import Database
import TestSupport
import Testing
import Values

@testable import Service

/// The limits of whole tenants: one tenant cannot take the capacity of the others.
@Suite(.timed) struct TenantSharesTests {
    @Test func requests_ofAllCallersOfATenant_haveOneLimit() async throws {
        let service = try TestService.start(
            ["rateLimitUser": "300", "rateLimitTenant": "3", "tenantShares": "big:requests=5"],
            at: "2026-01-10T12:00:00Z")
        func answer(_ name: String, _ tenant: String) async throws -> ServiceAnswer {
            try await service.call("GET", "/v1/badges", as: .user(name, tenant: tenant))
        }
        let first = try await answer("u1", "small")
        #expect(first[header: "RateLimit-Policy"] == "\"default\";q=300;w=60, \"tenant\";q=3;w=60")
        for name in ["u1", "u2"] { #expect(try await answer(name, "small").status == 200) }
        let refused = try await answer("u3", "small")
        #expect(refused.refusal == "429 tenant.rate_limited")
        #expect(refused[header: "RateLimit"]?.hasPrefix("\"tenant\";r=0;t=") == true)
        #expect(refused[header: "Retry-After"] == "60")
        let backend = try await service.call("GET", "/v1/me", as: .service(tenant: "small"))
        #expect(backend.refusal == "429 tenant.rate_limited")
        // Other tenants have their own, which may be larger.
        for _ in 0..<5 { #expect(try await answer("u1", "big").status == 200) }
        #expect(try await answer("u1", "big").refusal == "429 tenant.rate_limited")
        #expect(try await answer("u1", "third").status == 200)
        service.clock.advance(seconds: 60)
        #expect(try await answer("u3", "small").status == 200)
    }

    /// A restart is no second allowance. A caller is again counted in full once it has used a tenth of it.
    @Test func requestsBeforeARestart_count() async throws {
        let service = try TestService.start(
            ["rateLimitUser": "300", "rateLimitTenant": "20"], at: "2030-01-10T12:00:00Z")
        func send(_ count: Int) async throws {
            for _ in 0..<count {
                #expect(try await service.call("GET", "/v1/badges", as: .user("ada", tenant: "small")).status == 200)
            }
        }
        func sharedAre(_ count: Int) throws -> Bool {
            try service.app.store.read {
                try $0.integer(
                    "SELECT coalesce(max(count), 0) FROM \(RateSharing.counts, within: "small", .audit("a test"))")
                    == count
            }
        }
        try await send(11)
        service.clock.advance(seconds: 1)
        try await eventually("the counts are stored") { try sharedAre(11) }
        try await service.restart()
        try await send(3)
        service.clock.advance(seconds: 1)
        try await eventually("the counts are added") { try sharedAre(14) }
        let ratio = "bellhop_tenant_requests_used_ratio{tenant=\"small\"} 0.7"
        try await eventually("the earlier requests count") {
            try await service.call("GET", "/metrics").text.contains(ratio)
        }
        try await send(6)
        let refused = try await service.call("GET", "/v1/badges", as: .user("ada", tenant: "small"))
        #expect(refused.refusal == "429 tenant.rate_limited")
    }

    @Test func requestsThatTheUsersLimitRefuses_costTheTenantNothing() async throws {
        let service = try TestService.start(
            ["rateLimitTenant": "4", "rateLimitUser": "1"], at: "2026-01-10T12:00:00Z")
        for _ in 0..<10 { _ = try await service.call("GET", "/v1/badges", as: .user("loud")) }
        for name in ["a", "b", "c"] {
            #expect(try await service.call("GET", "/v1/badges", as: .user(name)).status == 200)
        }
        #expect(try await service.call("GET", "/v1/badges", as: .user("d")).refusal == "429 tenant.rate_limited")
    }

    @Test func streams_ofATenant_areBounded() async throws {
        let service = try TestService.start(["tenantShares": "small:streams=1"])
        let stream = try await service.listen(as: .user("u1", tenant: "small"))
        let refused = try await service.call("GET", "/v1/stream", as: .user("u2", tenant: "small"))
        #expect(refused.refusal == "429 tenant.too_many_streams")
        #expect(refused[header: "Retry-After"] == "10")
        try await service.listen(as: .user("u1", tenant: "big")).close()
        stream.close()
        try await eventually("the place is free again") {
            (try? await service.listen(as: .user("u2", tenant: "small"))) != nil
        }
    }

    @Test func tenantWithoutRoom_mayReadAndDelete_andNotAdd() async throws {
        let service = try TestService.start(
            ["rowsPerTenantMax": "1", "tenantShares": "big:rows=0"], at: "2026-01-10T12:00:00Z")
        func follow(_ author: String, of tenant: String, _ method: String = "PUT") async throws -> ServiceAnswer {
            try await service.call(method, "/v1/users/\(author)/followers/ada", as: .user("ada", tenant: tenant))
        }
        for tenant in ["small", "big"] { #expect(try await follow("ben", of: tenant).isSuccess) }
        try await eventually("the rows are counted", step: { service.clock.advance(seconds: 61) }) {
            let text = try await service.call("GET", "/metrics").text
            return ["small", "big"].allSatisfy { text.contains("\nbellhop_tenant_rows{tenant=\"\($0)\"} 1\n") }
        }
        let refused = try await follow("carol", of: "small")
        #expect(refused.refusal == "507 tenant.storage_full")
        // Ten seconds, if the row was added since the last count.
        #expect(["10", "60"].contains(refused[header: "Retry-After"]))
        #expect(try await service.call("GET", "/v1/badges", as: .user("ada", tenant: "small")).status == 200)
        #expect(try await follow("carol", of: "big").isSuccess)
        #expect(try await follow("ben", of: "small", "DELETE").isSuccess)
        try await eventually("there is room again", step: { service.clock.advance(seconds: 61) }) {
            try await follow("carol", of: "small").isSuccess
        }
    }

    /// The limit holds between two counts, too: each transaction reports how many rows it has added and removed.
    @Test func rowsSinceTheLastCount_belongToTheShare() async throws {
        let service = try TestService.start(["rowsPerTenantMax": "3"], at: "2026-01-10T12:00:00Z")
        func follow(_ author: String, _ method: String = "PUT") async throws -> ServiceAnswer {
            try await service.call(method, "/v1/users/\(author)/followers/ada", as: .user("ada"))
        }
        // A row that is added during a count may count twice, until the next one.
        func add(_ author: String) async throws {
            try await eventually("there is room", step: { service.clock.advance(seconds: 11) }) {
                try await follow(author).isSuccess
            }
        }
        for author in ["a1", "a2", "a3"] { try await add(author) }
        #expect(try await follow("a4").refusal == "507 tenant.storage_full")
        #expect(try await follow("a1", "DELETE").isSuccess)
        try await add("a4")
        #expect(try await follow("a5").refusal == "507 tenant.storage_full")
    }

    /// A full tenant publishes nothing, and its rows give no new memberships. What takes something away remains possible.
    @Test func tenantWithoutRoom_mayRevoke_andNotPublish() async throws {
        let directory = try TemporaryDirectory()
        let file = """
            version: 1
            tables:
              - table: members
                primaryKey: [id]
                tenant: {column: tenant}
                audience: {select: ["user:{user_id}"]}
                memberships:
                  - {name: member, subject: "user:{user_id}", grants: "team:{team_id}"}
            """
        let service = try TestService.start(
            ["rowsPerTenantMax": "2", "tables": try directory.write(file, to: "tables.yaml")],
            at: "2026-01-10T12:00:00Z")
        func send(_ type: String, _ id: String) async throws -> JSON {
            let row: JSON = ["id": .string(id), "tenant": "default", "user_id": "ada", "team_id": .string(id)]
            let (new, old) = type == "DELETE" ? (JSON.null, row) : (row, JSON.null)
            let change: JSON = [
                "type": .string(type), "table": "members", "schema": "public", "record": new, "old_record": old,
            ]
            return try await service.call("POST", "/v1/changes", as: .service(), change).json
        }
        func publish() async throws -> ServiceAnswer {
            let event: JSON = ["event": "order:changed", "to": ["user:ada"], "data": nil]
            return try await service.call("POST", "/v1/publish", as: .service(), event)
        }
        #expect(try await publish().status == 202)
        for id in ["t1", "t2"] { #expect(try await send("INSERT", id)["accepted"] == 1) }
        let refused = try await send("INSERT", "t3")
        #expect(refused["accepted"] == 0)
        #expect(refused["rejected"][0]["reason"].string?.contains("may store 2") == true, "\(refused)")
        #expect(try await send("UPDATE", "t1")["accepted"] == 1)
        #expect(try await publish().refusal == "507 tenant.storage_full")
        let revoked = try await service.call("POST", "/v1/revocations", as: .service(), #"{"tokenId":"t1"}"#)
        #expect(revoked.isSuccess, "\(revoked.refusal)")
        for id in ["t1", "t2"] { #expect(try await send("DELETE", id)["accepted"] == 1) }
    }

    /// The stored answer of an earlier request is sent although the tenant has no room any more, and a refusal for want
    /// of room is not stored.
    @Test func tenantWithoutRoom_getsEarlierAnswers() async throws {
        let service = try TestService.start(["rowsPerTenantMax": "1"], at: "2026-01-10T12:00:00Z")
        func follow(_ author: String, _ key: String) async throws -> ServiceAnswer {
            try await service.call(
                "PUT", "/v1/users/\(author)/followers/ada", as: .user("ada"), headers: ["Idempotency-Key": key])
        }
        #expect(try await follow("ben", "first").isSuccess)
        try await eventually("the row is counted", step: { service.clock.advance(seconds: 61) }) {
            try await service.call("GET", "/metrics").text.contains("\nbellhop_tenant_rows{tenant=\"default\"} 1\n")
        }
        #expect(try await follow("carol", "second").refusal == "507 tenant.storage_full")
        let again = try await follow("ben", "first")
        #expect(again.isSuccess && again[header: "Idempotency-Replayed"] == "true")
        let left = try await service.call("DELETE", "/v1/users/ben/followers/ada", as: .user("ada"))
        #expect(left.isSuccess)
        try await eventually("there is room again", step: { service.clock.advance(seconds: 61) }) {
            try await follow("carol", "second").isSuccess
        }
    }

    /// Each tenant in the metrics is a label, so only the largest are there.
    @Test func metrics_nameTheLargestTenants() async throws {
        let service = try TestService.start(["rateLimitTenant": "100"], at: "2026-01-10T12:00:00Z")
        for number in 0..<(Limits.tenantsInMetricsMax + 3) {
            for _ in 0...number {
                _ = try await service.call("GET", "/v1/badges", as: .user("u", tenant: "t\(number)"))
            }
        }
        let lines = try await service.call("GET", "/metrics").text.split(separator: "\n").filter {
            $0.hasPrefix("bellhop_tenant_requests_used_ratio{")
        }
        #expect(lines.count == Limits.tenantsInMetricsMax)
        #expect(lines.first == "bellhop_tenant_requests_used_ratio{tenant=\"t12\"} 0.13")
    }

    @Test(arguments: [
        ("school", "school is not TENANT:"), (":requests=1", ":requests=1 is not TENANT:"),
        ("t:requests=many", "requests=many of t"), ("t:streams=-1", "streams=-1 of t"),
        ("t:badges=1", "badges of t is not one of requests, streams, webhooks, push, rows"),
    ])
    func malformedShare_isAMistake_thatNamesIt(text: String, problem: String) throws {
        let error = try #require(throws: (any Error).self) { try TestService.start(["tenantShares": text]) }
        #expect("\(error)".contains(problem))
    }

    @Test func idOfATenant_mayHaveColons() throws {
        let share = try SettingRule.tenantShare("urn:school:7:requests=5:streams=0:push=9")
        #expect(share == .init(tenant: "urn:school:7", requests: 5, streams: 0, push: 9))
    }
}
