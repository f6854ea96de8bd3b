import Foundation
import Glibc
import Synchronization

/// A listening TCP socket on the loopback interface that serves each connection on a thread of its own.
public final class LoopbackListener: Sendable {
    public struct Unusable: Error {}

    public let port: Int
    private let descriptor: Int32
    private let isServing = Atomic<Bool>(false)

    public init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            // The socket calls take a `sockaddr_in` as a `sockaddr`; the length distinguishes the two.
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw Unusable() }
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// Accepts connections until the listener is stopped. Call this once. The handler of a connection owns its
    /// descriptor.
    public func serve(_ connection: @escaping @Sendable (Int32) -> Void) {
        isServing.store(true, ordering: .relaxed)
        Thread.detachNewThread { [descriptor] in
            // The accepting thread closes the descriptor. If `stop` closed it, another listener could reuse the
            // number while this thread still accepts on it.
            defer { close(descriptor) }
            while true {
                let accepted = accept(descriptor, nil, nil)
                guard accepted >= 0 else { return }
                Thread.detachNewThread { connection(accepted) }
            }
        }
    }

    /// Stops the listener. Call this once.
    public func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        if !isServing.load(ordering: .relaxed) { close(descriptor) }
    }
}

/// Connects a TCP socket to a port of the loopback interface. Returns whether the connection was established.
public func connectToLoopback(_ descriptor: Int32, port: Int) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    address.sin_port = UInt16(port).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
}
