import CMicroHTTPD
import Glibc
import Threads

/// What other threads have for a reactor to do.
final class ReactorInbox: Sendable {
    enum Item {
        case answer(Request, suspension: UInt32, Response)
        case runAgain(Request, suspension: UInt32)
        /// Each answer is the last of its connection from here on.
        case drain
        /// Reports the end of the turn that takes it.
        case turn(@Sendable () -> Void)
        case stop(Ending)
    }

    /// When a reactor is done, in monotonic nanoseconds.
    struct Ending {
        /// For those whose requests are under way.
        let deadline: UInt64
        /// For connections without a request: one may be on its way.
        let idleUntil: UInt64
    }

    /// Readable when there is something to take.
    let descriptor: Int32
    private let items = Locked<[Item]>([])

    init() {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        precondition(descriptor >= 0, "no descriptor is left for an inbox")
    }

    deinit { close(descriptor) }

    func post(_ item: Item) {
        let isFirst = items.withLock { items in
            items.append(item)
            return items.count == 1
        }
        // Whoever finds it empty wakes the reactor; those who come before it looks need not.
        if isFirst { eventfd_write(descriptor, 1) }
    }

    /// Waits until there is something to take, or the time is over.
    func wait(milliseconds: Int32) {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&ready, 1, milliseconds)
    }

    func take() -> [Item] {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return items.withLock { items in
            defer { items = [] }
            return items
        }
    }
}
