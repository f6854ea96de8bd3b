import Foundation
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import BellhopCalls
@testable import BellhopClient

/// The stream over real sockets, against a scripted server. The clock stands still, except that a wait for the next
/// attempt ends at once.
@Suite(.timed, .timeLimit(.minutes(10)))
struct BellhopStreamTests {
    private let clock = StandingClock()
    private let waits = Collected<Int>()
    private let statuses = Collected<BellhopStream.Connection.Status>()

    private static let ready = ready("st-1")

    private static func ready(_ id: String, topics: String = "[]") -> String {
        "event: stream:ready\ndata: {\"streamId\":\"\(id)\",\"topics\":\(topics)}\n\n"
    }

    private func options(lastEventID: String? = nil, isWaitSkipped: Bool = true) -> BellhopStream.Options {
        var options = BellhopStream.Options(lastEventID: lastEventID)
        options.clock = clock.clock
        options.onConnection = { [clock, waits, statuses] connection in
            statuses.append(connection.status)
            guard connection.status == .waiting, let at = connection.retryAt else { return }
            let moment = Int((at.timeIntervalSince1970 * 1000).rounded())
            waits.append(moment - clock.now)
            if isWaitSkipped { clock.advance(to: moment) }
        }
        return options
    }

    private func client(_ server: ScriptedServer) -> BellhopClient {
        BellhopClient(baseURL: server.baseURL, token: .fixed("t"))
    }

