import Foundation
import TestSupport
import Testing

@testable import MicroHTTP

/// Bodies that are made in pieces while they are sent, over real sockets.
@Suite(.timed) struct PieceBodyTests {
    private func send(_ line: String, to service: EchoServer, receiveBufferBytes: Int32? = nil) throws -> RawConnection
    {
        let raw = try RawConnection(service.port, receiveBufferBytes: receiveBufferBytes)
        try raw.send("\(line)\r\nHost: x\r\n\r\n")
        return raw
    }

    /// Returns the body of a chunked answer, and whether its last chunk is there.
    private func unchunked(_ answer: String) -> (body: String, isComplete: Bool) {
        let (bytes, end) = (Array(answer.utf8), Array("\r\n\r\n".utf8))
        guard let head = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { return ("", false) }
        var (rest, body) = (bytes[(head + end.count)...], [UInt8]())
        while let line = rest.firstIndex(of: UInt8(ascii: "\r")),
            let size = Int(String(decoding: rest[..<line], as: UTF8.self), radix: 16)
        {
            if size == 0 { return (String(decoding: body, as: UTF8.self), true) }
            let piece = rest[line...].dropFirst(2).prefix(size)
            guard piece.count == size else { break }
            body += piece
            rest = rest[piece.endIndex...].dropFirst(2)
        }
        return (String(decoding: body, as: UTF8.self), false)
    }

    private func expected(_ count: Int, _ size: Int) -> String {
        (0..<count).map { String(repeating: "\($0 + 1) ", count: size) }.joined()
    }

    /// Empty pieces, pieces larger than the memory of a connection, and no pieces.
    @Test(arguments: [(0, 0), (1, 1), (3, 1), (5, 0), (40, 30_000)])
    func pieces_arriveInOrder_andTheConnectionContinues(count: Int, size: Int) throws {
        let service = try EchoServer()
        let raw = try send("GET /pieces/\(count)/\(size) HTTP/1.1", to: service)
        let answer = try raw.read(until: "\r\n0\r\n\r\n")
        #expect(answer.contains("Transfer-Encoding: chunked"))
        let (body, isComplete) = unchunked(answer)
        #expect(isComplete && body == expected(count, size))
        try raw.send("GET /hello?name=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try raw.read(until: "hello 1").contains("200"))
    }

    /// HTTP/1.0 has no chunks. The body ends with the connection.
    @Test func http10_getsThePieces() throws {
        let service = try EchoServer()
        let answer = try send("GET /pieces/3/10 HTTP/1.0", to: service).read()
        #expect(answer.hasSuffix("\r\n\r\n" + expected(3, 10)))
    }

    @Test func head_getsNoPieces() throws {
        let service = try EchoServer()
        let raw = try send("HEAD /pieces/3/10 HTTP/1.1", to: service)
        // Up to the end of the connection: an answer to HEAD ends with its head, and has no last chunk.
        let answer = try raw.read()
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.hasSuffix("\r\n\r\n"))
        #expect(answer.components(separatedBy: "\r\n\r\n").count == 2, "\(answer)")
        #expect(!answer.contains("Content-Length"), "\(answer)")
    }

    @Test func failedPiece_endsTheConnectionWithoutTheLastChunk() throws {
        let service = try EchoServer()
        let (body, isComplete) = unchunked(try send("GET /pieces/2/10?fails HTTP/1.1", to: service).read())
        #expect(!isComplete && body == expected(2, 10))
    }

    /// A client that reads nothing holds up no other, and later receives everything.
    @Test func slowReader_holdsUpNobody() throws {
        let service = try EchoServer()
        let slow = try send("GET /pieces/100/30000 HTTP/1.1", to: service, receiveBufferBytes: 4096)
        #expect(slow.hasAnswer(within: 60_000))
        for _ in 0..<20 {
            #expect(try send("GET /hello?name=1 HTTP/1.1", to: service).read(until: "hello 1").contains("200"))
        }
        let (body, isComplete) = unchunked(try slow.read(until: "\r\n0\r\n\r\n"))
        #expect(isComplete && body == expected(100, 30_000))
    }

    /// A client that goes away in the middle leaves nothing behind.
    @Test func departedReader_isForgotten() async throws {
        let service = try EchoServer()
        for _ in 0..<20 {
            let raw = try send("GET /pieces/100/30000 HTTP/1.1", to: service)
            #expect(raw.hasAnswer(within: 60_000))
        }
        try await eventually("no request is open") { service.server.requestsOpen == 0 }
    }

    @Test func missingPiece_endsTheConnection() async throws {
        let time = ServerTime()
        let service = try EchoServer(answerSeconds: 5) { $0.clock = time.clock }
        let raw = try send("GET /pieces/1/1?isSilent HTTP/1.1", to: service)
        #expect(try raw.read(until: "1 \r\n").contains("200"))
        try await eventually("the connection ends") {
            await service.server.pass(time, milliseconds: 1000)
            return raw.hasAnswer(within: 0)
        }
        #expect(try raw.read() == "")
    }

    /// The time for reading an answer counts for each piece.
    @Test func steadyReader_hasTimeForEachPiece() async throws {
        let time = ServerTime()
        let service = try EchoServer { configuration in
            (configuration.clock, configuration.senderSeconds) = (time.clock, 10)
            configuration.senderBytesPerSecond = 1_000_000
        }
        let raw = try send("GET /pieces/100/30000 HTTP/1.1", to: service, receiveBufferBytes: 4096)
        var answer = ""
        while !answer.utf8.suffix(7).elementsEqual("\r\n0\r\n\r\n".utf8) {
            let piece = try raw.read(until: "")
            guard !piece.isEmpty else { break }
            answer += piece
            await service.server.pass(time, milliseconds: 20)
        }
        #expect(time.passed > .seconds(10))
        let (body, isComplete) = unchunked(answer)
        #expect(isComplete && body == expected(100, 30_000))
    }

    @Test func stop_endsAnAnswerInPieces() throws {
        let service = try EchoServer()
        let raw = try send("GET /pieces/1/1?isSilent HTTP/1.1", to: service)
        #expect(try raw.read(until: "1 \r\n").contains("200"))
        service.server.shutdown(deadlineSeconds: 0)
        #expect(try raw.read() == "")
    }
}
