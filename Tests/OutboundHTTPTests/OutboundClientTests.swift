import Foundation
import TestSupport
import Testing

@testable import OutboundHTTP

/// Outbound requests of the service, to receivers of every kind.
@Suite(.timed) struct OutboundClientTests {
    private static let post = OutboundPost(url: "", headers: [("webhook-id", "w1")], body: Array(#"{"a":1}"#.utf8))

    /// Only a failure takes this long.
    private static let patientMilliseconds = Int(patience / .milliseconds(1))

    private func post(to url: String, privately: Bool = true, timeoutMilliseconds: Int = Self.patientMilliseconds)
        -> OutboundOutcome
    {
        OutboundClient(allowsPrivate: privately, timeoutMilliseconds: timeoutMilliseconds).post(
            OutboundPost(url: url, headers: Self.post.headers, body: Self.post.body))
    }

    private func outcome(
        of reply: ScriptedReceiver.Reply, timeoutMilliseconds: Int = Self.patientMilliseconds
    ) throws -> OutboundOutcome {
        let receiver = try ScriptedReceiver { _ in reply }
        defer { receiver.stop() }
        return post(to: receiver.url, timeoutMilliseconds: timeoutMilliseconds)
    }

    @Test func request_isReceivedUnchanged() throws {
        let receiver = try ScriptedReceiver { _ in .status(204) }
        defer { receiver.stop() }
        #expect(post(to: receiver.url) == .answered(status: 204, retryAfterSeconds: nil))
        let delivery = try #require(receiver.deliveries.all.first)
        #expect(delivery.line == "POST /hooks HTTP/1.1")
        #expect(delivery.headers["webhook-id"] == "w1")
        #expect(delivery.headers["content-type"] == "application/json")
        #expect(delivery.headers["expect"] == nil)
        #expect(delivery.body == Self.post.body)
    }

    @Test func watchedResponse_isDeliveredIncrementally_withItsHead() throws {
        let early = "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
        let body = String(repeating: "x", count: 100_000)
        let receiver = try ScriptedReceiver { _ in .raw(early + "HTTP/1.1 200 OK\r\nX-Late:  two\r\n\r\n" + body) }
        defer { receiver.stop() }
        let client = OutboundClient(allowsPrivate: true, timeoutMilliseconds: Self.patientMilliseconds)
        var bytes = 0
        let probe = OutboundProbe(url: receiver.url, headers: [("X-Own", "1")])
        let answer = client.watch(probe) { piece in
            bytes += piece.count
            return true
        }
        #expect(answer.status == 200 && answer.httpVersion == "1.1" && answer.failure == nil)
        #expect(answer.headers["x-late"] == "two" && answer.headers["x-early"] == nil)
        #expect(bytes == 100_000, "only the watcher bounds the body")
        let delivery = try #require(receiver.deliveries.all.first)
        #expect(delivery.line == "GET /hooks HTTP/1.1" && delivery.headers["x-own"] == "1")
        // The watcher ends the request by returning false. `shouldStop` ends it even if no bytes arrive.
        bytes = 0
        #expect(
            client.watch(probe) { piece in
                bytes += piece.count
                return false
            }.status == 200)
        #expect(bytes > 0 && bytes < 100_000)
        let silent = try ScriptedReceiver { _ in .never }
        defer { silent.stop() }
        let none = client.watch(OutboundProbe(url: silent.url), shouldStop: { true }) { _ in true }
        #expect(none.status == 0 && none.failure == .stopped)
        #expect(client.watch(OutboundProbe(url: "http://127.0.0.1:1/")) { _ in true }.failure == .unreachable)
    }

    @Test func redirect_isAnAnswer_andNotFollowed() throws {
        let target = try ScriptedReceiver { _ in .status(200) }
        defer { target.stop() }
        for status in [301, 302, 303, 307, 308] {
            let found = try outcome(of: .status(status, headers: ["Location: \(target.url)"]))
            #expect(found == .answered(status: status, retryAfterSeconds: nil))
        }
        #expect(target.connections.all.isEmpty)
    }

    @Test func retryAfter_isRead() throws {
        #expect(
            try outcome(of: .status(503, headers: ["Retry-After: 120"]))
                == .answered(status: 503, retryAfterSeconds: 120))
    }

