import CMicroHTTPD
import Glibc
import Threads

/// The queue of work from other threads for a reactor.
final class ReactorInbox: Sendable {
    enum Item {
        case answer(Request, suspension: UInt32, Response)
        case runAgain(Request, suspension: UInt32)
        case piece(Request, suspension: UInt32, PieceBody.Piece)
        /// From now on, each answer is the last of its connection.
        case drain
        /// Reports the end of the turn that takes it.
        case turn(@Sendable () -> Void)
        case stop(Ending)
    }

    /// The deadlines for stopping a reactor, in monotonic nanoseconds.
    struct Ending {
        /// The deadline of open requests.
        let deadline: UInt64
        /// The deadline of connections without a request, because one may be on its way.
        let idleUntil: UInt64
    }

    /// An eventfd that is readable if the queue is not empty.
    let descriptor: Int32
    private let items = Locked<[Item]>([])

    init() {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        precondition(descriptor >= 0, "no file descriptor is left for an inbox")
    }

    deinit { close(descriptor) }

    func post(_ item: Item) {
        let isFirst = items.withLock { items in
            items.append(item)
            return items.count == 1
        }
        // The first producer wakes the reactor; the next ones need not, until it has read the queue.
        if isFirst { eventfd_write(descriptor, 1) }
    }

    /// Waits for work, or for the time limit.
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
