import Foundation
import Glibc

/// A real HTTP server on a real socket that answers each connection with the next entry of a script, in the pieces the
/// entry names.
///
/// `@unchecked Sendable`: every mutable property is guarded by `lock`.
final class ScriptedServer: @unchecked Sendable {
    /// What happens to one connection.
    struct Turn: Sendable {
        var pieces: [[UInt8]]
        /// Keep the socket open afterwards, in silence, until the client leaves or the server ends.
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

    let port: UInt16
    private let listener: Int32
    private let lock = NSLock()
    private var turns: [Turn]
    private var heads: [String] = []
    private var open: Set<Int32> = []
    private var isStopped = false

    init(_ turns: [Turn]) throws {
        self.turns = turns
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            // A sockaddr_in is a sockaddr to the socket calls; the length tells which.
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard bound else { throw CocoaError(.featureUnsupported) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { self.accept() }
    }

    deinit { stop() }

    var baseURL: String { "http://127.0.0.1:\(port)" }

    /// The request heads seen so far, in order.
    var requests: [String] {
        lock.lock()
        defer { lock.unlock() }
        return heads
    }

    func stop() {
        lock.lock()
        let wasStopped = isStopped
        isStopped = true
        let sockets = open
        lock.unlock()
        guard !wasStopped else { return }
        shutdown(listener, Int32(SHUT_RDWR))
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        close(listener)
    }

    private func accept() {
        while true {
            let connection = Glibc.accept(listener, nil, nil)
            guard connection >= 0 else { return }
            Thread.detachNewThread { self.serve(connection) }
        }
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
        lock.lock()
        defer { lock.unlock() }
        heads.append(head)
        open.insert(connection)
        return turns.isEmpty ? nil : turns.removeFirst()
    }

    private func end(_ connection: Int32) {
        lock.lock()
        defer { lock.unlock() }
        open.remove(connection)
    }

    /// Head and body of one request.
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
