import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// The vectors of streams that bellhop.js reads too: `Tests/Fixtures/Streams`.
@Suite(.timed, .timeLimit(.minutes(10)))
struct StreamVectorTests {
    /// One case of a file.
    struct Case: Sendable, CustomTestStringConvertible {
        let json: JSON
        var testDescription: String { json["name"].string ?? "" }
    }

    private static func cases(_ name: String) -> [Case] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures/Streams/\(name).json")
        let json = (try? JSON(parsing: Data(contentsOf: file))) ?? .null
        return (json["cases"].array ?? []).map(Case.init)
    }

    @Test func files_haveCases() {
        #expect(Self.cases("parsing").count > 70 && Self.cases("connecting").count > 120)
    }

    /// A piece is a text, a text so many times, bytes in hex, or the event that makes a stream ready.
    fileprivate static func bytes(_ piece: JSON) -> [UInt8] {
        if let text = piece.string { return Array(text.utf8) }
        if let text = piece["text"].string, let times = piece["times"].int {
            return Array(String(repeating: text, count: times).utf8)
        }
        if let id = piece["ready"].string {
            let data = #"{"streamId":"\#(id)","userId":"ada","topics":[]}"#
            return Array("event: stream:ready\ndata: \(data)\n\n".utf8)
        }
        let digits = Array(piece["hex"].string ?? "")
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<$0 + 2]), radix: 16) }
    }

    private static func text(_ data: JSON) -> String {
        data.string ?? String(decoding: (data.array ?? []).flatMap(bytes), as: UTF8.self)
    }

    // MARK: Parsing

    @Test(arguments: cases("parsing")) func stream_isInterpretedAsTheStandardSays(one: Case) throws {
        let pieces = (one.json["stream"].array ?? []).map(Self.bytes)
        let whole = pieces.flatMap(\.self)
        // A long stream byte by byte would take seconds.
        for delivery in [pieces, [whole]] + (whole.count < 10_000 ? [whole.map { [$0] }] : []) {
            var parser = SSEParser(
                lastEventID: one.json["cursor"].string ?? "", eventBytesMax: one.json["limit"].int ?? 16 << 20)
            var found: [ServerSentEvent] = []
            func read() throws { for piece in delivery { found += try parser.parse(piece) } }
            if one.json["isRefused"].bool == true {
                #expect(throws: SSEParser.EventTooLarge.self) { try read() }
                continue
            }
            try read()
            let expected = (one.json["events"].array ?? []).map { event in
                let id = event[0].string ?? ""
                return ServerSentEvent(
                    id: id, name: event[1].string ?? "", data: Self.text(event[2]),
                    isReplayed: event[3].bool == true && !id.isEmpty)
            }
            #expect(found == expected)
            #expect(parser.lastEventID == one.json["lastId"].string ?? "")
            #expect(parser.retryMilliseconds == one.json["retryMs"].int)
        }
    }

    // MARK: Connecting

    /// Two servers that answer each request with the next turn, and then with 204.
    private final class Servers: Sendable {
        private let turns: Guarded<[JSON]>
        private let endless: [JSON]
        let mistakes = Collected<String>()
        private let isWhole: Bool
        private let addresses = Guarded(["", ""])
        private let servers: [ScriptedServer]

        var url: String { servers[0].baseURL }
        var leftCount: Int { turns.withLock { $0.count } }

        init(_ one: JSON) throws {
            let all = one["turns"].array ?? []
            let finite = all.filter { $0["isEndless"].bool != true }
            let turns = Guarded(finite.flatMap { Array(repeating: $0, count: $0["times"].int ?? 1) })
            (self.turns, endless, isWhole) = (
                turns, all.filter { $0["isEndless"].bool == true }, one["isWhole"].bool == true
            )
            let (endless, isWhole, mistakes, addresses) = (endless, isWhole, mistakes, addresses)
            servers = try ["service", "other"].map { place in
                try ScriptedServer([]) { head in
                    Servers.answer(head, at: place, turns, endless, isWhole, mistakes, addresses)
                }
            }
            addresses.withLock { $0 = servers.map(\.baseURL) }
        }

        private static func answer(
            _ head: String, at place: String, _ turns: Guarded<[JSON]>, _ endless: [JSON], _ isWhole: Bool,
            _ mistakes: Collected<String>, _ addresses: Guarded<[String]>
        ) -> ScriptedServer.Turn {
            let path = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            let next: JSON? =
                endless.first { $0["path"].string == path }
                ?? turns.withLock { $0.isEmpty ? JSON?.none : $0.removeFirst() }
            guard let turn = next else {
                if isWhole { mistakes.append("a request after the end: \(path)") }
                return .answer("204 No Content", headers: "Connection: close\r\n")
            }
            let wanted = turn["at"].string ?? "service"
            if wanted != place { mistakes.append("a request at \(place) instead of \(wanted)") }
            if let wanted = turn["path"].string, wanted != path { mistakes.append("\(path) instead of \(wanted)") }
            for (name, value) in turn["sends"].object ?? [:] {
                let sent = header(name, in: head)
                if sent != value.string { mistakes.append("\(name): \(sent ?? "nothing") instead of \(value)") }
            }
            return script(turn, other: addresses.withLock { $0[1] })
        }

        private static func header(_ name: String, in head: String) -> String? {
            head.components(separatedBy: "\r\n").dropFirst().first { $0.lowercased().hasPrefix("\(name):") }
                .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
        }

        private static func script(_ turn: JSON, other: String) -> ScriptedServer.Turn {
            if let raw = turn["raw"].array {
                return .init(pieces: raw.map(StreamVectorTests.bytes), staysOpen: turn["then"].string == "open")
            }
            guard let status = turn["status"].string else {
                var script = ScriptedServer.Turn.stream([], staysOpen: turn["then"].string == "open")
                script.pieces += (turn["stream"].array ?? []).map(StreamVectorTests.bytes)
                return script
            }
            let lines = (turn["headers"].object ?? [:]).map { name, value in
                "\(name): \((value.string ?? "").replacingOccurrences(of: "{other}", with: other))\r\n"
            }
            return .answer(status, headers: lines.joined() + "Connection: close\r\n", body: turn["body"].string ?? "")
        }
    }

    /// The user of a stream is the business of the bell.
    @Test(arguments: cases("connecting").filter { $0.json["user"].isNull })
    func stream_connectsAsItsVectorsSay(one: Case) async throws {
        let servers = try Servers(one.json)
        let (clock, waits, reasons) = (StandingClock(), Collected<Int>(), Collected<String>())
        var options = BellhopStream.Options()
        options.clock = clock.clock
        // More than the largest case, so that no connection is dropped because the reader is slow.
        options.bufferBytesMax = 4 << 20
        options.onConnection = { connection in
            if let code = connection.reason?.code { reasons.append(code) }
            guard connection.status == .waiting, let at = connection.retryAt else { return }
            let moment = Int((at.timeIntervalSince1970 * 1000).rounded())
            waits.append(moment - clock.now)
            clock.advance(to: moment)
        }
        let (tokens, given) = (one.json["tokens"].array?.compactMap(\.string) ?? ["t"], Guarded(0))
        let provider = BellhopClient.TokenProvider(renewing: { needsNew in
            given.withLock { given in
                if needsNew { given += 1 }
                return tokens[min(given, tokens.count - 1)]
            }
        })
        let client = BellhopClient(baseURL: servers.url, token: tokens.count > 1 ? provider : .fixed("t"))
        var heard: [JSON] = []
        var end = "closed"
        do {
            for try await event in client.events(options) where event.name != "stream:ready" {
                heard.append([.string(event.isReplayed ? event.id : ""), .string(event.name), event.json])
            }
        } catch let failure as StreamFailure {
            end = if case .refused = failure { "refused" } else { "unreachable" }
        }
        #expect(end == one.json["ends"].string ?? "closed")
        #expect(servers.mistakes.all == [])
        #expect(servers.leftCount == 0, "not all answers were asked for")
        let expected = (one.json["events"].array ?? []).map { event in
            let data = event[2]["times"].isNull ? event[2] : .string(Self.text([event[2]]))
            return JSON.array([event[0], event[1], data])
        }
        if one.json["mayLose"].bool != true || !heard.isEmpty { #expect(heard == expected) }
        #expect(waits.all == (one.json["waits"].array ?? []).compactMap(\.int))
        if let reason = one.json["reason"].string { #expect(reasons.all.last == reason) }
    }
}
