import CMicroHTTPD
import Glibc
import Threads

/// What other threads have for a reactor to do.
final class ReactorInbox: Sendable {
    enum Item {
        case answer(Request, suspension: UInt32, Response)
        case runAgain(Request, suspension: UInt32)
        case stop(deadline: UInt64)
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

    func take() -> [Item] {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return items.withLock { items in
            defer { items = [] }
            return items
        }
    }
}