    private func collect(_ stream: BellhopStream) async throws -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for try await event in stream where event.name != "stream:ready" { events.append(event) }
        return events
    }

    @Test func lostConnection_isResumedAfterTheLastEvent_until204() async throws {
        let server = try ScriptedServer([
            .stream([Self.ready, "retry: 20\n\nid: e-1\nda", "ta: a\n\nid: e-2\ndata: b\n\nid: e-3\ndata: unfin"]),
            .stream([Self.ready, "id: e-3\ndata: c\n\n"]), .answer("204 No Content"),
        ])
        let events = try await collect(client(server).events(options()))
        #expect(events.map(\.data) == ["a", "b", "c"])
        #expect(events.map(\.id) == ["e-1", "e-2", "e-3"])
        #expect(waits.all == [20, 40])
        let requests = server.requests
        #expect(!requests[0].contains("Last-Event-Id"))
        #expect(requests[1].contains("Last-Event-Id: e-2\r\n"))
        #expect(requests[2].contains("Last-Event-Id: e-3\r\n"))
        #expect(requests.allSatisfy { $0.contains("Authorization: Bearer t\r\n") })
    }

    /// R-CUT-N-1: 503 with Retry-After is retried, but not before that time.
    @Test func temporaryRefusal_isRetried_afterItsRetryAfter() async throws {
        let server = try ScriptedServer([
            .answer("503 Service Unavailable", headers: "Retry-After: 7\r\n"),
            .answer("429 Too Many Requests"), .stream([Self.ready, "data: a\n\n"]), .answer("204 No Content"),
        ])
        let events = try await collect(client(server).events(options()))
        #expect(events.map(\.data) == ["a"])
        #expect(waits.all == [7000, 2000, 4000])
    }

    @Test func closingEvent_setsTheWait() async throws {
        let server = try ScriptedServer([
            .stream([Self.ready, "event: stream:closing\ndata: {\"reason\":\"shutdown\",\"retryAfterMs\":4321}\n\n"]),
            .answer("204 No Content"),
        ])
        let events = try await collect(client(server).events(options()))
        #expect(events.map(\.name) == ["stream:closing"])
        #expect(waits.all == [4321])
    }

    /// A fixed token that was refused once is not retried.
    @Test func refusal_thatCannotChange_isThrown_withItsProblem() async throws {
        let body = #"{"code":"invalid_token","detail":"The token has expired."}"#
        for status in ["401 Unauthorized", "403 Forbidden"] {
            let server = try ScriptedServer([.answer(status, body: body)])
            let error = await #expect(throws: StreamFailure.self) {
                _ = try await collect(client(server).events(options()))
            }
            #expect("\(try #require(error))".contains("invalid_token: The token has expired."))
            #expect(server.requests.count == 1)
        }
    }

    /// R-SCH-NFR-004: after a 401, the app is asked for another token at once, and only once.
    @Test func refusedToken_isReplacedAtOnce() async throws {
        let server = try ScriptedServer([
            .answer("401 Unauthorized"), .stream([Self.ready, "data: a\n\n"]), .answer("204 No Content"),
        ])
        let asked = Collected<Bool>()
        let provider = BellhopClient.TokenProvider(renewing: { needsNew in
            asked.append(needsNew)
            return needsNew ? "new" : "old"
        })
        let events = try await collect(BellhopClient(baseURL: server.baseURL, token: provider).events(options()))
        #expect(events.map(\.data) == ["a"])
        #expect(asked.all == [false, true])
        #expect(waits.all == [1000])
        #expect(server.requests[0].contains("Bearer old\r\n"))
        #expect(server.requests[1].contains("Bearer new\r\n"))
    }

    /// R-SCH-FR-002: the stream continues with the new token, on the same connection.
    @Test func expiringStream_isRenewedInPlace() async throws {
        let server = try ScriptedServer([
            .stream(
                [Self.ready, "event: stream:expiring\ndata: {\"expiresAt\":\"2026-01-10T09:00:30.000Z\"}\n\n"],
                staysOpen: true),
            .answer("200 OK", headers: "Connection: close\r\n", body: "{}"),
        ])
        let provider = BellhopClient.TokenProvider(renewing: { $0 ? "new" : "old" })
        let stream = BellhopClient(baseURL: server.baseURL, token: provider).events(options())
        let reader = Task { for try await _ in stream {} }
        try await eventually("the token is renewed") { server.requests.count == 2 }
        reader.cancel()
        try await reader.value
        #expect(server.requests[1].hasPrefix("PUT /v1/streams/st-1/token HTTP/1.1\r\n"))
        #expect(server.requests[1].hasSuffix(#"{"token":"new"}"#))
    }

    /// An answer from another server in between, such as a captive portal of a hotel, is temporary.
    @Test func wrongMediaType_isTriedAgain() async throws {
        let server = try ScriptedServer([
            .answer("200 OK", headers: "Content-Type: text/html\r\n", body: "hello"),
            .stream([Self.ready, "data: a\n\n"]), .answer("204 No Content"),
        ])
        #expect(try await collect(client(server).events(options())).map(\.data) == ["a"])
    }

    /// R-CUT-N-1: at most ten attempts in a row.
    @Test func absentServer_failsAfterTenTries() async throws {
        let server = try ScriptedServer([])
        server.stop()
        await #expect(throws: StreamFailure.self) { _ = try await collect(client(server).events(options())) }
        #expect(waits.all == [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000, 30000])
    }

    /// An app can disable retries.
    @Test func zeroRetries_makeOneConnection() async throws {
        let server = try ScriptedServer([.stream([Self.ready, "data: a\n\n"])])
        var options = options()
        options.limits.triesMax = 0
        await #expect(throws: StreamFailure.self) { _ = try await collect(client(server).events(options)) }
        #expect(server.requests.count == 1)
    }

    /// R-CUT-N-2: silence means a dead connection, while connecting and later.
    @Test func silence_countsAsALostConnection() async throws {
        let server = try ScriptedServer([
            .init(pieces: [], staysOpen: true), .stream([Self.ready, "id: e-1\ndata: a\n\n"], staysOpen: true),
            .answer("204 No Content"),
        ])
        let stream = client(server).events(options())
        let receivedEvents = Collected<String>()
        let reader = Task {
            for try await event in stream { receivedEvents.append(event.data) }
        }
        try await eventually("the first connection is open") { server.requests.count == 1 }
        clock.advance(milliseconds: 10_000)
        try await eventually("the second connection has sent its events") { receivedEvents.all.last == "a" }
        clock.advance(milliseconds: 60_000)
        try await reader.value
        #expect(server.requests.count == 3)
        #expect(server.requests[2].contains("Last-Event-Id: e-1\r\n"))
    }

    /// A reader that falls behind loses its connection, but no event, and the memory stays bounded.
    @Test func slowReader_losesTheConnection_notTheEvents() async throws {
        let first = (1...400).map { "id: e-\($0)\ndata: \(String(repeating: "x", count: 200))\n\n" }
        let server = try ScriptedServer([
            .stream([Self.ready + first[0]] + first.dropFirst()), .stream([Self.ready, "id: e-1000\ndata: end\n\n"]),
            .answer("204 No Content"),
        ])
        var options = options()
        options.bufferBytesMax = 4096
        let ids = try await collect(client(server).events(options)).map(\.id)
        let beforeEnd = ids.dropLast()
        #expect(!beforeEnd.isEmpty)
        #expect(beforeEnd.elementsEqual((1...max(1, beforeEnd.count)).map { "e-\($0)" }))
        #expect(ids.last == "e-1000")
        #expect(server.requests[1].contains("Last-Event-Id: e-\(beforeEnd.count)\r\n"))
    }

    @Test func buffer_isBounded_andKeepsTheFirstBytes() async throws {
        let sent = (0..<200).map { "data: \($0) \(String(repeating: "x", count: 1000))\n\n" }
        let server = try ScriptedServer([.stream(sent, staysOpen: true)])
        let request = URLRequest(url: try #require(URL(string: server.baseURL)))
        let exchange = StreamingExchange(request, bufferBytesMax: 1)
        while !exchange.hasOverflowed { await Task.yield() }
        var received = Data()
        let error = await #expect(throws: ExchangeFailure.self) {
            while true {
                if case .bytes(let bytes) = try await exchange.next() { received += bytes }
            }
        }
        if case .overflow? = error {} else { Issue.record("\(String(describing: error))") }
        #expect(!received.isEmpty)
        #expect(Data(sent.joined().utf8).starts(with: received))
    }

    @Test func cancelledReader_endsAtOnce_andClosesTheConnection() async throws {
        let server = try ScriptedServer([.stream([Self.ready, "data: a\n\n"], staysOpen: true)])
        let (started, start) = AsyncStream<Void>.makeStream()
        let stream = client(server).events(options())
        let reader = Task {
            for try await _ in stream { start.yield() }
        }
        for await _ in started { break }
        reader.cancel()
        try await reader.value
    }

    /// R-CUT-N-3: when the network returns, the stream retries immediately, a second after the last attempt.
    @Test func returningNetwork_endsTheWait() async throws {
        let server = try ScriptedServer([
            .answer("503 Service Unavailable"), .answer("503 Service Unavailable"), .answer("204 No Content"),
        ])
        let network = ManualNetwork()
        var options = options(isWaitSkipped: false)
        options.network = network
        let stream = client(server).events(options)
        let reader = Task { try await collect(stream) }
        try await eventually("the stream waits") { waits.all.count == 1 }
        clock.advance(milliseconds: 1000)
        try await eventually("the stream waits again") { waits.all.count == 2 }
        #expect(waits.all == [1000, 2000])
        clock.advance(milliseconds: 1000)
        network.tell(isOnline: true, isChanged: true)
        #expect(try await reader.value.isEmpty)
        #expect(server.requests.count == 3)
    }

    @Test func topics_areEscapedOnce() async throws {
        let server = try ScriptedServer([.answer("204 No Content")])
        _ = try await collect(client(server).events(topics: ["queue:s 1", "dj:a&b"]))
        #expect(server.requests[0].hasPrefix("GET /v1/stream?topics=queue:s%201,dj:a%26b HTTP/1.1"))
    }
}

