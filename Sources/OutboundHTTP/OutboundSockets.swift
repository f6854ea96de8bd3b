#if canImport(Glibc)
    import CCurl
    import Glibc

    /// The sockets of a client's connections, and when something arrived on each.
    ///
    /// A peer that freezes keeps its connection open. libcurl ends a request on it at its timeout, and sends the next one
    /// by the same connection, without end. So a connection on which a request got no byte until its timeout is shut.
    /// Everything runs on the client's thread.
    final class OutboundSockets {
        private var open: Set<curl_socket_t> = []
        /// By the local port.
        private var heardAt: [Int: ContinuousClock.Instant] = [:]

        func opened(_ socket: curl_socket_t) {
            if socket >= 0 { open.insert(socket) }
        }

        func close(_ socket: curl_socket_t) -> Int32 {
            if let port = Self.localPort(of: socket) { heardAt[port] = nil }
            open.remove(socket)
            return Glibc.close(socket)
        }

        func heard(_ port: Int) { heardAt[port] = .now }

        /// Shuts the connection that leaves by a port, unless something arrived on it since a time. libcurl then ends its
        /// other requests, and opens a new connection for the next one.
        func shut(_ port: Int, ifSilentSince time: ContinuousClock.Instant) {
            if let last = heardAt[port], last >= time { return }
            for socket in open where Self.localPort(of: socket) == port { shutdown(socket, Int32(SHUT_RDWR)) }
        }

        private static func localPort(of socket: curl_socket_t) -> Int? {
            var address = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            return withUnsafeMutablePointer(to: &address) { storage in
                storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    guard getsockname(socket, generic, &length) == 0 else { return nil }
                    // The port is at the same place in both families.
                    return generic.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                        Int(UInt16(bigEndian: $0.pointee.sin_port))
                    }
                }
            }
        }
    }
#endif
