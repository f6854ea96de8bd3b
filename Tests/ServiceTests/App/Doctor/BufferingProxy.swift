import Foundation
import Glibc
import TestSupport
import Threads

/// A proxy in front of a service that forwards everything at once, except streams.
final class BufferingProxy: Sendable {
    enum Habit: Sendable {
        /// Forwards streams immediately too.
        case none
        /// Buffers a stream until it has many bytes.
        case buffersAll
        /// Buffers everything after the first piece.
        case buffersTheRest
        /// Declares that the stream is compressed.
        case compresses
        /// Sends the head of a compressed stream, and holds its events.
        case compressesAndHolds
        /// Ends a stream after its second heartbeat.
        case cuts
    }

    private let listener: LoopbackListener
    private let target: Int
    private let habit: Habit
    private let descriptors = Locked([Int32]())

    init(to target: Int, _ habit: Habit) throws {
        (self.target, self.habit) = (target, habit)
        listener = try LoopbackListener()
        listener.serve { [self] client in serve(client) }
    }

    var url: String { "http://127.0.0.1:\(listener.port)" }

    func stop() {
        listener.stop()
        for descriptor in descriptors.withLock({ $0 }) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func serve(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        _ = connectToLoopback(server, port: target)
        descriptors.withLock { $0 += [client, server] }
        Thread.detachNewThread { [self] in
            carry(server, client) { [habit] text, pieces in
                guard text.contains("text/event-stream") else { return true }
                return switch habit {
                case .none, .compresses, .cuts: true
                case .buffersTheRest: pieces < 1
                case .buffersAll, .compressesAndHolds: false
                }
            }
        }
        carry(client, server) { _, _ in true }
    }

    /// Forwards bytes from one socket to the other.
    ///
    /// - Parameter passes: whether to forward the buffered bytes, given the text so far and the number of forwarded
    ///   pieces with events.
    private func carry(_ from: Int32, _ to: Int32, _ passes: (_ text: String, _ pieces: Int) -> Bool) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        var (text, kept, pieces) = ("", [UInt8](), 0)
        while true {
            let count = read(from, &buffer, buffer.count)
            guard count > 0 else { break }
            var piece = Array(buffer[..<count])
            let words = String(decoding: piece, as: UTF8.self)
            let isCompressed = habit == .compresses || habit == .compressesAndHolds
            if isCompressed, !text.contains("text/event-stream"), words.contains("text/event-stream") {
                piece = Array(
                    words.replacing("\r\n\r\n", with: "\r\nContent-Encoding: gzip\r\n\r\n", maxReplacements: 1).utf8)
                if habit == .compressesAndHolds, let end = piece.firstRange(of: Array("\r\n\r\n".utf8)) {
                    _ = piece.withUnsafeBytes { send(to, $0.baseAddress, end.upperBound, Int32(MSG_NOSIGNAL)) }
                    piece = []
                }
            }
            text += words
            kept += piece
            guard passes(text, pieces) || kept.count > 1 << 20 else { continue }
            if text.contains("event: stream:ready") { pieces += 1 }
            _ = kept.withUnsafeBytes { send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            kept = []
            if habit == .cuts, pieces > 2 { break }
        }
        shutdown(from, Int32(SHUT_RDWR))
        shutdown(to, Int32(SHUT_RDWR))
    }
}
