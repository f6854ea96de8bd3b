import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// Properties of every request: rate limit, idempotency, conditional requests, CORS, invalid input.
@Suite(.timed) struct RequestTests {
    /// R-CNT-G4, R-CNT-10.
    @Test func rateLimit_isInEveryAnswer_andEnforced() async throws {
        let service = try TestService.start(["rateLimitUser": "3"], at: "2026-01-10T12:00:00Z")
        let user = service.client("u1")
        for left in [2, 1, 0] {
            let answer = try await user.getBadges()
            #expect(answer.status == 200)
            #expect(answer.headers["ratelimit-policy"] == "\"default\";q=3;w=60")
            #expect(answer.headers["ratelimit"]?.hasPrefix("\"default\";r=\(left);t=") == true)
        }
        let refused = try await service.call("GET", "/v1/badges", as: .user("u1"))
        #expect(refused.refusal == "429 rate_limited")
        #expect(Int(try #require(refused[header: "Retry-After"])) == 60)
        // All tokens of a user share one limit. Other users have their own, and backends are not limited.
        let other = TestService.Identity(subject: "u1", claims: ["jti": "another"])
        #expect(try await status(of: await service.client(as: other).getBadges()) == 429)
        #expect(try await service.client("u2").getBadges().status == 200)
        for _ in 0..<5 { #expect(try await service.client(as: .service()).getMe().status == 200) }
        #expect(try await service.call("GET", "/v1/stream", as: .user("u1")).status == 429)
        service.clock.advance(seconds: 60)
        #expect(try await user.getBadges().status == 200)
    }

    /// R-CNT-G4: opening a stream counts as a request. Its answer shows the limit, whether the stream opens or not.
    @Test func rateLimit_isInTheAnswersOfStreams() async throws {
        let service = try TestService.start(["rateLimitUser": "2"], at: "2026-01-10T12:00:00Z")
        let raw = try RawConnection(service.port)
        let token = service.token(for: .user("u1"))
        try raw.send("GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n")
        let head = try raw.read(until: "stream:ready")
        #expect(head.contains("RateLimit-Policy: \"default\";q=2;w=60\r\n"))
        #expect(head.contains("RateLimit: \"default\";r=1;t="))
        let user = service.client(as: .user("u1"))
        for (path, refusal) in [("?topics=x:1", "422 request.invalid"), ("", "429 rate_limited")] {
            let refused = try await user.get("/v1/stream\(path)")
            #expect(refused.refusal == refusal)
            #expect(refused[header: "RateLimit"]?.hasPrefix("\"default\";r=0;t=") == true)
        }
    }

    @Test func idempotencyKey_repeatsTheAnswer_andNotTheWork() async throws {
        let service = try TestService.start()
        let body: JSON = ["userId": "u1", "category": "news", "priority": "LOW", "title": "T", "message": "M"]
        let key = ["Idempotency-Key": "\"k-1\""]
        let first = try await service.call("POST", "/v1/notifications", as: .service(), body, headers: key)
        let again = try await service.call("POST", "/v1/notifications", as: .service(), body, headers: key)
        #expect(first.status == 201)
        #expect(again.status == 201)
        #expect(again.json == first.json)
        #expect(first[header: "Idempotency-Replayed"] == nil)
        #expect(again[header: "Idempotency-Replayed"] == "true")
        #expect(try await service.client("u1").getBadges().value.bell == 1)
        var other = try #require(body.object)
        other["title"] = "Another"
        let reused = try await service.call("POST", "/v1/notifications", as: .service(), .object(other), headers: key)
        #expect(reused.refusal == "422 idempotency.key_reused")
        // A key belongs to one caller and expires after a day.
        let tenant = try await service.call("POST", "/v1/notifications", as: .service(tenant: "t2"), body, headers: key)
        #expect(tenant.status == 201)
        #expect(tenant[header: "Idempotency-Replayed"] == nil)
        service.clock.advance(seconds: 24 * 3600 + 1)
        let later = try await service.call("POST", "/v1/notifications", as: .service(), body, headers: key)
        #expect(later.status == 201)
        #expect(later.json != first.json)
        let long = ["Idempotency-Key": String(repeating: "k", count: 256)]
        let unusable = try await service.call("POST", "/v1/notifications", as: .service(), body, headers: long)
        #expect(unusable.status == 400)
    }

    @Test func refusals_areReplayedToo() async throws {
        let service = try TestService.start()
        let key = ["Idempotency-Key": "k"]
        let body: JSON = [
            "shopId": "none", "service": "cut", "scheduledStart": "2026-01-10T09:00:00Z", "durationMinutes": 30,
        ]
        #expect(try await service.call("POST", "/v1/bookings", as: .user("u1"), body, headers: key).status == 404)
        let again = try await service.call("POST", "/v1/bookings", as: .user("u1"), body, headers: key)
        #expect(again.status == 404)
        #expect(again[header: "Idempotency-Replayed"] == "true")
    }

    /// R-CNT-RECON-4, R-CNT-D-2, R-15.
    @Test func pollWithTheNewestVersion_costsA304() async throws {
        let service = try TestService.start()
        let user = service.client("u1")
        let first = try await user.getBadges()
        let tag = try #require(first.etag)
        #expect(first.headers["poll-interval"] == "10")
        for candidate in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
            let same = try await service.call(
                "GET", "/v1/badges", as: .user("u1"), headers: ["If-None-Match": candidate])
            #expect(same.status == 304, "\(candidate)")
            #expect(same.body.isEmpty)
        }
        try await service.publish("e1", to: "u1")
        let changed = try #require(try await user.getBadges(ifNoneMatch: tag))
        #expect(changed.value.bell == 1)
        #expect(changed.etag != tag)
    }

