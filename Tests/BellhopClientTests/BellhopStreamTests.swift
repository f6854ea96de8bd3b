import Foundation
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import BellhopClient

/// The stream over real sockets, against a server that does what its script says. Waits between tries are noted, not
/// slept.
@Suite(.timeLimit(.minutes(2)))
struct BellhopStreamTests {
    private typealias Notes = Collected<BellhopStream.ConnectionChange>

    private func options(_ notes: Notes, lastEventID: String? = nil) -> BellhopStream.Options {
        var options = BellhopStream.Options(lastEventID: lastEventID)
        options.jitter = { 0.5 }
        options.sleep = { _ in try Task.checkCancellation() }
        options.onConnection = { notes.append($0) }
        return options
    }

    private func client(_ server: ScriptedServer) -> BellhopClient {
        BellhopClient(baseURL: server.baseURL, token: .fixed("t"))
    }

    private func collect(_ stream: BellhopStream) async throws -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for try await event in stream { events.append(event) }
        return events
    }

    @Test func lostConnection_isResumedAfterTheLastEvent_until204() async throws {
        let server = try ScriptedServer([
            .stream(["retry: 20\n\nid: e-1\nda", "ta: a\n\nid: e-2\ndata: b\n\nid: e-3\ndata: unfin"]),
            .stream(["id: e-3\ndata: c\n\n"]), .answer("204 No Content"),
        ])
        let notes = Notes()
        let events = try await collect(client(server).events(options(notes)))
        #expect(events.map(\.data) == ["a", "b", "c"])
        #expect(events.map(\.id) == ["e-1", "e-2", "e-3"])
        #expect(notes.waits == [20, 20])
        let requests = server.requests
        #expect(!requests[0].contains("Last-Event-Id"))
        #expect(requests[1].contains("Last-Event-Id: e-2\r\n"))
        #expect(requests[2].contains("Last-Event-Id: e-3\r\n"))
        #expect(requests.allSatisfy { $0.contains("Authorization: Bearer t\r\n") })
    }

    /// CUT N-1: 503 with Retry-After is tried again, not before the time it names.
    @Test func temporaryRefusal_isTriedAgain_afterTheTimeItNames() async throws {
        let server = try ScriptedServer([
            .answer("503 Service Unavailable", headers: "Retry-After: 7\r\n"),
            .answer("429 Too Many Requests"), .stream(["data: a\n\n"]), .answer("204 No Content"),
        ])
        let notes = Notes()
        let events = try await collect(client(server).events(options(notes)))
        #expect(events.map(\.data) == ["a"])
        #expect(notes.waits == [7000, 2000, 1000])
    }

    @Test func closingEvent_setsTheWait() async throws {
        let server = try ScriptedServer([
            .stream(["event: stream:closing\ndata: {\"reason\":\"shutdown\",\"retryAfterMs\":4321}\n\n"]),
            .answer("204 No Content"),
        ])
        let notes = Notes()
        let events = try await collect(client(server).events(options(notes)))
        #expect(events.map(\.name) == ["stream:closing"])
        #expect(notes.waits == [4321])
    }

    @Test func refusal_thatCannotChange_isThrown_withItsProblem() async throws {
        let body = #"{"code":"invalid_token","detail":"The token has expired."}"#
        let server = try ScriptedServer([.answer("401 Unauthorized", body: body)])
        let error = await #expect(throws: StreamFailure.self) {
            _ = try await collect(client(server).events(options(Notes())))
        }
        #expect("\(try #require(error))".contains("401 invalid_token: The token has expired."))
    }

    @Test func wrongMediaType_isThrown() async throws {
        let server = try ScriptedServer([.answer("200 OK", headers: "Content-Type: text/html\r\n", body: "hello")])
        await #expect(throws: StreamFailure.self) { _ = try await collect(client(server).events(options(Notes()))) }
    }

    /// CUT N-1: at most ten tries in a row.
    @Test func absentServer_isGivenUpAfterTenTries() async throws {
        let server = try ScriptedServer([])
        server.stop()
        let notes = Notes()
        await #expect(throws: StreamFailure.self) { _ = try await collect(client(server).events(options(notes))) }
        #expect(notes.waits.count == 10)
    }

    /// CUT N-2: silence means dead, at connecting and later.
    @Test func silence_isTakenForALostConnection() async throws {
        let server = try ScriptedServer([
            .init(pieces: [], staysOpen: true), .stream(["id: e-1\ndata: a\n\n"], staysOpen: true),
            .answer("204 No Content"),
        ])
        let notes = Notes()
        var options = options(notes)
        options.connectTimeout = .milliseconds(300)
        options.silenceTimeout = .milliseconds(300)
        let events = try await collect(client(server).events(options))
        #expect(events.map(\.data) == ["a"])
        #expect(notes.waits.count == 2)
        #expect(server.requests[2].contains("Last-Event-Id: e-1\r\n"))
    }

    /// A reader that falls behind costs a connection, never an event and never memory without end.
    @Test func slowReader_losesTheConnection_notTheEvents() async throws {
        let first = (1...400).map { "id: e-\($0)\ndata: \(String(repeating: "x", count: 200))\n\n" }
        let server = try ScriptedServer([
            .stream(first), .stream(["id: e-1000\ndata: end\n\n"]), .answer("204 No Content"),
        ])
        var options = options(Notes())
        options.bufferBytesMax = 4096
        let ids = try await collect(client(server).events(options)).map(\.id)
        let beforeEnd = ids.dropLast()
        #expect(!beforeEnd.isEmpty)
        #expect(beforeEnd.elementsEqual((1...max(1, beforeEnd.count)).map { "e-\($0)" }))
        #expect(ids.last == "e-1000")
        #expect(server.requests[1].contains("Last-Event-Id: e-\(beforeEnd.count)\r\n"))
    }

    @Test func bufferIsBounded_andContainsWhatCameFirst() async throws {
        let sent = (0..<200).map { "data: \($0) \(String(repeating: "x", count: 1000))\n\n" }
        let server = try ScriptedServer([.stream(sent, staysOpen: true)])
        let request = URLRequest(url: try #require(URL(string: server.baseURL)))
        let exchange = StreamingExchange(request, bufferBytesMax: 1)
        while !exchange.hasOverflowed { await Task.yield() }
        var received = Data()
        let error = await #expect(throws: ExchangeFailure.self) {
            while true {
                if case .bytes(let bytes) = try await exchange.next(within: .seconds(60)) { received += bytes }
            }
        }
        if case .overflow? = error {} else { Issue.record("\(String(describing: error))") }
        #expect(!received.isEmpty)
        #expect(Data(sent.joined().utf8).starts(with: received))
    }

    @Test func cancelledReader_endsAtOnce_andClosesTheConnection() async throws {
        let server = try ScriptedServer([.stream(["data: a\n\n"], staysOpen: true)])
        let (started, start) = AsyncStream<Void>.makeStream()
        let stream = client(server).events(options(Notes()))
        let reader = Task {
            for try await _ in stream { start.yield() }
        }
        for await _ in started { break }
        reader.cancel()
        try await reader.value
    }

    /// CUT N-3: the network is back → an immediate try.
    @Test func signal_endsTheWait() async throws {
        let server = try ScriptedServer([.answer("503 Service Unavailable"), .answer("204 No Content")])
        let signal = ReconnectSignal()
        var options = BellhopStream.Options()
        options.wake = signal
        options.sleep = { _ in try await Task.sleep(for: .seconds(3600)) }
        options.onConnection = { change in
            guard case .waiting = change else { return }
            // The wait begins after this call returns: wake it until the stream is over.
            Task {
                while !Task.isCancelled, server.requests.count < 2 {
                    signal.reconnectNow()
                    await Task.yield()
                }
            }
        }
        #expect(try await collect(client(server).events(options)).isEmpty)
        #expect(server.requests.count == 2)
    }

    @Test func topics_areEscapedOnce() async throws {
        let server = try ScriptedServer([.answer("204 No Content")])
        _ = try await collect(client(server).events(topics: ["queue:s 1", "dj:a&b"]))
        #expect(server.requests[0].hasPrefix("GET /v1/stream?topics=queue:s%201,dj:a%26b HTTP/1.1"))
    }
}

