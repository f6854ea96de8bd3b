import BellhopClient
import Foundation
import Rows
import TestSupport
import Testing
import Values

@testable import Service

/// Properties of every request: rate limit, idempotency, conditional requests, CORS, invalid input.
@Suite(.timed) struct RequestTests {
    /// R-CNT-G4, R-CNT-10.
    @Test func rateLimit_isInEveryAnswer_andEnforced() async throws {
        let service = try TestService.start(["rateLimitUser": "3"], at: "2026-01-10T12:00:00Z")
        let user = service.client(as: .user("u1"))
        for left in [2, 1, 0] {
            let answer = try await user.get("/v1/badges")
            #expect(answer.status == 200)
            #expect(answer[header: "RateLimit-Policy"] == "\"default\";q=3;w=60")
            #expect(answer[header: "RateLimit"]?.hasPrefix("\"default\";r=\(left);t=") == true)
        }
        let refused = try await user.get("/v1/badges")
        #expect(refused.refusal == "429 rate_limited")
        #expect(Int(try #require(refused[header: "Retry-After"])) == 60)
        // All tokens of a user share one limit. Other users have their own, and backends are not limited.
        let other = TestService.Identity(subject: "u1", claims: ["jti": "another"])
        #expect(try await service.client(as: other).get("/v1/badges").status == 429)
        #expect(try await service.client(as: .user("u2")).get("/v1/badges").status == 200)
        for _ in 0..<5 { #expect(try await service.client(as: .service()).get("/v1/me").status == 200) }
        #expect(try await user.get("/v1/stream").status == 429)
        service.clock.advance(seconds: 60)
        #expect(try await user.get("/v1/badges").status == 200)
    }

    @Test func idempotencyKey_repeatsTheAnswer_andNotTheWork() async throws {
        let service = try TestService.start()
        let backend = service.client(as: .service())
        let body: JSON = ["userId": "u1", "category": "news", "priority": "LOW", "title": "T", "message": "M"]
        let key = ["Idempotency-Key": "\"k-1\""]
        let first = try await backend.post("/v1/notifications", body, headers: key)
        let again = try await backend.post("/v1/notifications", body, headers: key)
        #expect(first.status == 201)
        #expect(again.status == 201)
        #expect(again.json == first.json)
        #expect(first[header: "Idempotency-Replayed"] == nil)
        #expect(again[header: "Idempotency-Replayed"] == "true")
        #expect(try await service.client(as: .user("u1")).get("/v1/badges").json["bell"].int == 1)
        var other = try #require(body.object)
        other["title"] = "Another"
        let reused = try await backend.post("/v1/notifications", .object(other), headers: key)
        #expect(reused.refusal == "422 idempotency.key_reused")
        // A key belongs to one caller and expires after a day.
        let tenant = try await service.client(as: .service(tenant: "t2")).post("/v1/notifications", body, headers: key)
        #expect(tenant.status == 201)
        #expect(tenant[header: "Idempotency-Replayed"] == nil)
        service.clock.advance(seconds: 24 * 3600 + 1)
        // A day later, the token has expired too.
        let tomorrow = service.client(as: .service())
        let later = try await tomorrow.post("/v1/notifications", body, headers: key)
        #expect(later.status == 201)
        #expect(later.json != first.json)
        let unusable = try await tomorrow.post(
            "/v1/notifications", body, headers: ["Idempotency-Key": String(repeating: "k", count: 256)])
        #expect(unusable.status == 400)
    }

    @Test func refusals_areReplayedToo() async throws {
        let service = try TestService.start()
        let key = ["Idempotency-Key": "k"]
        let body: JSON = [
            "shopId": "none", "service": "cut", "scheduledStart": "2026-01-10T09:00:00Z", "durationMinutes": 30,
        ]
        let user = service.client(as: .user("u1"))
        #expect(try await user.post("/v1/bookings", body, headers: key).status == 404)
        let again = try await user.post("/v1/bookings", body, headers: key)
        #expect(again.status == 404)
        #expect(again[header: "Idempotency-Replayed"] == "true")
    }

    /// R-CNT-RECON-4, R-CNT-D-2.
    @Test func pollWithTheNewestVersion_costsA304() async throws {
        let service = try TestService.start()
        let user = service.client(as: .user("u1"))
        let first = try await user.get("/v1/badges")
        let tag = try #require(first[header: "ETag"])
        #expect(first[header: "Poll-Interval"] == "10")
        for candidate in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
            let same = try await user.get("/v1/badges", headers: ["If-None-Match": candidate])
            #expect(same.status == 304, "\(candidate)")
            #expect(same.body.isEmpty)
        }
        let body: JSON = ["id": "e1", "type": "visit.created", "userId": "u1"]
        #expect(try await service.client(as: .service()).post("/v1/events", body).status == 201)
        let changed = try await user.get("/v1/badges", headers: ["If-None-Match": tag])
        #expect(changed.status == 200)
        #expect(changed.json["bell"].int == 1)
        #expect(changed[header: "ETag"] != tag)
    }

