import Foundation
import TestSupport
import Testing

@testable import MicroHTTP

/// Requests and their answers, as listed in `Tests/Fixtures/framing.md`.
@Suite(.timed) struct FramingTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let sent: [UInt8]
        /// The bytes that follow one at a time.
        var dripping: [UInt8] = []
        let answers: [String]
        let testDescription: String
    }

    private static let file = repository.appendingPathComponent("Tests/Fixtures/framing.md")

    /// Returns the cells of a table's rows, without the header.
    private static func rows(of heading: String) throws -> [[String]] {
        let text = try String(contentsOf: file, encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix(heading + "\n") })
        return section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst().map { line in
            line.dropFirst().dropLast().components(separatedBy: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// Returns the bytes between backquotes.
    private static func bytes(_ cell: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = cell.dropFirst().dropLast().utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let code = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch code {
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "0"): bytes.append(0)
            default:
                bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            }
        }
        return bytes
    }

    private static func statuses(_ cell: String) -> [String] { cell == "none" ? [] : cell.components(separatedBy: " ") }

    private static let unhurried = Result {
        try ["Heads", "Lengths of bodies", "Chunks"].flatMap { heading in
            let first =
                heading == "Chunks" ? "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" : ""
            return try rows(of: heading).map { cells in
                Case(
                    sent: Array(first.utf8) + bytes(cells[1]), answers: statuses(cells[2]), testDescription: cells[1])
            }
        }
    }

    private static let slow = Result {
        try rows(of: "Slow senders").map { cells in
            Case(
                sent: bytes(cells[0]), dripping: bytes(cells[1]), answers: statuses(cells[2]),
                testDescription: cells[0] + cells[1])
        }
    }

    /// Returns the statuses of all answers that a connection has received.
    private static func statuses(in text: String) -> [String] {
        text.components(separatedBy: "HTTP/1.1 ").dropFirst().map { String($0.prefix(3)) }
    }

    @Test func table_isThere() throws {
        #expect(try Self.unhurried.get().count > 100)
        #expect(try Self.slow.get().count > 5)
    }

    @Test(arguments: try unhurried.get()) func request_isAnswered_asTheTableSays(_ row: Case) throws {
        let service = try EchoServer { $0.connectionTimeoutSeconds = 1 }
        let raw = try RawConnection(service.port)
        try raw.send(row.sent)
        var all = try raw.read(until: "\r\n\r\n")
        raw.finishSending()
        all += (try? raw.read()) ?? ""
        #expect(Self.statuses(in: all) == row.answers, "\(all)")
        // The connection must close, so that nothing that follows can be taken for a request or an answer.
        if row.answers.last.map({ $0 >= "400" && $0 != "404" && $0 != "405" }) == true, row.answers.count == 1 {
            #expect(all.lowercased().contains("connection: close"), "\(all)")
        }
    }

    @Test(arguments: try slow.get()) func slowSender_isAnswered_asTheTableSays(_ row: Case) async throws {
        let time = ServerTime()
        let service = try EchoServer {
            $0.senderSeconds = 1
            $0.clock = time.clock
        }
        let raw = try RawConnection(service.port)
        try raw.send(row.sent)
        var all = ""
        if row.answers.count > 1 { all = try raw.read(until: "\r\n\r\n") }
        let dripping = String(decoding: row.dripping, as: UTF8.self) + String(repeating: "a", count: 99)
        all += try await raw.drip(dripping) { await service.server.pass(time, milliseconds: 60) }
        #expect(Self.statuses(in: all) == row.answers, "\(all)")
        try await eventually("no request is open") { service.server.requestsOpen == 0 }
    }
}
