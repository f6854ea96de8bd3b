import BellhopClient
import Database
import Foundation
import TestSupport
import Testing

@testable import Service

/// Traces from a request to the delivery of its events: stored in the log, returned to the client, and exported to a
/// collector.
@Suite(.timed) struct TracingTests {
    private static let traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let sent = "00-\(traceId)-00f067aa0ba902b7-01"
    private static let unsampled = "00-\(traceId)-00f067aa0ba902b7-00"

    private static func settings(_ collector: Collector, _ others: [String: String] = [:]) -> [String: String] {
        ["tracesEndpoint": collector.url, "heartbeatSeconds": "1"].merging(others) { $1 }
    }

    private static let visit: JSON = [
        "id": "e1", "type": "visit.created", "userId": "ada",
        "data": ["visitId": "v1", "visitType": "Check-up", "hospital": "St. Mary", "status": "confirmed"],
    ]

    private func post(_ service: TestService, _ traceparent: String?) async throws -> ServiceAnswer {
        let headers = traceparent.map { ["traceparent": $0] } ?? [:]
        return try await service.call("POST", "/v1/events", as: .service(), Self.visit, headers: headers)
    }

    /// Opens a stream whose raw bytes the test reads.
    private func openRaw(_ service: TestService, as user: String, behind id: String? = nil) throws -> RawConnection {
        let raw = try RawConnection(service.port)
        let behind = id.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        try raw.send(
            "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\(behind)"
                + "Authorization: Bearer \(service.token(for: .user(user)))\r\n\r\n")
        return raw
    }

    private func tracedRows(_ service: TestService) throws -> Int {
        try service.app.store.read {
            try $0.integer(
                "SELECT count(*) FROM \(EventLog.events, unscoped: EventLog.bookkeeping) WHERE trace IS NOT NULL")
        } ?? 0
    }

    // MARK: From the request to the stream

    @Test func trace_reachesFromTheRequestToTheStream() async throws {
        let collector = try Collector()
        let service = try TestService.start(Self.settings(collector))
        let stream = try await service.listen(as: .user("ada"))
        let raw = try openRaw(service, as: "ada")
        _ = try raw.read(until: "stream:ready")
        let answer = try await post(service, Self.sent)
        #expect(answer.status == 201)
        let returned = try #require(answer.headers["traceparent"])
        try await stream.next("badges:update")
        let spans = try await collector.spans(of: Self.traceId) { spans in
            spans.contains { $0.name == "deliver badges:update" } && spans.contains { $0.name == "POST /v1/events" }
        }
        let request = try #require(spans.first { $0.name == "POST /v1/events" })
        #expect(request.parent == "00f067aa0ba902b7")
        #expect(returned == "00-\(Self.traceId)-\(request.id)-01")
        #expect(request.attribute("http.response.status_code") == "201")
        #expect(request.attribute("http.route") == "/v1/events")
        #expect(request.attribute("bellhop.request.id") == answer.headers["x-request-id"])
        let transaction = try #require(spans.first { $0.name == "transaction" })
        #expect(transaction.parent == request.id)
        let deliveries = spans.filter { $0.name.hasPrefix("deliver ") }
        #expect(Set(deliveries.map(\.name)) == ["deliver notification:created", "deliver badges:update"])
        #expect(deliveries.allSatisfy { $0.parent == transaction.id })
        #expect(Set(spans.map(\.id)).count == spans.count)
        let streams = deliveries.filter { $0.name == "deliver badges:update" }
            .compactMap { $0.attribute("bellhop.streams").flatMap { Int($0) } }
        #expect(streams.reduce(0, +) == 2, "each shard reports its own streams")
        // On the stream, the trace is a comment before its event, and clients ignore comments.
        let comment = ": traceparent=00-\(Self.traceId)-\(transaction.id)-01\n"
        #expect(try raw.read(until: "event: badges:update\n").contains(comment))
        // Resumed streams carry it too.
        let resumed = try openRaw(service, as: "ada", behind: stream.ready.id)
        #expect(try resumed.read(until: "event: badges:update\n").contains(comment))
    }

