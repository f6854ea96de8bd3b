import Glibc
import TestSupport
import Testing

@testable import OutboundHTTP

/// Many requests at a time, over HTTP/1.1.
@Suite(.timed) struct OutboundMultiplexerTests {
    private struct Answer: Sendable {
        let outcome: OutboundOutcome
        let body: String
    }

    /// Runs a started client, and stops it at the end.
    private func withClient(
        allowsPrivate: Bool = true, _ body: (OutboundMultiplexer, Collected<Answer>) async throws -> Void
    ) async throws {
        let client = OutboundMultiplexer("push", allowsPrivate: allowsPrivate, timeoutSeconds: 60)
        client.start()
        defer { client.stop() }
        try await body(client, Collected<Answer>())
    }

    private func submit(
        _ url: String, _ body: String, to client: OutboundMultiplexer, _ answers: Collected<Answer>,
        leavingBy leavesBy: ContinuousClock.Instant? = nil
    ) {
        let post = OutboundPost(url: url, contentType: "text/plain", headers: [("x-own", "1")], body: Array(body.utf8))
        client.submit(post, leavingBy: leavesBy) {
            answers.append(Answer(outcome: $0, body: String(decoding: $1, as: UTF8.self)))
        }
    }

    @Test func manyRequests_areAllAnswered_withTheirBodies() async throws {
        let receiver = try ScriptedReceiver { delivery in
            let body = String(decoding: delivery.body, as: UTF8.self)
            return .raw(
                "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)")
        }
        defer { receiver.stop() }
        try await withClient { client, answers in
            for number in 0..<200 { submit(receiver.url, "\(number)", to: client, answers) }
            try await eventually("all are answered") { answers.all.count == 200 }
            #expect(Set(answers.all.map(\.body)) == Set((0..<200).map { "\($0)" }))
            #expect(answers.all.allSatisfy { $0.outcome == .answered(status: 200, retryAfterSeconds: nil) })
        }
        let delivery = try #require(receiver.deliveries.all.first)
        #expect(delivery.headers["content-type"] == "text/plain" && delivery.headers["x-own"] == "1")
    }

    @Test func stop_endsWaitingRequests_andRefusesFurtherOnes() async throws {
        let receiver = try ScriptedReceiver { _ in .never }
        defer { receiver.stop() }
        let (client, answers) = (
            OutboundMultiplexer("push", allowsPrivate: true, timeoutSeconds: 600), Collected<Answer>()
        )
        client.start()
        submit(receiver.url, "a", to: client, answers)
        try await eventually("the request is there") { receiver.deliveries.all.count == 1 }
        client.stop()
        #expect(answers.all.map(\.outcome) == [.failed(.stopped)])
        submit(receiver.url, "b", to: client, answers)
        #expect(answers.all.map(\.outcome) == [.failed(.stopped), .failed(.stopped)])
    }

    /// The first request holds the only connection. The second one waits for it, longer than it may.
    @Test func requestThatWaitsTooLong_doesNotLeave() async throws {
        let gate = Gate()
        let receiver = try ScriptedReceiver { _ in
            gate.wait()
            return .status(200)
        }
        defer { receiver.stop() }
        try await withClient { client, answers in
            submit(receiver.url, "first", to: client, answers)
            try await eventually("the first one is there") { receiver.deliveries.all.count == 1 }
            submit(receiver.url, "second", to: client, answers, leavingBy: .now)
            gate.open()
            try await eventually("both have ended") { answers.all.count == 2 }
            #expect(answers.all.map(\.outcome) == [.answered(status: 200, retryAfterSeconds: nil), .failed(.late)])
        }
        #expect(receiver.deliveries.all.map { String(decoding: $0.body, as: UTF8.self) } == ["first"])
    }

    /// The server ends a used connection instead of answering. libcurl alone would send the request again, though the
    /// server may have acted on it.
    @Test func requestWithoutAnAnswer_isNotSentAgain() async throws {
        let requests = Collected<Int>()
        let listener = try LoopbackListener()
        listener.serve { descriptor in
            defer { close(descriptor) }
            while let request = Self.nextRequest(descriptor) {
                requests.append(request)
                guard requests.all.count != 2 else { return }
                Self.answer(descriptor)
            }
        }
        defer { listener.stop() }
        try await withClient { client, answers in
            for count in 1...2 {
                submit("http://127.0.0.1:\(listener.port)/", "a", to: client, answers)
                try await eventually("it has ended") { answers.all.count == count }
            }
            #expect(answers.all.map(\.outcome) == [.answered(status: 200, retryAfterSeconds: nil), .failed(.broken)])
        }
        #expect(requests.all.count == 2)
    }

    /// Reads a request whose body is one byte; returns its length.
    private static func nextRequest(_ descriptor: Int32) -> Int? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while !bytes.dropLast().suffix(4).elementsEqual("\r\n\r\n".utf8) {
            guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
            bytes.append(byte)
        }
        return bytes.count
    }

    private static func answer(_ descriptor: Int32) {
        let bytes = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
        _ = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    @Test func privateAddresses_areRefused() async throws {
        let receiver = try ScriptedReceiver { _ in .status(200) }
        defer { receiver.stop() }
        try await withClient(allowsPrivate: false) { client, answers in
            submit("https://127.0.0.1:\(receiver.port)/", "a", to: client, answers)
            submit("http://example.com/", "a", to: client, answers)
            try await eventually("all are answered") { answers.all.count == 2 }
            #expect(Set(answers.all.map(\.outcome.failure)) == [.privateAddress, .broken])
        }
        #expect(receiver.connections.all.isEmpty)
    }

    @Test func longBodies_endTheRequest_butNotTheAnswer() async throws {
        let receiver = try ScriptedReceiver { _ in
            .raw("HTTP/1.1 400 No\r\nConnection: close\r\n\r\n" + String(repeating: "x", count: 1_000_000))
        }
        defer { receiver.stop() }
        try await withClient { client, answers in
            submit(receiver.url, "a", to: client, answers)
            try await eventually("all are answered") { answers.all.count == 1 }
            #expect(answers.all[0].outcome == .answered(status: 400, retryAfterSeconds: nil))
            #expect(answers.all[0].body.utf8.count <= OutboundLimits.bodyBytesMax)
        }
    }
}

extension OutboundOutcome {
    fileprivate var failure: OutboundFailure? { if case .failed(let failure) = self { failure } else { nil } }
}
