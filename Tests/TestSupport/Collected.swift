import Foundation

/// A list that several threads append to, with a wait for a number of elements.
///
/// `@unchecked Sendable`: `elements` is only accessed while `condition` is locked.
public final class Collected<Element: Sendable>: @unchecked Sendable {
    /// Guards `elements`.
    private let condition = NSCondition()
    private var elements: [Element] = []

    public init() {}

    public func append(_ element: Element) { append(contentsOf: [element]) }

    public func append(contentsOf more: [Element]) {
        condition.withLock {
            elements += more
            condition.broadcast()
        }
    }

    public var all: [Element] { condition.withLock { elements } }

    /// Waits up to ``patience`` until there are `count` elements. Returns the elements collected by then.
    public func wait(for count: Int) -> [Element] {
        condition.withLock {
            let deadline = Date().addingTimeInterval(patience / .seconds(1))
            while elements.count < count, condition.wait(until: deadline) {}
            return elements
        }
    }
}