    @Test func tracedChangeOfARow_isTracedToItsSubscribers() async throws {
        let collector = try Collector()
        let service = try TestService.start(Self.settings(collector, ["tables": "todo"]))
        let stream = try await service.listen(as: .user("ada"))
        try await stream.subscribe([["id": "all", "schema": "public", "table": "todos", "event": "*"]])
        let change: JSON = [
            "type": "INSERT", "table": "todos", "schema": "public",
            "record": ["id": "t1", "user_id": "ada", "title": "x", "done": false],
        ]
        let answer = try await service.call(
            "POST", "/v1/changes", as: .service(), change, headers: ["traceparent": Self.sent])
        #expect(answer.status == 202)
        try await stream.next("table:change")
        let spans = try await collector.spans(of: Self.traceId) { spans in
            spans.contains { $0.name == "deliver table:change" } && spans.contains { $0.name == "POST /v1/changes" }
        }
        let transaction = try #require(spans.first { $0.name == "transaction" })
        #expect(spans.first { $0.name == "deliver table:change" }?.parent == transaction.id)
        let resumed = try openRaw(service, as: "ada", behind: stream.ready.id)
        #expect(try !resumed.read(until: "stream:ready").contains("traceparent="))
        #expect(try tracedRows(service) == 1)
    }

    @Test func requestsOfSeveralTraces_doNotShareATransaction() async throws {
        let collector = try Collector()
        let service = try TestService.start(Self.settings(collector))
        let ids = (0..<20).map { number in
            let digits = String(number + 1, radix: 16)
            return String(repeating: "0", count: 32 - digits.count) + digits
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in ids {
                group.addTask {
                    let answer = try await service.call(
                        "POST", "/v1/notifications", as: .service(),
                        [
                            "userId": .string(id), "category": "request", "priority": "NORMAL", "title": "x",
                            "message": "y",
                        ], headers: ["traceparent": "00-\(id)-00f067aa0ba902b7-01"])
                    #expect(answer.status == 201, "\(answer.problem)")
                }
            }
            try await group.waitForAll()
        }
        let rows = try service.app.store.read {
            try $0.rows("SELECT audience, trace FROM \(EventLog.events, unscoped: EventLog.bookkeeping)") {
                (audience: try $0.text(0), trace: try $0.optionalText(1))
            }
        }
        for id in ids {
            let own = rows.filter { $0.audience == "user:\(id)" }
            #expect(!own.isEmpty && own.allSatisfy { $0.trace?.hasPrefix("00-\(id)-") == true })
        }
    }

    @Test func otherReplica_continuesTheTrace() async throws {
        let collector = try Collector()
        let (a, b) = try TestService.startReplicas(Self.settings(collector))
        let stream = try await b.listen(as: .user("ada"))
        #expect(try await post(a, Self.sent).status == 201)
        try await stream.next("badges:update")
        let spans = try await collector.spans(of: Self.traceId) { spans in
            spans.contains { $0.name == "deliver badges:update" } && spans.contains { $0.name == "transaction" }
        }
        let transaction = try #require(spans.first { $0.name == "transaction" })
        #expect(spans.filter { $0.name.hasPrefix("deliver ") }.allSatisfy { $0.parent == transaction.id })
    }

    // MARK: Unrecorded traces

    @Test func tracing_isOff_withoutACollector() async throws {
        let service = try TestService.start()
        let answer = try await post(service, Self.sent)
        #expect(answer.status == 201)
        #expect(answer.headers["traceparent"] == nil)
        #expect(try tracedRows(service) == 0)
        #expect(try await !service.call("GET", "/metrics", as: .admin).text.contains("bellhop_spans_"))
    }

    @Test func unsampledTrace_isGivenBack_andNotRecorded() async throws {
        let collector = try Collector()
        let service = try TestService.start(Self.settings(collector))
        let answer = try await post(service, Self.unsampled)
        #expect(answer.headers["traceparent"]?.hasPrefix("00-\(Self.traceId)-") == true)
        #expect(answer.headers["traceparent"]?.hasSuffix("-00") == true)
        #expect(try tracedRows(service) == 0)
        // A later, recorded request has been exported, and the unsampled trace has not.
        let recorded = try await service.call("GET", "/v1/badges", as: .user("ada"))
        let id = try #require(recorded.headers["traceparent"]).split(separator: "-")[1]
        _ = try await collector.spans(of: String(id)) { !$0.isEmpty }
        #expect(collector.spans.allSatisfy { $0.traceId != Self.traceId })
    }

    @Test func requestWithoutATrace_beginsOne_orNot() async throws {
        let collector = try Collector()
        let all = try TestService.start(Self.settings(collector))
        let begun = try #require(try await post(all, "00-none").headers["traceparent"])
        let context = try #require(TraceContext(begun.utf8))
        #expect(context.isSampled)
        let spans = try await collector.spans(of: context.traceId) { $0.contains { $0.name == "POST /v1/events" } }
        #expect(spans.first { $0.name == "POST /v1/events" }?.parent == nil)
        let none = try TestService.start(Self.settings(collector, ["tracesPercent": "0"]))
        #expect(try await post(none, nil).headers["traceparent"]?.hasSuffix("-00") == true)
        #expect(try await post(none, Self.sent).headers["traceparent"]?.hasSuffix("-01") == true)
    }