    @Test func silence_failsAfterTheTimeout() throws {
        #expect(try outcome(of: .never, timeoutMilliseconds: 50) == .failed(.timeout))
    }

    @Test func incompleteOrForeignAnswer_isAFailure() throws {
        #expect(try outcome(of: .nothing) == .failed(.broken))
        #expect(try outcome(of: .raw("HTTP/1.1 200 OK\r\nContent-Le")) == .failed(.broken))
        #expect(try outcome(of: .raw("SSH-2.0-no\r\n")) == .failed(.broken))
    }

    /// Bytes after the head do not change the outcome and are not stored.
    @Test func body_isDiscarded() throws {
        let answered = OutboundOutcome.answered(status: 200, retryAfterSeconds: nil)
        #expect(try outcome(of: .raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nless")) == answered)
        let endless = String(repeating: "x", count: 1 << 20)
        #expect(try outcome(of: .raw("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n\(endless)")) == answered)
        #expect(try outcome(of: .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")) == answered)
    }

    /// A folded line continues the line before it. In front of a second answer there is no such line, and a handle that
    /// was used before had a pointer to one that was freed. AddressSanitizer notices that.
    @Test func foldedFirstLine_ofALaterAnswer_isHarmless() throws {
        let answers = ["X-First: one\r\nContent-Length: 0\r\n", " folded\r\nContent-Length: 0\r\n"]
        let client = OutboundClient(allowsPrivate: true, timeoutMilliseconds: Self.patientMilliseconds)
        for head in answers + answers {
            let receiver = try ScriptedReceiver { _ in .raw("HTTP/1.1 200 OK\r\n\(head)\r\n") }
            _ = client.post(OutboundPost(url: receiver.url, headers: [], body: []))
        }
    }

    @Test func headWithoutAnEnd_isBounded() throws {
        let lines = (0..<2000).map { "X-\($0): \(String(repeating: "y", count: 50))\r\n" }.joined()
        #expect(try outcome(of: .raw("HTTP/1.1 200 OK\r\n\(lines)\r\n")) == .failed(.broken))
    }

    @Test func unreachableReceiver_isReported() throws {
        let receiver = try ScriptedReceiver { _ in .nothing }
        receiver.stop()
        #expect(post(to: receiver.url) == .failed(.unreachable))
    }

    /// Private addresses in numeric spellings, and a name that resolves to one.
    @Test(arguments: [
        "127.0.0.1", "localhost", "0x7f000001", "2130706433", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]",
    ])
    func privateAddress_isNotConnectedTo(_ host: String) throws {
        let receiver = try ScriptedReceiver { _ in .status(200) }
        defer { receiver.stop() }
        #expect(post(to: "https://\(host):\(receiver.port)/", privately: false) == .failed(.privateAddress))
        #expect(receiver.connections.all.isEmpty)
    }

    @Test func plainHTTP_isAllowedInPrivateNetworksOnly() throws {
        #expect(post(to: "http://1.1.1.1/", privately: false) == .failed(.broken))
        #expect(post(to: "file:///etc/passwd") == .failed(.broken))
    }

    @Test func stop_cancelsWaitingRequests() async throws {
        let receiver = try ScriptedReceiver { _ in .never }
        defer { receiver.stop() }
        let client = OutboundClient(allowsPrivate: true, timeoutMilliseconds: Self.patientMilliseconds)
        let request = OutboundPost(url: receiver.url, headers: [], body: [])
        let outcomes = Collected<OutboundOutcome>()
        Thread { outcomes.append(client.post(request)) }.start()
        try await eventually("the receiver gets the request") { !receiver.deliveries.all.isEmpty }
        client.stop()
        try await eventually("the request is aborted") { !outcomes.all.isEmpty }
        #expect(outcomes.all == [.failed(.stopped)])
        #expect(client.post(request) == .failed(.stopped))
    }
}
