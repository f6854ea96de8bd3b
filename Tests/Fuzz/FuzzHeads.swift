import Glibc
import MicroHTTP

/// Sends the bytes of one connection to a real server. If the server answers 200, an independent parser checks that
/// RFC 9112 allows the request. The server must survive each connection.
let sendHead: FuzzTarget = { input in
    let sent = input + Array("\r\n\r\n".utf8)
    guard server.exchange(sent).starts(with: Array("HTTP/1.1 200".utf8)), !StrictRequest.isBlurred(sent) else { return }
    require(StrictRequest.mistake(in: sent) == nil, "answered 200: \(StrictRequest.mistake(in: sent) ?? "")")
}

private let server = FuzzedServer()

private final class FuzzedServer: Sendable {
    private let port: Int

    init() {
        var configuration = ServerConfiguration()
        configuration.problem = { _ in Response(status: 400) }
        let routes = [
            Route(.get, "/") { _ in .response(Response(status: 200)) },
            Route(.post, "/", bodyBytesMax: 1000) { _ in .response(Response(status: 200)) },
        ]
        do {
            let streams = try StreamShards<NoStreams>(configuration)
            let server = try Server(configuration: configuration, routes: routes, streams: streams)
            streams.start { _ in NoStreams() }
            try server.start()
            port = server.port
            // Both live as long as the process.
            _ = Unmanaged.passRetained(server)
            _ = Unmanaged.passRetained(streams)
        } catch {
            fatalError("\(error)")
        }
    }

    /// Sends the bytes and returns the start of the answer, up to and including the status; empty without an answer.
    func exchange(_ bytes: [UInt8]) -> [UInt8] {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        // A truncated request gets no answer; any answer arrives sooner than this.
        var patience = timeval(tv_sec: 0, tv_usec: 100_000)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                var result: Int32
                // libFuzzer's alarm may interrupt the handshake, which then continues; the next call waits for its
                // end.
                repeat {
                    result = connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                } while result != 0 && errno == EINTR
                return result == 0
            }
        }
        require(isConnected, "the server does not accept connections: \(errno)")
        // Sends two pieces, because bytes of the first read and later bytes take different code paths.
        let middle = bytes.count / 2
        for piece in [bytes[..<middle], bytes[middle...]] where !piece.isEmpty {
            _ = piece.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        }
        shutdown(socket, Int32(SHUT_WR))
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while answer.count < 12, case let count = recv(socket, &buffer, buffer.count, 0), count > 0 {
            answer += buffer[..<count]
        }
        return answer
    }
}

private final class NoStreams: StreamProgram {
    func streamOpened(_: StreamHandle, context _: any Sendable) {}
    func received(_: Never) {}
    func streamClosed(_: StreamHandle, reason _: StreamCloseReason) {}
    func streamOverflowed(_: StreamHandle) -> OverflowAction { .close }
    func ticked(_: UInt64) {}
    func shardWillStop() {}
}

/// The grammar of RFC 9112 for the first request of a connection, as a direct transcription.
private enum StrictRequest {
    /// Returns whether the head has a line that ends with LF alone, and also a NUL or a line that begins with a
    /// colon. libmicrohttpd overwrites colons and line ends with NULs. Such a head can therefore look valid
    /// afterwards. `framing.md` lists these cases and explains why they are harmless.
    static func isBlurred(_ bytes: [UInt8]) -> Bool {
        let hasBareLF = bytes.indices.contains { bytes[$0] == 0x0A && ($0 == 0 || bytes[$0 - 1] != 0x0D) }
        let hasNoName = bytes.indices.dropFirst().contains { bytes[$0] == 0x3A && bytes[$0 - 1] == 0x0A }
        return hasBareLF && (bytes.contains(0) || hasNoName)
    }

    static func mistake(in bytes: [UInt8]) -> String? {
        var rest = bytes[...]
        // 2.2: an empty line before the request line is ignored. It may end with LF alone, or begin with NUL.
        while [0, 0x0A].contains(rest.first) || rest.starts(with: [0x0D, 0x0A]) {
            rest = rest.drop { $0 != 0x0A }.dropFirst()
        }
        guard let requestLine = line(&rest) else { return "the request line does not end" }
        let parts = requestLine.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(isToken) else { return "the request line" }
        guard !parts[1].isEmpty, parts[1].allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return "the target" }
        let version = String(decoding: parts[2], as: UTF8.self)
        // RFC 9110, 2.5: a higher minor version is treated as the highest known one.
        guard parts[2].count == 8, version.hasPrefix("HTTP/1."), version.last?.isASCII == true,
            version.last?.isNumber == true
        else { return "the version \(version)" }
        var hosts = 0
        var framing: [String] = []
        while let field = line(&rest) {
            if field.isEmpty {
                if hosts != 1, version != "HTTP/1.0" || hosts > 1 { return "\(hosts) Hosts" }
                if framing.count > 1 { return "framed twice" }
                return nil
            }
            guard let colon = field.firstIndex(of: UInt8(ascii: ":")) else { return "a field without a colon" }
            let name = field[..<colon]
            guard !name.isEmpty, name.allSatisfy(isToken) else { return "the name of a field" }
            // RFC 9110, 5.5: other control characters may be retained.
            guard !field.contains(0) else { return "a NUL in a value" }
            switch String(decoding: name, as: UTF8.self).lowercased() {
            case "host": hosts += 1
            case "content-length", "transfer-encoding": framing.append(String(decoding: field, as: UTF8.self))
            default: break
            }
        }
        return "the head does not end"
    }

    /// Returns the bytes up to CRLF; nil if the line contains a lone CR or LF.
    private static func line(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: 0x0A), end > rest.startIndex, rest[end - 1] == 0x0D else { return nil }
        let line = rest[..<(end - 1)]
        rest = rest[(end + 1)...]
        return line.contains(0x0D) ? nil : line
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
