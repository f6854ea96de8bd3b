import CMicroHTTPD
import Glibc

/// Listening sockets.
enum SocketAddress {
    /// Opens one listening socket for each reactor, on one port. The kernel spreads connections over them.
    ///
    /// The first socket binds exclusively before others of this process share its port. Otherwise two services that are
    /// started at the same time could share the port, each with a part of the connections.
    static func listen(
        host: String, port: Int, count: Int, backlog: Int
    ) throws(ServerError) -> (descriptors: [Int32], port: Int) {
        guard UInt16(exactly: port) != nil else {
            throw ServerError(description: "\(port) is not a port: use 0 to 65535")
        }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, "\(port)", &hints, &list)
        guard result == 0, let first = list else {
            throw ServerError(
                description: "host \(host) is not an address of this machine: \(String(cString: gai_strerror(result)))")
        }
        defer { freeaddrinfo(first) }
        var descriptors: [Int32] = []
        var bound = port
        do {
            for _ in 0..<count {
                let isFirst = descriptors.isEmpty
                let descriptor = try open(first.pointee, port: bound, shared: !isFirst, backlog: backlog, host: host)
                descriptors.append(descriptor)
                bound = self.port(of: descriptor)
                if isFirst, count > 1 { _ = cmhd_set_integer(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
            }
        } catch {
            for descriptor in descriptors { close(descriptor) }
            throw error
        }
        return (descriptors, bound)
    }

    private static func open(
        _ info: addrinfo, port: Int, shared: Bool, backlog: Int, host: String
    ) throws(ServerError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(info.ai_family, type, 0)
        guard descriptor >= 0 else { throw failure("open a socket", host, port) }
        _ = cmhd_set_integer(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        if shared { _ = cmhd_set_integer(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
        var storage = sockaddr_storage()
        let length = info.ai_addrlen
        let isBound = withUnsafeMutableBytes(of: &storage) { bytes -> Bool in
            bytes.copyMemory(from: UnsafeRawBufferPointer(start: info.ai_addr, count: Int(length)))
            // The port is at the same offset in both address families.
            let big = UInt16(port).bigEndian
            bytes.storeBytes(of: big, toByteOffset: 2, as: UInt16.self)
            guard let start = bytes.baseAddress else { return false }
            return bind(descriptor, start.assumingMemoryBound(to: sockaddr.self), length) == 0
        }
        guard isBound, Glibc.listen(descriptor, Int32(backlog)) == 0 else {
            let error = failure("listen", host, port)
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func failure(_ what: String, _ host: String, _ port: Int) -> ServerError {
        let code = errno
        let reason =
            switch code {
            case EADDRINUSE: "another process is already listening there"
            case EACCES: "this user has no permission (ports below 1024 require root)"
            case EADDRNOTAVAIL: "the address does not belong to this machine"
            default: String(cString: strerror(code))
            }
        return ServerError(
            description: "cannot \(what) on \(host):\(port): \(reason)", isAddressInUse: code == EADDRINUSE)
    }

    private static func port(of descriptor: Int32) -> Int {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes -> Int in
            guard let start = bytes.baseAddress,
                getsockname(descriptor, start.assumingMemoryBound(to: sockaddr.self), &length) == 0
            else { return 0 }
            return Int(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
        }
    }
}

extension ServerConfiguration {
    /// Checks that a server could listen on the address now, by listening on it for a moment.
    public func requireFreeAddress() throws(ServerError) {
        for descriptor in try SocketAddress.listen(host: host, port: port, count: 1, backlog: 1).descriptors {
            close(descriptor)
        }
    }
}
