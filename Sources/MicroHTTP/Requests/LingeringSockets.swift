import CMicroHTTPD
import Glibc

/// Sockets that libmicrohttpd has closed, whose clients may still be sending unwanted bytes.
///
/// Closing a socket with unread bytes sends a reset, and a reset destroys the answer on its way to the client. So
/// incoming bytes are discarded until the client has closed its end too, for a bounded time (RFC 9112 §9.6; nginx calls
/// it a lingering close).
struct LingeringSockets {
    /// How long a client may continue. Many clients read no answer before they have sent everything.
    private static let seconds: UInt64 = 10
    /// Further sockets are closed at once. Without this limit, refused clients would take all descriptors.
    private static let countMax = 256
    /// Four times the largest body that any route accepts. Without this limit, a client that never stops sending
    /// occupies the reactor.
    private static let bytesMax = 32 << 20

    private let pollDescriptor: Int32
    /// The deadline of each socket, and the number of bytes that it may still send.
    private var sockets: [Int32: (end: UInt64, bytes: Int)] = [:]

    /// Creates the set.
    ///
    /// - Parameter pollDescriptor: The epoll descriptor that watches the sockets. Its events are passed to
    ///   ``drain(_:)``.
    init(pollDescriptor: Int32) { self.pollDescriptor = pollDescriptor }

    /// Duplicates the descriptor of the socket, as ``StreamHandOff`` does.
    mutating func add(_ descriptor: Int32, _ now: UInt64) {
        guard sockets.count < Self.countMax, case let own = cmhd_duplicate(descriptor), own >= 0 else { return }
        shutdown(own, Int32(SHUT_WR))
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = own
        sockets[own] = (now + Self.seconds * 1_000_000_000, Self.bytesMax)
        if epoll_ctl(pollDescriptor, EPOLL_CTL_ADD, own, &event) != 0 { remove(own) }
    }

    /// Discards the received bytes.
    mutating func drain(_ descriptor: Int32) {
        guard let socket = sockets[descriptor] else { return }
        let count = recv(descriptor, nil, 1 << 20, Int32(MSG_TRUNC) | Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0, count < socket.bytes else { return remove(descriptor) }
        sockets[descriptor]?.bytes -= count
    }

    mutating func removeOverdue(_ now: UInt64) {
        for (descriptor, socket) in sockets where socket.end <= now { remove(descriptor) }
    }

    mutating func removeAll() {
        for descriptor in sockets.keys { remove(descriptor) }
    }

    private mutating func remove(_ descriptor: Int32) {
        sockets[descriptor] = nil
        close(descriptor)
    }
}
