import BellhopClient
import Database
import Foundation
import MicroHTTP
import Realtime
import TestSupport
import Testing

@testable import Service

/// `GET /v1/stream` over real sockets: the delivered events and their audience, without losses or duplicates.
@Suite(.timed) struct StreamsTests {
    let service: TestService

    init() throws { service = try TestService.start() }

    /// Opens a stream whose raw bytes the test reads.
    private static func openRaw(at service: TestService, receiveBufferBytes: Int32? = nil) throws -> RawConnection {
        let raw = try RawConnection(service.port, receiveBufferBytes: receiveBufferBytes)
        let token = service.token(for: .user("u1"))
        try raw.send("GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n")
        return raw
    }

    private static func eventIds(_ events: [ServerSentEvent]) -> [String] {
        events.filter { $0.name == "notification:created" }.compactMap { $0.json["eventId"].string }
    }

    /// R-CNT-13.1, R-CUT-N-4, R-VIS-FR-1.4.
    @Test func ready_comesFirst_withCountsAndCursor_thenWhatHappens() async throws {
        let stream = try await service.listen(as: .user("u1"), topics: ["queue:s1"])
        #expect(stream.ready.json["userId"].string == "u1")
        #expect(stream.ready.json["topics"].array?.compactMap(\.string) == ["personal", "queue:s1"])
        #expect(stream.ready.json["badges"]["bell"].int == 0)
        #expect(!stream.ready.id.isEmpty)
        try await service.publish("e1", to: "u1")
        #expect(try await stream.next("notification:created").json["eventId"].string == "e1")
        #expect(try await stream.next("badges:update").json["bell"].int == 1)
    }

    /// R-SCH-FR-001, R-SCH-NFR-004, R-SCH-EC4: a stream delivers only its owner's rows, and only in its tenant.
    @Test func unrelatedUsers_receiveNothing() async throws {
        let mine = try await service.listen(as: .user("u1"))
        let other = try await service.listen(as: .user("u2"))
        let elsewhere = try await service.listen(as: .user("u1", tenant: "t2"))
        try await service.publish("secret", to: "u1")
        try await service.publish("own", to: "u2")
        try await service.publish("theirs", to: "u1", tenant: "t2")
        _ = try await mine.next("badges:update")
        _ = try await other.next("badges:update")
        _ = try await elsewhere.next("badges:update")
        #expect(Self.eventIds(mine.received) == ["secret"])
        #expect(Self.eventIds(other.received) == ["own"])
        #expect(Self.eventIds(elsewhere.received) == ["theirs"])
        // A position from another user's stream gives no access to its events.
        let thief = try await service.listen(as: .user("u3"), lastEventID: mine.ready.id)
        #expect(thief.ready.json["replayed"].int == 0)
    }

    /// R-SCH-FR-003, R-SCH-SC-004, R-CNT-C3, R-VIS-NFR-2.1.
    @Test func resumingStream_getsWhatItMissed_onceAndInOrder_alsoAcrossARestart() async throws {
        let first = try await service.listen(as: .user("u1"))
        try await service.publish("e0", to: "u1")
        _ = try await first.next("badges:update")
        let cursor = first.lastEventID
        first.close()
        for number in 1...5 { try await service.publish("e\(number)", to: "u1") }
        try await service.restart()
        let second = try await service.listen(as: .user("u1"), lastEventID: cursor)
        try await service.publish("e6", to: "u1")
        repeat { _ = try await second.next("notification:created") } while Self.eventIds(second.received).last != "e6"
        #expect(Self.eventIds(second.received) == (1...6).map { "e\($0)" })
        // Counts are a state, so only the latest event is replayed.
        let replayed = second.received.filter { $0.name == "badges:update" }
        #expect(replayed.first?.json["bell"].int == 6)
    }

    @Test func lostPosition_isLogged() async throws {
        try await service.publish("e1", to: "u1")
        for (id, reason) in [("zzzzzz-0123456789abc", "epoch"), ("nonsense", "gap")] {
            let stream = try await service.listen(as: .user("u1"), lastEventID: id)
            #expect(try await stream.next("stream:resync").json["reason"].string == reason, "\(id)")
        }
        let beginning = service.app.runner.reader.log.ids.cursor(0).text
        service.clock.advance(seconds: 25 * 3600)
        try await service.publish("e2", to: "u2")
        // Upkeep polls the clock itself.
        try await eventually("the old events are pruned") {
            try service.app.store.read { try EventLog.oldestSequence(in: $0) } > 2
        }
        let late = try await service.listen(as: .user("u1"), lastEventID: beginning)
        #expect(try await late.next("stream:resync").json["reason"].string == "gap")
    }

