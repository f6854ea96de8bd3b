import TestSupport
import Testing

@testable import BellhopCalls
@testable import BellhopClient

@Suite(.timed) struct SSEParserTests {
    private func events(_ text: String) throws -> [ServerSentEvent] {
        var parser = SSEParser()
        return try parser.parse(text.utf8)
    }

    /// The examples and rules of the WHATWG's "Interpreting an event stream", one per row.
    @Test(arguments: [
        ("data: a\n\n", [ServerSentEvent(id: "", name: "message", data: "a")]),
        (
            "data:a\r\rdata:b\r\n\r\n",
            [.init(id: "", name: "message", data: "a"), .init(id: "", name: "message", data: "b")]
        ),
        ("data: YHOO\ndata: +2\ndata: 10\n\n", [.init(id: "", name: "message", data: "YHOO\n+2\n10")]),
        (
            ": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n",
            [
                .init(id: "1", name: "message", data: "first"), .init(id: "", name: "message", data: "second"),
                .init(id: "", name: "message", data: " third"),
            ]
        ),
        (
            "data\n\ndata\ndata\n\ndata:",
            [.init(id: "", name: "message", data: ""), .init(id: "", name: "message", data: "\n")]
        ),
        (
            "data:test\n\ndata: test\n\n",
            [.init(id: "", name: "message", data: "test"), .init(id: "", name: "message", data: "test")]
        ),
        ("\u{FEFF}data: a\n\n", [.init(id: "", name: "message", data: "a")]),
        (
            "event: add\ndata: 1\n\ndata: 2\n\n",
            [.init(id: "", name: "add", data: "1"), .init(id: "", name: "message", data: "2")]
        ),
        ("event: lost\n\ndata: 2\n\n", [.init(id: "", name: "message", data: "2")]),
        ("id: 7\n\ndata: a\n\n", [.init(id: "7", name: "message", data: "a", isReplayed: false)]),
        ("id: 1\nid: 2\u{0}\ndata: a\n\n", [.init(id: "1", name: "message", data: "a")]),
        ("unknown: x\nDATA: x\ndata : x\n\n", []),
        ("data: unfinished\n", []),
        (":\n:\n\n", []),
    ])
    func stream_isInterpretedAsTheStandardSays(text: String, expected: [ServerSentEvent]) throws {
        #expect(try events(text) == expected)
    }

    @Test func retry_countsOnlyAsDigits() throws {
        var parser = SSEParser()
        _ = try parser.parse("retry: 1500\n\nretry: 2s\nretry:\nretry: -1\nretry: +3\n".utf8)
        #expect(parser.retryMilliseconds == 1500)
    }

    @Test func idOfAnUnfinishedEvent_doesNotMoveTheCursor() throws {
        var parser = SSEParser(lastEventID: "3")
        _ = try parser.parse("id: 4\ndata: half".utf8)
        parser.startNewConnection()
        #expect(parser.lastEventID == "3")
        let events = try parser.parse("data: a\n\n".utf8)
        #expect(events == [ServerSentEvent(id: "3", name: "message", data: "a", isReplayed: false)])
    }

    @Test func endlessLine_isRefused() {
        var parser = SSEParser(eventBytesMax: 10)
        #expect(throws: SSEParser.EventTooLarge(bytesMax: 10)) { _ = try parser.parse("data: 0123456789".utf8) }
    }

    /// The events are the same, however the network splits the stream.
    @Test(arguments: 0..<200)
    func chunking_changesNothing(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let atoms = [
            "data", "id", "event", "retry", ":", " ", "\n", "\r", "\r\n", "\n\n", "é", "🛎", "\u{0}", "x", "12",
            "\u{FEFF}",
        ]
        let text = (0..<300).map { _ in atoms.randomElement(using: &random) ?? "" }.joined()
        let bytes = Array(text.utf8)
        var whole = SSEParser()
        let expected = try whole.parse(bytes)
        var pieces = SSEParser()
        var found: [ServerSentEvent] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...7, using: &random))
            found += try pieces.parse(bytes[start..<end])
            start = end
        }
        #expect(found == expected, "seed \(seed)")
        #expect(pieces.lastEventID == whole.lastEventID)
        #expect(pieces.retryMilliseconds == whole.retryMilliseconds)
    }
}
