/// The last step of a group of writes, inside its transaction: what comes once for all of them, such as numbering what
/// they have left for it.
///
/// Whoever writes leaves an item for the step with the transaction (``Connection/leave(_:for:)``); before the group is
/// committed the step gets the items of all, in the order in which they were left.
public final class GroupStep<Item: Sendable>: AnyGroupStep {
    private let body: @Sendable (Connection, [Item]) throws -> Void

    public init(_ body: @escaping @Sendable (Connection, [Item]) throws -> Void) { self.body = body }

    func run(_ items: [any Sendable], in db: Connection) throws {
        // Items come by `leave(_:for:)` alone, which takes those of the step's type.
        try body(db, items.compactMap { $0 as? Item })
    }
}

/// A step whose items are of any type.
protocol AnyGroupStep: AnyObject, Sendable {
    func run(_ items: [any Sendable], in db: Connection) throws
}
