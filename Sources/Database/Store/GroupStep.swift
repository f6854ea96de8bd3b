/// The last step of a group of writes, inside its transaction. It does the work that is needed once for all of them,
/// such as numbering the items that they added.
///
/// A write adds an item with ``DatabaseConnection/leave(_:for:)``. Before the group is committed, the step receives the
/// items of all writes, in the order in which they were added.
public final class GroupStep<Item: Sendable>: AnyGroupStep {
    let order: Int
    private let body: @Sendable (DatabaseConnection, [Item]) throws -> Void

    /// - Parameter order: Its place among the steps; each step has its own. The step whose lock most groups wait for
    ///   comes last.
    public init(order: Int, _ body: @escaping @Sendable (DatabaseConnection, [Item]) throws -> Void) {
        (self.order, self.body) = (order, body)
    }

    func run(_ items: [any Sendable], in db: DatabaseConnection) throws {
        // Items are only added by `leave(_:for:)`, which accepts items of the step's type.
        try body(db, items.compactMap { $0 as? Item })
    }
}

/// A step with items of any type.
protocol AnyGroupStep: AnyObject, Sendable {
    var order: Int { get }
    func run(_ items: [any Sendable], in db: DatabaseConnection) throws
}
