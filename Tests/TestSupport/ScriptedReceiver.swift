import Foundation
import Glibc

/// An HTTP server whose behavior a test scripts. It serves one request per connection.
public final class ScriptedReceiver: Sendable {
    /// A request as the server received it.
    public struct Delivery: Sendable {
        public let line: String
        /// The header fields, by lower-case name.
        public let headers: [String: String]
        public let body: [UInt8]
    }

    public enum Reply: Sendable {
        case status(Int, headers: [String] = [])
        /// Sends these bytes unchanged, then closes the connection.
        case raw(String)
        /// Sends nothing and closes the connection.
        case nothing
        /// Sends nothing and waits until the client disconnects.
        case never
    }

    public let deliveries = Collected<Delivery>()
    public let connections = Collected<Bool>()
    private let listener: LoopbackListener

    public var port: Int { listener.port }
    public var url: String { "http://127.0.0.1:\(port)/hooks" }

    /// - Parameter reply: called on the thread of the connection; it may block.
    public init(_ reply: @escaping @Sendable (Delivery) -> Reply) throws {
        listener = try LoopbackListener()
        listener.serve { [deliveries, connections] descriptor in
            defer { close(descriptor) }
            connections.append(true)
            guard let delivery = Self.read(descriptor) else { return }
            deliveries.append(delivery)
            switch reply(delivery) {
            case .status(let status, let headers):
                let lines = ["HTTP/1.1 \(status) X", "Content-Length: 0", "Connection: close"] + headers
                Self.write((lines + ["", ""]).joined(separator: "\r\n"), to: descriptor)
            case .raw(let text): Self.write(text, to: descriptor)
            case .nothing: break
            case .never:
                var byte: UInt8 = 0
                while recv(descriptor, &byte, 1, 0) > 0 {}
            }
        }
    }

    public func stop() { listener.stop() }

    private static func read(_ descriptor: Int32) -> Delivery? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let head = (0...max(0, bytes.count)).first(where: { bytes[$0...].starts(with: end) }) {
                let lines = String(decoding: bytes[..<head], as: UTF8.self).components(separatedBy: "\r\n")
                var headers: [String: String] = [:]
                for line in lines.dropFirst() {
                    let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
                    guard parts.count == 2 else { continue }
                    headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
                }
                let length = headers["content-length"].flatMap { Int($0) } ?? 0
                let body = bytes[(head + end.count)...]
                if body.count >= length {
                    return Delivery(line: lines[0], headers: headers, body: Array(body.prefix(length)))
                }
            }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            bytes += buffer[..<count]
        }
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }
}