@Suite(.timeLimit(.minutes(2)))
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

    /// VIS NFR-2.3: an offline write is stored, and sent with the same key.
    @Test func offlineWrites_areSentInOrder_withTheirKeys() async throws {
        let server = try ScriptedServer([
            .answer("503 Service Unavailable", headers: "Connection: close\r\n"),
            .answer("201 Created", headers: "Connection: close\r\n"),
            .answer("409 Conflict", headers: "Connection: close\r\n"),
        ])
        let queue = OfflineQueue(client: BellhopClient(baseURL: server.baseURL))
        #expect(await queue.add("POST", "/v1/a", [:]))
        #expect(await queue.add("POST", "/v1/b", [:]))
        let first = await queue.flush()
        #expect(first.answered.isEmpty)
        #expect(first.waitingCount == 2)
        let second = await queue.flush()
        #expect(second.answered.map(\.answer.status) == [201, 409])
        #expect(second.waitingCount == 0)
        let keys = server.requests.compactMap { head in
            head.split(separator: "\r\n").first { $0.hasPrefix("Idempotency-Key:") }
        }
        try #require(keys.count == 3)
        #expect(keys[0] == keys[1])
        #expect(keys[1] != keys[2])
    }
}

extension Collected<BellhopStream.ConnectionChange> {
    fileprivate var waits: [Int] {
        all.compactMap { if case .waiting(_, let milliseconds, _) = $0 { milliseconds } else { nil } }
    }
}
