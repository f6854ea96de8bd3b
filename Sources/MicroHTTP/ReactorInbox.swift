import CMicroHTTPD
import Foundation

/// What other threads tell a reactor.
///
/// `@unchecked Sendable`: `items` is only touched while `lock` is held.
final class ReactorInbox: @unchecked Sendable {
    enum Item {
        case answer(Request, suspension: UInt32, Response)
        case runAgain(Request, suspension: UInt32)
        case stop(deadline: UInt64)
    }

    /// Readable when there is something to take.
    let descriptor: Int32
    /// Guards `items`.
    private let lock = NSLock()
    private var items: [Item] = []

    init() {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        precondition(descriptor >= 0, "no descriptor is left for an inbox")
    }

    deinit { close(descriptor) }

    func post(_ item: Item) {
        let isFirst = lock.withLock {
            items.append(item)
            return items.count == 1
        }
        // Whoever finds it empty wakes the reactor; those who come before it looks need not.
        if isFirst { eventfd_write(descriptor, 1) }
    }

    func take() -> [Item] {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return lock.withLock {
            defer { items = [] }
            return items
        }
    }
}
