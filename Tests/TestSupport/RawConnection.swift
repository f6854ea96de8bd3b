import Glibc
import Testing

/// A TCP connection for requests that no HTTP client would send.
public final class RawConnection: Sendable {
    public struct Failed: Error {
        let what: String
    }

    private let descriptor: Int32

    public init(_ port: Int, receiveBufferBytes: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var bytes = receiveBufferBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
        // The timeout only bounds a failure; no test waits for it to expire.
        var timeout = timeval(tv_sec: Int(patience / .seconds(1)), tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        guard connectToLoopback(descriptor, port: port) else { throw Failed(what: "connect") }
    }

    deinit { close(descriptor) }

    public func send(_ text: String) throws { try send(Array(text.utf8)) }

    public func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failed(what: "send") }
            sent += count
        }
    }

    /// Sends a text byte by byte until the server answers, and returns the answer to its end.
    ///
    /// The kernel can deliver all bytes late, so after the last byte this waits on for the answer.
    ///
    /// - Parameter pause: an action after each byte, such as advancing a server's clock.
    public func drip(_ text: String, pause: () async throws -> Void) async throws -> String {
        for byte in text.utf8 {
            // A server that has cut off the connection accepts no more bytes.
            guard (try? send([byte])) != nil else { return try read() }
            try await pause()
            if hasAnswer(within: 0) { return try read() }
        }
        try await eventually("the server answers") {
            try await pause()
            return hasAnswer(within: 0)
        }
        return try read()
    }

    /// Returns whether the socket has data or has reached its end.
    public func hasAnswer(within milliseconds: Int32) -> Bool {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&ready, 1, milliseconds) > 0
    }

    public func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads up to and including the first occurrence of `text`, plus any bytes received with it. Without `text`,
    /// reads to the end.
    public func read(until text: String? = nil) throws -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0 { throw Failed(what: "receive after \(String(decoding: all, as: UTF8.self))") }
            if count == 0 { return String(decoding: all, as: UTF8.self) }
            all += buffer[..<count]
            if let text, String(decoding: all.suffix(count + text.utf8.count), as: UTF8.self).contains(text) {
                return String(decoding: all, as: UTF8.self)
            }
        }
    }

    /// A response to one request.
    public struct Answer {
        public var status = 0
        /// By lower-case name; of several fields with one name, the last.
        public var headers: [String: String] = [:]
        public var body: [UInt8] = []
        /// Whether the server closes the connection after this response.
        public var isLast = false
        fileprivate var headBytes = 0
        fileprivate var bodyBytes = 0
    }

    /// Reads the response to one request, using its Content-Length. The connection stays open.
    public func readAnswer() throws -> Answer {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var answer: Answer?
        while true {
            if var found = answer, all.count >= found.headBytes + found.bodyBytes {
                found.body = Array(all[found.headBytes..<found.headBytes + found.bodyBytes])
                return found
            }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { throw Failed(what: "receive after \(String(decoding: all, as: UTF8.self))") }
            all += buffer[..<count]
            if answer == nil { answer = Self.head(of: all) }
        }
    }

    /// Returns the parsed head, or nil if it is not complete yet.
    private static func head(of bytes: [UInt8]) -> Answer? {
        let lineEndBytes = 2
        var answer = Answer()
        var start = 0
        while let end = (start..<max(start, bytes.count - 1)).first(where: {
            bytes[$0] == 0x0D && bytes[$0 + 1] == 0x0A
        }) {
            let line = String(decoding: bytes[start..<end], as: UTF8.self)
            if line.isEmpty {
                answer.headBytes = end + lineEndBytes
                return answer
            }
            if start == 0 { answer.status = Int(line.split(separator: " ")[1]) ?? 0 }
            let field = line.split(separator: ":", maxSplits: 1)
            if field.count == 2 { answer.headers[field[0].lowercased()] = String(field[1].drop { $0 == " " }) }
            let parts = line.lowercased().split(separator: ":", maxSplits: 1).map { $0.filter { $0 != " " } }
            if parts.first == "content-length" { answer.bodyBytes = Int(parts[1]) ?? 0 }
            if parts == ["connection", "close"] { answer.isLast = true }
            start = end + lineEndBytes
        }
        return nil
    }
}
