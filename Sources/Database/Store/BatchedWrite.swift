/// A write of one kind that a group performs for many items at once: one statement for all rows instead of one per row.
///
/// There is one object for each kind. ``DatabaseStore/write(lane:_:in:completion:)`` queues an item of it. The body
/// receives the items that meet in a group of writes, in the order in which they were queued, and returns the value of
/// each. If the body throws, all of them are rolled back, and each item is retried on its own. So the error of one item
/// does not affect the others.
///
/// The class is inlinable, so that it costs no more than code written for its concrete types.
public final class BatchedWrite<Item: Sendable, Value: Sendable>: Sendable {
    @usableFromInline let body: @Sendable (DatabaseConnection, [Item]) throws -> [Value]

    @inlinable
    public init(_ body: @escaping @Sendable (DatabaseConnection, [Item]) throws -> [Value]) { self.body = body }
}

/// A type-erased item of a batched write, with the receiver of its value.
@usableFromInline
protocol WriteShare: AnyObject, Sendable {
    /// The batch of the item. Items of the same batch are written together.
    var batch: AnyObject { get }

    /// Performs jobs of the batch together.
    func run(_ jobs: [WriteJob], on connection: DatabaseConnection) throws -> [WriteJob.Completion]
}

/// An item of a batched write, with the receiver of its value.
@usableFromInline
final class BatchShare<Item: Sendable, Value: Sendable>: WriteShare {
    @usableFromInline let write: BatchedWrite<Item, Value>
    @usableFromInline let item: Item
    @usableFromInline let completion: @Sendable (Result<Value, any Error>) -> Void

    @inlinable
    init(
        _ item: Item, of write: BatchedWrite<Item, Value>,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        (self.write, self.item, self.completion) = (write, item, completion)
    }

    @inlinable var batch: AnyObject { write }

    @inlinable
    func run(_ jobs: [WriteJob], on connection: DatabaseConnection) throws -> [WriteJob.Completion] {
        let values = try write.body(connection, jobs.map { Self.of($0).item })
        precondition(values.count == jobs.count, "each item must have a value")
        return jobs.indices.map { index in
            let (completion, value) = (Self.of(jobs[index]).completion, values[index])
            return { outcome in completion(outcome.map { value }) }
        }
    }

    @inlinable
    static func of(_ job: WriteJob) -> BatchShare {
        guard let share = job.share else { preconditionFailure("the job belongs to no batch") }
        // All shares of one batch have its type.
        return unsafeDowncast(share, to: BatchShare.self)
    }
}