    @Test func config_publishesTheConstants() async throws {
        let service = try TestService.start()
        let config = try await service.anyone.get("/v1/config")
        expect(config.json["polling"], has: ["connectedSeconds": 10, "disconnectedSeconds": 90])
        expect(config.json["polling"], has: ["tabSwitchStaleSeconds": 15])
        // R-ENG-E-2: clients use this limit to split long lists.
        #expect(config.json["subscriptions"]["valuesMax"].int == 1000)
        expect(config.json["changes"], has: ["itemsMax": 1000, "tables": 11])
        #expect(config.json["conversations"]["membersMax"].int == 256)
        #expect(config.json["userRequests"]["openMax"].int == 500)
        expect(config.json["posts"], has: ["newCountMax": 1000, "tellingSeconds": 1])
        expect(config.json["dj"], has: ["tracksPerUserMax": 5, "presenceSeconds": 600])
        expect(config.json["leaderboards"], has: ["topMax": 500, "updateSeconds": 1])
    }

    /// Answers carry headers that stop browsers from guessing a page, a script or a style sheet.
    @Test func answers_forbidContentSniffing() async throws {
        let service = try TestService.start()
        let client = service.client(as: .user("u1"))
        for path in ["/v1/me", "/healthz", "/metrics", "/console", "/nowhere", "/v1/me?unknown=1"] {
            #expect(try await client.get(path)[header: "X-Content-Type-Options"] == "nosniff", "\(path)")
        }
        let raw = try RawConnection(service.port)
        try raw.send(
            "GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(service.token(for: .user("u1")))\r\n\r\n")
        #expect(try raw.read(until: "stream:ready").contains("X-Content-Type-Options: nosniff"))
    }

    /// R-CUT-N-5.
    @Test func otherOrigins_areAllowed_onlyIfConfigured() async throws {
        let closed = try TestService.start()
        let silent = try await closed.client(as: .user("u1")).get("/v1/me", headers: ["Origin": "https://app.example"])
        #expect(silent[header: "Access-Control-Allow-Origin"] == nil)
        let named = try TestService.start(["corsOrigins": "https://app.example"])
        let client = named.client(as: .user("u1"))
        let allowed = try await client.get("/v1/me", headers: ["Origin": "https://app.example"])
        #expect(allowed[header: "Access-Control-Allow-Origin"] == "https://app.example")
        #expect(allowed[header: "Access-Control-Allow-Credentials"] == "true")
        #expect(allowed[header: "Access-Control-Expose-Headers"]?.contains("ETag") == true)
        let other = try await client.get("/v1/me", headers: ["Origin": "https://evil.example"])
        #expect(other[header: "Access-Control-Allow-Origin"] == nil)
        let preflight = try await client.send("OPTIONS", "/v1/badges", headers: ["Origin": "https://app.example"])
        #expect(preflight.status == 204)
        for name in ["Last-Event-ID", "traceparent", "tracestate", "baggage", "sentry-trace"] {
            #expect(preflight[header: "Access-Control-Allow-Headers"]?.contains(name) == true, "\(name)")
        }
        let all = try TestService.start(["corsOrigins": "*"])
        let any = try await all.client(as: .user("u1")).get("/v1/me", headers: ["Origin": "https://app.example"])
        #expect(any[header: "Access-Control-Allow-Origin"] == "*")
        #expect(any[header: "Access-Control-Allow-Credentials"] == nil)
    }

