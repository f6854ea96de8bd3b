import Foundation
import Glibc
import TestSupport

/// A proxy between a replica and PostgreSQL that forwards nothing while the network is cut. As with an unplugged
/// cable, neither side is notified.
///
/// `@unchecked Sendable`: the variables are only accessed while `condition` is locked.
final class PartitionProxy: @unchecked Sendable {
    private let listener: LoopbackListener
    let target: Int
    /// Guards the variables below.
    private let condition = NSCondition()
    private var isCut = false
    private var descriptors: [Int32] = []

    init(to target: Int) throws {
        self.target = target
        listener = try LoopbackListener()
        listener.serve { [self] client in serve(client) }
    }

    var port: Int { listener.port }

    func cut() { condition.withLock { isCut = true } }

    /// Restores the network. Data sent meanwhile is delivered.
    func heal() {
        condition.withLock { isCut = false }
        condition.broadcast()
    }

    func stop() {
        heal()
        listener.stop()
        for descriptor in condition.withLock({ descriptors }) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func serve(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        _ = connectToLoopback(server, port: target)
        condition.withLock { descriptors += [client, server] }
        Thread.detachNewThread { [self] in carry(server, client) }
        carry(client, server)
    }

    private func carry(_ from: Int32, _ to: Int32) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = read(from, &buffer, buffer.count)
            condition.withLock { while isCut { condition.wait() } }
            guard count > 0 else { break }
            _ = buffer.withUnsafeBytes { send(to, $0.baseAddress, count, Int32(MSG_NOSIGNAL)) }
        }
        shutdown(from, Int32(SHUT_RDWR))
        shutdown(to, Int32(SHUT_RDWR))
    }
}
