import Foundation

/// A gate that blocks threads until a test opens it.
///
/// `@unchecked Sendable`: `hasOpened` is only accessed while `condition` is locked.
public final class Gate: @unchecked Sendable {
    /// Guards `hasOpened`.
    private let condition = NSCondition()
    private var hasOpened = false

    public init() {}

    public var isOpen: Bool { condition.withLock { hasOpened } }

    public func open() {
        condition.withLock {
            hasOpened = true
            condition.broadcast()
        }
    }

    public func wait() {
        condition.withLock { while !hasOpened { condition.wait() } }
    }
}