    @Test func badInput_isRefusedWithItsPlaces_andChangesNothing() async throws {
        let service = try TestService.start()
        let backend = service.client(as: .service())
        func post(_ text: String, type: String = "application/json") async throws -> ServiceAnswer {
            try await backend.send("POST", "/v1/events", bytes: Data(text.utf8), headers: ["Content-Type": type])
        }
        #expect(try await post("{").status == 400)
        #expect(try await post("[]").status == 400)
        #expect(try await post(#"{"id":"a","id":"b"}"#).status == 400)
        #expect(try await post("{}", type: "text/plain").status == 415)
        // The service answers after the head. A client that is still sending could lose the answer with the
        // connection.
        let raw = try RawConnection(service.port)
        let token = service.token(for: .service())
        try raw.send(
            "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                + "Content-Type: application/json\r\nContent-Length: 70000\r\n\r\n")
        #expect(try raw.readAnswer().status == 413)
        let wrong = try await post(#"{"id":5,"type":"visit.lost","userId":"","color":"red"}"#)
        #expect(wrong.status == 422)
        let pointers = wrong.json["errors"].array?.compactMap { $0["pointer"].string } ?? []
        #expect(Set(pointers) == ["/id", "/type", "/userId", "/color"])
        // The pointer of a whole body is empty (RFC 6901 §5).
        let neither = try await service.client(as: .service()).post("/v1/explain", ["eventId": "k3f9ab-cf2n9bd54rbey"])
        #expect(neither.status == 422 && neither.json["errors"][0]["pointer"].string == "", "\(neither.problem)")
        let query = try await service.client(as: .user("u1")).get("/v1/notifications?limit=0")
        #expect(query.mistakes == "422 ?limit")
        #expect(try await service.client(as: .user("u1")).get("/v1/notifications?colour=red").status == 422)
        #expect(try await service.client(as: .user("u1")).get("/v1/notifications?limit=1&limit=2").status == 422)
        #expect(
            try await service.client(as: .user("u1")).get("/v1/notifications?cursor=AAAAAAAAAAAAAAAAAAAAAAAA").status
                == 422)
        #expect(try await backend.get("/nowhere").status == 404)
        #expect(try await backend.delete("/v1/badges").status == 405)
        #expect(try await service.client(as: .user("u1")).get("/v1/badges").json["version"].int == 0)
    }

    @Test func cursor_isBoundToItsListAndCaller() async throws {
        let service = try TestService.start()
        let backend = service.client(as: .service())
        for user in ["u1", "u2"] {
            for number in 1...3 {
                let body: JSON = ["id": .string("e\(number)"), "type": "visit.created", "userId": .string(user)]
                #expect(try await backend.post("/v1/events", body).status == 201)
            }
        }
        let user = service.client(as: .user("u1"))
        let page = try await user.get("/v1/notifications?limit=2")
        let next = try #require(page.json["next"].string)
        #expect(page[header: "Link"]?.contains("rel=\"next\"") == true)
        let rest = try await user.get("/v1/notifications?limit=2&cursor=\(next)")
        #expect(rest.json["items"].array?.count == 1)
        #expect(rest.json["next"].isNull)
        #expect(try await user.get("/v1/notifications?category=visit&cursor=\(next)").status == 422)
        #expect(try await service.client(as: .user("u2")).get("/v1/notifications?cursor=\(next)").status == 422)
    }

    @Test func service_reportsItsHealth_andItsMetrics() async throws {
        let service = try TestService.start()
        let anyone = service.anyone
        #expect(try await anyone.get("/healthz").json["status"].string == "ok")
        #expect(try await anyone.get("/readyz").status == 200)
        let metrics = try await anyone.get("/metrics")
        #expect(metrics[header: "Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(
            metrics.text.contains("bellhop_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1"))
        #expect(metrics.text.contains("bellhop_streams_open 0"))
    }
}