    /// Attack: an anonymous client sends `traceparent` with the flag of a recorded trace. Harm: its requests fill the
    /// collector.
    @Test func recordedTrace_countsOfBackendsAlone() async throws {
        let collector = try Collector()
        let service = try TestService.start(
            Self.settings(collector, ["tracesPercent": "0", "changesSecret": "a secret of the feed", "tables": "todo"]))
        func flag(_ identity: TestService.Identity?, _ path: String) async throws -> String? {
            let answer = try await service.call("GET", path, as: identity, headers: ["traceparent": Self.sent])
            let returned = answer.headers["traceparent"]
            #expect(returned?.hasPrefix("00-\(Self.traceId)-") == true, "\(path)")
            return returned.map { String($0.suffix(2)) }
        }
        #expect(try await flag(nil, "/v1/config") == "00")
        #expect(try await flag(nil, "/v1/badges") == "00")
        #expect(try await flag(.user("ada"), "/v1/badges") == "00")
        #expect(try await flag(.admin, "/v1/badges") == "00")
        #expect(try await flag(.service(), "/v1/me") == "01")
        let fed = try await service.call(
            "POST", "/v1/changes", [:], headers: ["traceparent": Self.sent, "X-Webhook-Secret": "a secret of the feed"])
        #expect(fed.headers["traceparent"]?.hasSuffix("-01") == true)
    }

    // MARK: The collector

    @Test func collector_isSentWhatItAsksFor() async throws {
        let collector = try Collector()
        let service = try TestService.start(
            Self.settings(collector, ["tracesHeaders": "Authorization=Bearer%20abc, x-team=a"]))
        _ = try await service.client("ada").getBadges()
        let delivery = try #require(collector.receiver.deliveries.wait(for: 1).first)
        #expect(delivery.line == "POST /v1/traces HTTP/1.1")
        #expect(delivery.headers["content-type"] == "application/json")
        #expect(delivery.headers["authorization"] == "Bearer abc")
        #expect(delivery.headers["x-team"] == "a")
        let resource = try JSON(parsing: Data(delivery.body))["resourceSpans"].array?.first?["resource"]
        #expect(resource?["attributes"].array?.first?["value"]["stringValue"] == "bellhop")
    }

    @Test func spans_areSentAgain_whereTheCollectorSaysSo() async throws {
        let collector = try Collector { $0 == 1 ? .status(503) : .status(200) }
        let service = try TestService.start(Self.settings(collector, ["tracesPercent": "0"]))
        #expect(try await post(service, Self.sent).status == 201)
        let deliveries = collector.receiver.deliveries.wait(for: 2)
        #expect(deliveries.count == 2 && deliveries[0].body == deliveries[1].body)
        try await eventually("the spans are counted once") {
            try await service.call("GET", "/metrics", as: .admin).text.contains("bellhop_spans_exported_total 2\n")
        }
    }

    @Test func refusedSpans_areDroppedAndCounted() async throws {
        let collector = try Collector { _ in .status(400) }
        let service = try TestService.start(Self.settings(collector, ["tracesPercent": "0"]))
        #expect(try await post(service, Self.sent).status == 201)
        try await eventually("the dropped spans are counted") {
            try await service.call("GET", "/metrics", as: .admin).text
                .contains("bellhop_spans_dropped_total{reason=\"collector\"} 2\n")
        }
    }

    /// Requests do not wait for the collector, and the queue of spans is bounded.
    @Test func hangingCollector_delaysNoRequest() async throws {
        let collector = try Collector { _ in .never }
        let service = try TestService.start(Self.settings(collector))
        let raw = try RawConnection(service.port)
        let request =
            "GET /v1/badges HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(service.token(for: .user("ada")))\r\n\r\n"
        for _ in 0...(TraceLimits.waitingMax + TraceLimits.batchMax) {
            try raw.send(request)
            #expect(try raw.readAnswer().status == 200)
        }
        let metrics = try await service.call("GET", "/metrics", as: .admin).text
        #expect(metrics.contains("bellhop_spans_dropped_total{reason=\"overflow\"} "))
        #expect(!metrics.contains("bellhop_spans_dropped_total{reason=\"overflow\"} 0\n"))
        collector.receiver.stop()
    }
}
