import Foundation
import Glibc
import TestSupport

@testable import BellhopClient

/// A real HTTP server on a real socket that answers each connection with the next entry of a script, in the pieces the
/// entry names.
///
/// `@unchecked Sendable`: every mutable property is guarded by `lock`.
final class ScriptedServer: @unchecked Sendable {
    /// The script of one connection.
    struct Turn: Sendable {
        var pieces: [[UInt8]]
        /// Whether the socket stays open and silent afterwards, until the client disconnects or the server stops.
        var staysOpen = false

        static func answer(_ status: String, headers: String = "", body: String = "") -> Turn {
            Turn(pieces: [
                Array("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)".utf8)
            ])
        }

        static func stream(_ pieces: [String], staysOpen: Bool = false) -> Turn {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            return Turn(pieces: [Array(head.utf8)] + pieces.map { Array($0.utf8) }, staysOpen: staysOpen)
        }
    }

    private let listener: LoopbackListener
    private let lock = NSLock()
    private var turns: [Turn]
    /// Names the identity of a token, for `GET /v1/me`, which is not part of the script; nil for a token that is refused.
    private let identity = Guarded<(@Sendable (_ token: String) -> String?)?>({ _ in "i1" })
    /// Chooses the turn of a request when the script has ended.
    private let answer: @Sendable (String) -> Turn?
    private var heads: [String] = []
    private var open: Set<Int32> = []
    private var isStopped = false
    private var isCutOff = false

    /// - Parameter answer: Returns the turn for the head of a request beyond the script; nil closes the connection.
    init(_ turns: [Turn], answer: @escaping @Sendable (String) -> Turn? = { _ in nil }) throws {
        (self.turns, self.answer) = (turns, answer)
        listener = try LoopbackListener()
        listener.serve { [self] connection in serve(connection) }
    }

    deinit { stop() }

    /// Names the identities of tokens, instead of `i1` for all; nil refuses a token. Without a closure the script answers
    /// `GET /v1/me` too.
    func name(_ identity: (@Sendable (_ token: String) -> String?)?) { self.identity.withLock { $0 = identity } }

    var baseURL: String { "http://127.0.0.1:\(listener.port)" }

    /// The answer that names the identity of a request's token; nil for another request.
    private func me(_ head: String) -> Turn? {
        guard head.hasPrefix("GET /v1/me "), let name = identity.withLock({ $0 }) else { return nil }
        guard let identity = name(ScriptedServer.token(in: head)) else {
            let body = #"{"code":"invalid_token.expired","detail":"The token has expired."}"#
            return .answer("401 Unauthorized", headers: "Connection: close\r\n", body: body)
        }
        let body: JSON = ["identity": .string(identity), "userId": "ada"]
        return .answer("200 OK", headers: "Connection: close\r\n", body: body.text)
    }

    /// Returns the token of a request.
    static func token(in head: String) -> String {
        String(head.components(separatedBy: "Authorization: Bearer ").last?.prefix { !$0.isNewline } ?? "")
    }

    /// The request heads seen so far, in order, without the ones that name an identity.
    var requests: [String] {
        lock.withLock { heads }
    }

    /// Closes every connection without an answer, as a device without a network sees it, until it is connected again.
    func cutOff(_ isCutOff: Bool) {
        let sockets = lock.withLock {
            self.isCutOff = isCutOff
            return isCutOff ? open : []
        }
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    func stop() {
        let (wasStopped, sockets) = lock.withLock {
            defer { isStopped = true }
            return (isStopped, open)
        }
        guard !wasStopped else { return }
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        listener.stop()
    }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        guard let head = readHead(connection), let turn = begin(connection, head) else { return }
        defer { end(connection) }
        for piece in turn.pieces {
            var sent = 0
            while sent < piece.count {
                let count = piece[sent...].withUnsafeBytes {
                    send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                sent += count
            }
        }
        var byte: UInt8 = 0
        if turn.staysOpen { while recv(connection, &byte, 1, 0) > 0 {} }
    }

    private func begin(_ connection: Int32, _ head: String) -> Turn? {
        let me = me(head)
        return lock.withLock {
            if isCutOff { return nil }
            if let me { return me }
            heads.append(head)
            open.insert(connection)
            return turns.isEmpty ? answer(head) : turns.removeFirst()
        }
    }

    private func end(_ connection: Int32) { _ = lock.withLock { open.remove(connection) } }

    /// Reads the head and body of one request.
    private func readHead(_ connection: Int32) -> String? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            bytes += buffer[..<count]
            let text = String(decoding: bytes, as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n") else { continue }
            let length = text[..<end.lowerBound].split(separator: "\r\n")
                .first { $0.lowercased().hasPrefix("content-length:") }
                .flatMap { Int($0.split(separator: ":")[1].trimmingCharacters(in: .whitespaces)) }
            if text[end.upperBound...].utf8.count >= length ?? 0 { return text }
        }
    }
}
