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

    private func submit(_ url: String, _ body: String, to client: OutboundMultiplexer, _ answers: Collected<Answer>) {
        let post = OutboundPost(url: url, contentType: "text/plain", headers: [("x-own", "1")], body: Array(body.utf8))
        client.submit(post) { answers.append(Answer(outcome: $0, body: String(decoding: $1, as: UTF8.self))) }
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