    /// R-CNT-RECON-2, R-CNT-RECON-5, R-CNT-POLL, R-ENG-E-2.
    @Test func config_publishesTheConstants() async throws {
        let service = try TestService.start()
        let config = try await service.anyone.getConfig()
        #expect(config.value.polling.connectedSeconds == 10 && config.value.polling.disconnectedSeconds == 90)
        #expect(config.value.polling.tabSwitchStaleSeconds == 15)
        // R-ENG-E-2: clients use this limit to split long lists.
        #expect(config.value.subscriptions.valuesMax == 1000)
        #expect(config.value.changes?.itemsMax == 1000 && config.value.changes?.tables == 11)
        #expect(config.value.conversations?.membersMax == 256)
        #expect(config.value.userRequests?.openMax == 500)
        #expect(config.value.posts?.newCountMax == 1000 && config.value.posts?.tellingSeconds == 1)
        #expect(config.value.dj?.tracksPerUserMax == 5 && config.value.dj?.presenceSeconds == 600)
        #expect(config.value.leaderboards?.topMax == 500 && config.value.leaderboards?.updateSeconds == 1)
    }

    /// Answers carry headers that stop browsers from guessing a page, a script or a style sheet.
    @Test func answers_forbidContentSniffing() async throws {
        let service = try TestService.start()
        for path in ["/v1/me", "/healthz", "/metrics", "/console", "/nowhere", "/v1/me?unknown=1"] {
            #expect(
                try await service.call("GET", path, as: .user("u1"))[header: "X-Content-Type-Options"] == "nosniff",
                "\(path)")
        }
        let raw = try RawConnection(service.port)
        try raw.send(
            "GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(service.token(for: .user("u1")))\r\n\r\n")
        #expect(try raw.read(until: "stream:ready").contains("X-Content-Type-Options: nosniff"))
    }

    /// A cache between the service and a client may store what does not forbid it (RFC 9111 §4.2.2).
    @Test func answers_areNotStored_unlessTheySayHow() async throws {
        let service = try TestService.start()
        let expected = [
            "/v1/me": "no-store", "/v1/notifications": "no-store", "/healthz": "no-store", "/readyz": "no-store",
            "/metrics": "no-store", "/nowhere": "no-store", "/v1/me?unknown=1": "no-store",
            "/v1/badges": "private, no-cache", "/bellhop.js": "no-cache",
        ]
        for (path, rule) in expected {
            let answer = try await service.call("GET", path, as: .user("u1"))
            #expect(answer[header: "Cache-Control"] == rule, "\(path)")
        }
        let anonymous = try await service.call("GET", "/v1/badges")
        #expect(anonymous.status == 401 && anonymous[header: "Cache-Control"] == "no-store")
        let tag = try #require(try await service.call("GET", "/v1/badges", as: .user("u1"))[header: "ETag"])
        let same = try await service.call("GET", "/v1/badges", as: .user("u1"), headers: ["If-None-Match": tag])
        #expect(same.status == 304 && same[header: "Cache-Control"] == "private, no-cache")
    }

    /// R-CUT-N-5.
    @Test func otherOrigins_areAllowed_onlyIfConfigured() async throws {
        let closed = try TestService.start()
        let silent = try await closed.call("GET", "/v1/me", as: .user("u1"), headers: ["Origin": "https://app.example"])
        #expect(silent[header: "Access-Control-Allow-Origin"] == nil)
        let named = try TestService.start(["corsOrigins": "https://app.example"])
        let allowed = try await named.call("GET", "/v1/me", as: .user("u1"), headers: ["Origin": "https://app.example"])
        #expect(allowed[header: "Access-Control-Allow-Origin"] == "https://app.example")
        #expect(allowed[header: "Access-Control-Allow-Credentials"] == "true")
        #expect(allowed[header: "Access-Control-Expose-Headers"]?.contains("ETag") == true)
        let other = try await named.call("GET", "/v1/me", as: .user("u1"), headers: ["Origin": "https://evil.example"])
        #expect(other[header: "Access-Control-Allow-Origin"] == nil)
        let preflight = try await named.call("OPTIONS", "/v1/badges", headers: ["Origin": "https://app.example"])
        #expect(preflight.status == 204)
        for name in ["Last-Event-ID", "traceparent", "tracestate", "baggage", "sentry-trace"] {
            #expect(preflight[header: "Access-Control-Allow-Headers"]?.contains(name) == true, "\(name)")
        }
        let all = try TestService.start(["corsOrigins": "*"])
        let any = try await all.call("GET", "/v1/me", as: .user("u1"), headers: ["Origin": "https://app.example"])
        #expect(any[header: "Access-Control-Allow-Origin"] == "*")
        #expect(any[header: "Access-Control-Allow-Credentials"] == nil)
    }

    @Test func badInput_isRefusedWithItsPlaces_andChangesNothing() async throws {
        let service = try TestService.start()
        func post(_ text: String, type: String = "application/json") async throws -> ServiceAnswer {
            try await service.call("POST", "/v1/events", as: .service(), text, headers: ["Content-Type": type])
        }
        #expect(try await post("{").status == 400)
        #expect(try await post("[]").status == 400)
        #expect(try await post(#"{"id":"a","id":"b"}"#).status == 400)
        #expect(try await post("{}", type: "text/plain").status == 415)
        for coding in ["gzip", "br", "gzip, identity"] {
            let compressed = try await service.call(
                "POST", "/v1/events", as: .service(), Data([0x1F, 0x8B]), headers: ["Content-Encoding": coding])
            #expect(compressed.refusal == "415 request.content_encoding")
        }
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
        let neither = try await problem(
            of: await service.client(as: .service()).explain(.init(eventId: "k3f9ab-cf2n9bd54rbey")))
        #expect(neither.status == 422 && neither.pointers.first == "")
        let query = try await problem(of: await service.client("u1").listNotifications(limit: 0))
        #expect(query.mistakes == "422 ?limit")
        #expect(try await service.call("GET", "/v1/notifications?colour=red", as: .user("u1")).status == 422)
        #expect(try await service.call("GET", "/v1/notifications?limit=1&limit=2", as: .user("u1")).status == 422)
        #expect(
            try await status(of: await service.client("u1").listNotifications(cursor: "AAAAAAAAAAAAAAAAAAAAAAAA"))
                == 422)
        #expect(try await service.call("GET", "/nowhere", as: .service()).status == 404)
        #expect(try await service.call("DELETE", "/v1/badges", as: .service()).status == 405)
        #expect(try await service.client("u1").getBadges().value.version == 0)
    }

    @Test func cursor_isBoundToItsListAndCaller() async throws {
        let service = try TestService.start()
        for user in ["u1", "u2"] {
            for number in 1...3 {
                try await service.publish("e\(number)", to: user)
            }
        }
        let user = service.client("u1")
        let page = try await user.listNotifications(limit: 2)
        let next = try #require(page.value.next)
        #expect(page.headers["link"]?.contains("rel=\"next\"") == true)
        let rest = try await user.listNotifications(limit: 2, cursor: next)
        #expect(rest.value.items.count == 1)
        #expect(rest.value.next == nil)
        #expect(try await status(of: await user.listNotifications(category: "visit", cursor: next)) == 422)
        #expect(try await status(of: await service.client("u2").listNotifications(cursor: next)) == 422)
    }

    /// A body of the maximum length with as many mistakes as possible. Its answer must not be a multiple of it.
    @Test func problems_listABoundedNumberOfMistakes() async throws {
        let service = try TestService.start()
        let names = (0..<6_000).map { String($0, radix: 36) }
        let body = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(body.utf8.count <= Limits.bodyBytesMax)
        let answer = try await service.call("POST", "/v1/posts", as: .user("ada"), body)
        #expect(answer.status == 422)
        #expect(answer.json["errors"].array?.count == Limits.problemErrorsMax)
        // The text is missing.
        #expect(answer.json["detail"].string?.hasSuffix("`errors` lists the first 128 of 6001 errors.") == true)
        #expect(answer.text.utf8.count < 16 * 1024)
        let query = names.prefix(2_000).map { "&\($0)" }.joined()
        let refused = try await service.call("GET", "/v1/me?x=1\(query)", as: .user("ada"))
        #expect(refused.status == 422)
        #expect(refused.json["errors"].array?.count == Limits.problemErrorsMax)
        let few = try await service.call("POST", "/v1/posts", as: .user("ada"), ["text": "a", "b": 1])
        #expect(few.json["errors"].array?.count == 1)
        #expect(few.json["detail"].string?.contains("lists the first") == false)
    }

    @Test func service_reportsItsHealth_andItsMetrics() async throws {
        let service = try TestService.start()
        #expect(try await service.call("GET", "/healthz").json["status"].string == "ok")
        #expect(try await service.call("GET", "/readyz").status == 200)
        let metrics = try await service.call("GET", "/metrics")
        #expect(metrics[header: "Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(
            metrics.text.contains("bellhop_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1"))
        #expect(metrics.text.contains("bellhop_streams_open 0"))
    }
}