    /// On either store. `Tests/conformance` proves the rest of tickets.
    @Test func ticket_opensOneStream() async throws {
        let ticket = try await service.client("u1").createStreamTicket().value.ticket
        let raw = try RawConnection(service.port)
        try raw.send("GET /v1/stream?ticket=\(ticket) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "stream:ready").hasPrefix("HTTP/1.1 200"))
        #expect(try await service.call("GET", "/v1/stream?ticket=\(ticket)").refusal == "401 stream.ticket_invalid")
    }

    /// Any client can put a forged ticket into the URL, any number of times.
    @Test func unknownTicket_causesNoWrite() async throws {
        let made = try await service.client("u1").createStreamTicket()
        let real = made.value.ticket
        let last = real.hasSuffix("A") ? "B" : "A"
        let before = service.app.store.metrics().jobs
        for _ in 0..<50 {
            for forged in ["x", String(repeating: "a", count: 64), String(real.dropLast()) + last] {
                let answer = try await service.call("GET", "/v1/stream?ticket=\(forged)")
                #expect(answer.status == 401 && answer.json["code"].string == "stream.ticket_invalid")
            }
        }
        // Upkeep itself writes a little.
        #expect(service.app.store.metrics().jobs - before < 50)
    }

    @Test func metrics_countSubscriptions() async throws {
        let service = try TestService.start(["tables": "posts"])
        func counts() async throws -> [String] {
            let page = try await service.call("GET", "/metrics").text
            return ["bellhop_stream_topics ", "bellhop_stream_table_subscriptions "].map { name in
                String(page.split(separator: "\n").first { $0.hasPrefix(name) }?.dropFirst(name.count) ?? "none")
            }
        }
        #expect(try await counts() == ["0", "0"])
        let stream = try await service.listen(as: .user("u1"), topics: ["queue:s1", "dj:s1"])
        #expect(try await counts() == ["2", "0"])
        let path = "/v1/streams/\(stream.ready.json["streamId"].string ?? "")/subscriptions"
        let wanted: JSON = ["topics": ["queue:s1"], "tables": [["table": "posts"], ["id": "b", "table": "posts"]]]
        #expect(try await service.call("PUT", path, as: .user("u1"), wanted).status == 200)
        #expect(try await counts() == ["1", "2"])
        stream.close()
        try await eventually("a closed stream no longer counts") { try await counts() == ["0", "0"] }
    }

    /// The browser code in the README reconnects after a restart: it fetches a new ticket and resumes after the last
    /// event.
    @Test func ticket_resumesBehindTheLastEvent_afterARestart() async throws {
        let root = repository
        let readme = try String(contentsOf: root.appendingPathComponent("README.md"), encoding: .utf8)
        let lines = try #require(readme.firstMatch(of: /### With EventSource alone[^`]*```js\n(?<code>[\s\S]*?)```/))
            .code
        for part in [
            "/v1/stream-tickets", "stream.onerror = again", #"query.set("lastEventId", sessionStorage.lastEventId)"#,
            "sessionStorage.lastEventId = event.lastEventId",
        ] { #expect(lines.contains(part), "\(part)") }

        func open(behind cursor: String?) async throws -> RawConnection {
            let answer = try await service.client("u1").createStreamTicket()
            let ticket = answer.value.ticket
            let raw = try RawConnection(service.port)
            let position = cursor.map { "&lastEventId=\($0)" } ?? ""
            try raw.send("GET /v1/stream?ticket=\(ticket)\(position) HTTP/1.1\r\nHost: x\r\n\r\n")
            return raw
        }
        let first = try await open(behind: nil)
        _ = try first.read(until: "stream:ready")
        try await service.notify(NotificationsTests.draft("news", to: "u1"))
        let received = try first.read(until: "badges:update")
        let cursor = try #require(received.matches(of: /id: (?<id>[^\n]+)/).last).id
        try await service.restart()
        try await service.notify(NotificationsTests.draft("news", to: "u1"))
        let missed = try await open(behind: String(cursor)).read(until: "\"bell\":2")
        #expect(missed.contains("notification:created"))
    }

    /// A link pasted into an open console changes only the fragment, and does not reload the page.
    @Test func console_opensALinkInAnOpenPage() async throws {
        let script = try await service.call("GET", "/console/app.js").text
        #expect(script.contains(#"addEventListener("hashchange""#))
    }

    @Test func cookie_authorizesStreamsOnly() async throws {
        let cookie = "bellhop_token=\(service.token(for: .user("u1")))"
        let raw = try RawConnection(service.port)
        try raw.send("GET /v1/stream HTTP/1.1\r\nHost: x\r\nCookie: a=b; \(cookie)\r\n\r\n")
        #expect(try raw.read(until: "stream:ready").hasPrefix("HTTP/1.1 200"))
        // A proxy of HTTP/2 may pass each cookie in a line of its own.
        let several = try RawConnection(service.port)
        try several.send(
            "GET /v1/stream HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\nCookie: \(cookie)\r\nCookie: c=d\r\n\r\n")
        #expect(try several.read(until: "stream:ready").hasPrefix("HTTP/1.1 200"))
        let refused = try await service.call("GET", "/v1/badges", headers: ["Cookie": cookie])
        #expect(refused.status == 401)
    }

    @Test(arguments: [
        ("Origin: https://evil.example", "403"), ("Origin: null", "403"), ("Sec-Fetch-Site: cross-site", "403"),
        ("Sec-Fetch-Site: same-site", "403"), ("Origin: https://bell.example", "200"),
        ("Origin: https://app.example\r\nSec-Fetch-Site: cross-site", "200"), ("Sec-Fetch-Site: same-origin", "200"),
        ("Origin: https://evil.bell.example", "403"),
    ])
    func cookie_opensStreams_forAllowedOriginsAlone(_ header: String, _ status: String) async throws {
        // An origin with CORS access must still not open a stream with the user's cookie.
        let service = try TestService.start(["corsOrigins": "https://app.example,*"])
        let cookie = "bellhop_token=\(service.token(for: .user("u1")))"
        let raw = try RawConnection(service.port)
        try raw.send("GET /v1/stream HTTP/1.1\r\nHost: bell.example\r\nCookie: \(cookie)\r\n\(header)\r\n\r\n")
        #expect(try raw.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 \(status)"), "\(header)")
    }

    @Test func revocation_closesStreams_andRefusesTheToken() async throws {
        let revoked = TestService.Identity(subject: "u1", claims: ["jti": "token-1", "session_id": "s-1"])
        let stays = TestService.Identity(subject: "u1", claims: ["jti": "token-2", "session_id": "s-2"])
        let (first, second) = (try await service.listen(as: revoked), try await service.listen(as: stays))
        let answer = try await service.call("POST", "/v1/revocations", as: .service(), ["tokenId": "token-1"])
        #expect(answer.status == 201)
        #expect(try await first.next("stream:closing").json["reason"].string == "revoked")
        #expect(try await status(of: await service.client(as: revoked).getMe()) == 401)
        #expect(try await service.client(as: stays).getMe().status == 200)
        try await service.restart()
        #expect(try await status(of: await service.client(as: revoked).getMe()) == 401)
        second.close()
    }

    /// A client that reads too slowly occupies a bounded buffer. It receives a resync and continues.
    @Test func slowReader_resyncs_andGoesOn() async throws {
        let raw = try Self.openRaw(at: service, receiveBufferBytes: 2048)
        _ = try raw.read(until: "serverTime")
        let backend = service.client(as: .service())
        var number = 0
        while service.app.shards.counters.overflows == 0 {
            number += 1
            let text = String(repeating: "x", count: 2000)
            try await backend.postNotification(
                .init(userId: "u1", category: "news", priority: .low, title: "n\(number)", message: text))
        }
        try await service.publish("after-all", to: "u1")
        let text = try raw.read(until: "after-all")
        let resync = try #require(text.range(of: "event: stream:resync"))
        #expect(text[resync.upperBound...].contains("overflow"))
        // Only whole events arrive, even after the buffer was discarded.
        for block in text.components(separatedBy: "\n\n").dropFirst().dropLast() where !block.hasPrefix(":") {
            let isWhole = block.contains("event: ") && block.contains("data: {") && block.hasSuffix("}")
            #expect(isWhole, "\(block.prefix(200))")
        }
    }

    /// R-SCH-EC10: many streams and many writers: each stream receives every event once, in the order of the log.
    @Test func manyStreams_seeEveryEventOnce_inOrder() async throws {
        var streams: [StreamListener] = []
        for _ in 0..<8 { streams.append(try await service.listen(as: .user("u1"))) }
        let expected = Set((0..<5).flatMap { writer in (0..<8).map { "w\(writer)-\($0)" } })
        try await concurrently(0..<5) { writer in
            for number in 0..<8 { try await service.publish("w\(writer)-\(number)", to: "u1") }
        }
        for stream in streams {
            while Self.eventIds(stream.received).count < expected.count {
                _ = try await stream.next("notification:created")
            }
            #expect(Set(Self.eventIds(stream.received)) == expected)
            let numbers = service.sequences(stream.received)
            #expect(numbers == numbers.sorted())
        }
    }
}
