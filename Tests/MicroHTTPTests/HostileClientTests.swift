import Foundation
import TestSupport
import Testing

@testable import MicroHTTP

/// Attacks that need no token.
@Suite(.timed, .timeLimit(.minutes(10))) struct HostileClientTests {
    @Test func malformedRequests_areReleasedWithTheirConnection() async throws {
        // libmicrohttpd misses the end of a connection that arrives together with its last bytes, so the timeout must
        // close it.
        let service = try EchoServer {
            $0.connectionTimeoutSeconds = 1
            $0.clock = ServerTime().clock
        }
        for shape in MalformedRequests.all {
            let raw = try RawConnection(service.port)
            // Sends further bytes too, because some requests are dropped only when more data follows the malformed
            // part. The connection may be closed by then.
            try? raw.send(shape)
            try? raw.send(MalformedRequests.sound)
            raw.finishSending()
            _ = try? raw.read()
        }
        try await eventually("no request is open") { service.server.requestsOpen == 0 }
        let next = try RawConnection(service.port)
        try next.send("GET /hello?name=alive HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try next.read(until: "hello alive")
        // A leaked request would block the shutdown until its deadline, which never comes because the clock stands
        // still.
        service.server.shutdown(deadlineSeconds: 600)
    }

    @Test func queriesOfManyItems_areAnsweredLikeOthers() throws {
        let service = try EchoServer()
        let raw = try RawConnection(service.port)
        try raw.send("GET /hello?name=a\(String(repeating: "&b", count: 1000)) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "hello a").hasPrefix("HTTP/1.1 200"))
    }

    // MARK: Framing

    /// A chunked body whose framing lines the server could not check must be the last one on its connection.
    @Test func chunksWithUncheckedFraming_endTheirConnection() throws {
        let service = try EchoServer()
        let raw = try RawConnection(service.port)
        try raw.send(
            "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
        _ = try raw.read(until: "100 Continue\r\n\r\n")
        try raw.send("3\r\nabc\r\n0\r\nX-Trailer: a\r\n\r\n" + MalformedRequests.sound)
        let rest = try raw.read()
        #expect(rest.hasPrefix("HTTP/1.1 200") && rest.contains("Connection: close") && rest.hasSuffix("abc"))
    }

    // MARK: Slow senders

    @Test func silentConnections_doNotKeepOthersOut() async throws {
        let time = ServerTime()
        let service = try EchoServer {
            $0.clock = time.clock
            $0.connectionsMax = 16
            $0.connectionTimeoutSeconds = 600
            $0.senderSeconds = 600
        }
        let silent = try (0..<100).map { _ in try RawConnection(service.port) }
        let raw = try RawConnection(service.port)
        try raw.send("GET /hello?name=b HTTP/1.1\r\nHost: x\r\n\r\n")
        try await eventually("the request is answered") {
            await service.server.pass(time, milliseconds: 500)
            return raw.hasAnswer(within: 0)
        }
        #expect(try raw.read(until: "hello b").hasPrefix("HTTP/1.1 200"))
        // A crowded server closes silent connections long before their usual timeout.
        #expect(time.passed < .seconds(600))
        withExtendedLifetime(silent) {}
    }

    /// Browsers open connections in advance, and would take an answer there for the answer to the next request.
    @Test func silentConnection_isClosedWithoutAnAnswer() async throws {
        let time = ServerTime()
        let service = try EchoServer { $0.clock = time.clock }
        let raw = try RawConnection(service.port)
        try await eventually("the connection is closed") {
            await service.server.pass(time, milliseconds: 1000)
            return raw.hasAnswer(within: 0)
        }
        #expect(try raw.read() == "")
    }

    @Test func slowSenders_doNotKeepOthersOut() async throws {
        let time = ServerTime()
        let service = try EchoServer {
            $0.clock = time.clock
            $0.connectionsMax = 64
            $0.connectionTimeoutSeconds = 600
        }
        let dripping = try (0..<100).map { _ in try RawConnection(service.port) }
        for connection in dripping { try connection.send("GET /hello HTTP/1.1\r\nHost: x\r\nX-Name: ") }
        let raw = try RawConnection(service.port)
        try raw.send("GET /hello?name=b HTTP/1.1\r\nHost: x\r\n\r\n")
        try await eventually("the request is answered") {
            // Connections that were closed can send no more.
            for connection in dripping { try? connection.send("a") }
            await service.server.pass(time, milliseconds: 100)
            return raw.hasAnswer(within: 0)
        }
        #expect(try raw.read(until: "hello b").hasPrefix("HTTP/1.1 200"))
    }

    // MARK: Refusals, and exhausted descriptors

    @Test func refusal_reachesClientsThatSendTheWholeBodyFirst() throws {
        let service = try EchoServer()
        let raw = try RawConnection(service.port)
        let body = String(repeating: "x", count: 8 << 20)
        try raw.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body)
        #expect(try raw.read().hasPrefix("HTTP/1.1 413"))
    }

    @Test(arguments: [256, 1024, 4096, 1 << 20])
    func streamsAndConnections_leaveDescriptorsForTheRest(_ descriptors: Int) {
        let lowered = ServerConfiguration().within(descriptors: descriptors)
        #expect(lowered.streamsMax + lowered.connectionsMax + 100 <= descriptors)
    }

    @Test func streamWithoutADescriptor_releasesItsPlace() {
        let given = Collected<Bool>()
        do {
            let handOff = StreamHandOff(
                configuration: ServerConfiguration(), adopt: { _ in }, releasePlace: { given.append(true) })
            #expect(!handOff.duplicate(-1))
        }
        #expect(given.all == [true])
    }

    // MARK: Bodies

    /// The memory of a body is released, however its request ends.
    @Test func bodyReservation_isReleased_howeverItsRequestEnds() async throws {
        let time = ServerTime()
        let service = try EchoServer { $0.clock = time.clock }
        func begin(_ framing: String, _ body: String, at path: String = "/counted") async throws -> RawConnection {
            let raw = try RawConnection(service.port)
            try raw.send("POST \(path) HTTP/1.1\r\nHost: x\r\n\(framing)\r\n\r\n\(body)")
            try await eventually("its body is reserved") { service.reserved.now > 0 }
            return raw
        }
        func end(_ how: Comment) async throws {
            try await eventually(how) { service.reserved.now == 0 }
        }
        let length = "Content-Length: 40000"
        let answered = try await begin(length, "a")
        #expect(service.reserved.now == 40_000)
        try answered.send(String(repeating: "a", count: 39_999))
        #expect(try answered.readAnswer().body == Array("40000".utf8))
        try await end("an answer, and the connection goes on")

        let gone = try await begin(length, "a")
        gone.finishSending()
        _ = try gone.read()
        try await end("the client is gone")

        let slow = try await begin(length, "a")
        try await eventually("it is too slow") {
            await service.server.pass(time, milliseconds: 5_000)
            return slow.hasAnswer(within: 0)
        }
        #expect(try slow.read().hasPrefix("HTTP/1.1 408"))
        try await end("it is cut off")

        let chunk = "3000\r\n" + String(repeating: "a", count: 0x3000) + "\r\n"
        let long = try await begin("Transfer-Encoding: chunked", chunk)
        #expect(service.reserved.now == 16 * 1024)
        try long.send(chunk)
        try await eventually("it grows") { service.reserved.now == 32 * 1024 }
        try long.send(chunk + chunk + chunk)
        #expect(try long.read().hasPrefix("HTTP/1.1 413"))
        try await end("it is too long")

        let waiting = try await begin("Content-Length: 2", "{}", at: "/counted-deferred")
        service.waitUntilDeferred(1)
        service.answerDeferred()
        #expect(try waiting.readAnswer().status == 200)
        try await end("it was answered later")
    }

    // MARK: The end

    @Test func drainingServer_answersEverybodyOnce() throws {
        let service = try EchoServer()
        let known = try RawConnection(service.port)
        try known.send(MalformedRequests.sound)
        #expect(try known.readAnswer().isLast == false)
        service.server.drain()
        // A final answer on another connection shows that the reactor is draining.
        var isDraining = false
        while !isDraining {
            let new = try RawConnection(service.port)
            try new.send(MalformedRequests.sound)
            isDraining = try new.readAnswer().isLast
        }
        try known.send(MalformedRequests.sound)
        #expect(try known.readAnswer().isLast)
        #expect(try known.read() == "")
    }

    @Test func partialHead_doesNotDelayTheShutdown() async throws {
        let time = ServerTime()
        let service = try EchoServer {
            $0.clock = time.clock
            $0.senderSeconds = 600
        }
        let raw = try RawConnection(service.port)
        try raw.send("GET /hello HTTP/1.1\r\nHost: ")
        try await eventually("the request has begun") { service.server.requestsOpen == 1 }
        let hasEnded = Gate()
        Thread {
            service.server.shutdown(deadlineSeconds: 600, idleSeconds: 1)
            hasEnded.open()
        }.start()
        try await eventually("the shutdown has finished", step: { time.pass(milliseconds: 50) }) { hasEnded.isOpen }
        #expect(time.passed < .seconds(600), "the shutdown must not wait for its deadline")
        #expect(throws: (any Error).self) { _ = try RawConnection(service.port) }
    }
}
