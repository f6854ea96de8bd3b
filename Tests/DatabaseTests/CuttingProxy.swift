import Foundation
import Glibc
import TestSupport

/// A proxy between a client and PostgreSQL that cuts the connection around a COMMIT, as a network failure can.
///
/// `@unchecked Sendable`: the variables are only accessed while `lock` is held.
final class CuttingProxy: @unchecked Sendable {
    enum Cut: Sendable {
        /// The server never receives the COMMIT.
        case beforeCommit
        /// The server executes the COMMIT, but the client receives no answer.
        case afterCommit
    }

    private let listener: LoopbackListener
    private let target: Int
    /// Guards the variables below.
    private let lock = NSLock()
    private var armed: Cut?
    private var count = 0
    private var descriptors: [Int32] = []

    init(to target: Int) throws {
        self.target = target
        listener = try LoopbackListener()
        listener.serve { [self] client in serve(client) }
    }

    var port: Int { listener.port }

    /// Arms a cut at the next COMMIT.
    func arm(_ cut: Cut) { lock.withLock { armed = cut } }

    var cuts: Int { lock.withLock { count } }

    func stop() {
        listener.stop()
        for descriptor in lock.withLock({ descriptors }) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func serve(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        _ = connectToLoopback(server, port: target)
        lock.withLock { descriptors += [client, server] }
        Thread.detachNewThread { [self] in carry(server, client) { _ in nil } }
        carry(client, server) { bytes in isCut(bytes) }
    }

    /// Returns the armed cut if these bytes of the client contain a COMMIT, and disarms it.
    private func isCut(_ bytes: ArraySlice<UInt8>) -> Cut? {
        guard bytes.contains(UInt8(ascii: "C")), String(decoding: bytes, as: UTF8.self).contains("COMMIT") else {
            return nil
        }
        return lock.withLock {
            defer { armed = nil }
            if armed != nil { count += 1 }
            return armed
        }
    }

    private func carry(_ from: Int32, _ to: Int32, _ cut: (ArraySlice<UInt8>) -> Cut?) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = read(from, &buffer, buffer.count)
            guard count > 0 else { break }
            let what = cut(buffer[..<count])
            if what != .beforeCommit {
                _ = buffer.withUnsafeBytes { send(to, $0.baseAddress, count, Int32(MSG_NOSIGNAL)) }
            }
            if what == .afterCommit {
                // Cuts off the client first. The server can still read the bytes sent to it.
                shutdown(from, Int32(SHUT_RDWR))
                shutdown(to, Int32(SHUT_WR))
                return
            }
            if what != nil { break }
        }
        shutdown(from, Int32(SHUT_RDWR))
        shutdown(to, Int32(SHUT_RDWR))
    }
}
