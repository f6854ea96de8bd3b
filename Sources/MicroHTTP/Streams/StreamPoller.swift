import CMicroHTTPD
import Glibc

/// The system calls for sockets, in the form that the stream table needs.
struct StreamPoller: ~Copyable {
    private let descriptor: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>

    /// Events per call. Further events come with the next call; this only bounds the memory.
    private static var eventsMax: Int { 256 }
    /// The key of the inbox's descriptor. No stream has it, because indices are far smaller.
    private static var wakeKey: UInt64 { .max }

    init(wakeDescriptor: Int32) throws(ServerError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw ServerError("epoll_create1", errno) }
        var event = epoll_event()
        event.events = EPOLLIN.rawValue | EPOLLET.rawValue
        event.data.u64 = Self.wakeKey
        guard epoll_ctl(descriptor, EPOLL_CTL_ADD, wakeDescriptor, &event) == 0 else {
            let code = errno
            Glibc.close(descriptor)
            throw ServerError("epoll_ctl", code)
        }
        events = .allocate(capacity: Self.eventsMax)
        events.initialize(repeating: epoll_event())
    }

    deinit {
        events.deallocate()
        Glibc.close(descriptor)
    }

    /// Watches a socket in both directions, edge-triggered. Writability is reported only after the socket was full, so
    /// a stalled stream needs no further call.
    func add(_ socket: Int32, key: UInt64) -> Bool {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        event.data.u64 = key
        return epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event) == 0
    }

    func remove(_ socket: Int32) {
        var unused = epoll_event()
        _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, &unused)
    }

    func wait(milliseconds: Int32, _ body: (_ key: UInt64, _ flags: UInt32) -> Void) {
        let count = epoll_wait(descriptor, events.baseAddress, Int32(events.count), milliseconds)
        guard count > 0 else { return }
        for event in events[..<Int(count)] where event.data.u64 != Self.wakeKey { body(event.data.u64, event.events) }
    }

    /// Discards input from a client without copying it. Returns its size.
    @discardableResult
    func ignoreInput(of socket: Int32, bytesMax: Int) -> Int {
        var total = 0
        while total < bytesMax {
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_TRUNC)
            let count = recv(socket, nil, 16 * 1024, flags)
            guard count > 0 else { break }
            total += count
        }
        return total
    }

    func error(of socket: Int32) -> Int32 {
        var (code, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        return getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno
    }

    private static var sendFlags: Int32 { Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT) }

    /// Sends bytes. Returns the number that the kernel accepted, 0 if the socket is full, or the negative error code.
    @inline(__always)
    func send(_ bytes: UnsafeMutableRawPointer, _ count: Int, to socket: Int32) -> Int {
        Self.outcome { Glibc.send(socket, bytes, count, Self.sendFlags) }
    }

    func send(_ pieces: UnsafeMutableBufferPointer<iovec>, to socket: Int32) -> Int {
        var message = msghdr()
        message.msg_iov = pieces.baseAddress
        message.msg_iovlen = pieces.count
        return Self.outcome { sendmsg(socket, &message, Self.sendFlags) }
    }

    @inline(__always)
    private static func outcome(of call: () -> Int) -> Int {
        while true {
            let sent = call()
            if sent >= 0 { return sent }
            switch errno {
            case EINTR: continue
            // A memory shortage of the kernel is treated like a full socket: the heartbeat retries.
            case EAGAIN, ENOBUFS, ENOMEM: return 0
            case let code: return -Int(code)
            }
        }
    }
}