@Suite(.timed, .timeLimit(.minutes(10)))
struct CallTests {
    @Test func answer_carriesStatusHeadersAndJSON() async throws {
        let server = try ScriptedServer([
            .answer(
                "201 Created", headers: "ETag: \"1\"\r\nContent-Type: application/json\r\n", body: #"{"a":[1,true]}"#)
        ])
        let client = BellhopClient(baseURL: server.baseURL, token: .fixed("secret"))
        let answer = try await client.post("/v1/bookings", ["shopId": "s1", "durationMinutes": 30])
        #expect(answer.status == 201)
        #expect(answer[header: "etag"] == "\"1\"")
        #expect(answer.json["a"][0].int == 1)
        #expect(answer.json["a"][1].bool == true)
        #expect(answer.json["b"]["c"].isNull)
        let request = server.requests[0]
        #expect(request.hasPrefix("POST /v1/bookings HTTP/1.1\r\n"))
        #expect(request.contains("Content-Type: application/json\r\n"))
        #expect(request.hasSuffix(#"{"durationMinutes":30,"shopId":"s1"}"#))
    }

    @Test func absentServer_isATransportFailure() async throws {
        let server = try ScriptedServer([])
        server.stop()
        await #expect(throws: BellhopClient.TransportFailure.self) {
            _ = try await BellhopClient(baseURL: server.baseURL).get("/healthz")
        }
    }

    @Test func retryAfter_isReadAsSecondsOrDate() {
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        #expect(ServiceAnswer.retryAfterMilliseconds("3", now: now) == 3000)
        #expect(ServiceAnswer.retryAfterMilliseconds("Tue, 14 Nov 2023 22:13:30 GMT", now: now) == 10_000)
        #expect(ServiceAnswer.retryAfterMilliseconds("soon", now: now) == nil)
        #expect(ServiceAnswer.retryAfterMilliseconds("-1", now: now) == nil)
    }
}
