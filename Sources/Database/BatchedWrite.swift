/// Writes of one kind, of which a group does all together: the rows of many by one statement, and not by one each.
///
/// There is one object for each kind. ``Store/write(lane:_:in:completion:)`` queues an item of it; the body gets those
/// that have met in a group of writes, in the order in which they were queued, and gives the value of each. Where it
/// throws, nothing of them is stored, and each is done again by itself: so the error of one is no other's.
///
/// Inlinable, so that it costs no more than if it were written for the types it is used with.
public final class BatchedWrite<Item: Sendable, Value: Sendable>: Sendable {
    @usableFromInline let body: @Sendable (Connection, [Item]) throws -> [Value]

    @inlinable
    public init(_ body: @escaping @Sendable (Connection, [Item]) throws -> [Value]) { self.body = body }
}

/// An item of a batched write with whom its value is for, whatever their types.
@usableFromInline
protocol WriteShare: AnyObject, Sendable {
    /// What it is written together with is of the same batch.
    var batch: AnyObject { get }

    /// Does jobs of the batch together.
    func run(_ jobs: [WriteJob], on connection: Connection) throws -> [WriteJob.Answer]
}

/// An item of a batched write with whom its value is for.
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
    func run(_ jobs: [WriteJob], on connection: Connection) throws -> [WriteJob.Answer] {
        let values = try write.body(connection, jobs.map { Self.of($0).item })
        precondition(values.count == jobs.count, "each item has a value")
        return jobs.indices.map { index in
            let (completion, value) = (Self.of(jobs[index]).completion, values[index])
            return { outcome in completion(outcome.map { value }) }
        }
    }

    @inlinable
    static func of(_ job: WriteJob) -> BatchShare {
        guard let share = job.share else { preconditionFailure("a job of no batch") }
        // Those of one batch have its type.
        return unsafeDowncast(share, to: BatchShare.self)
    }
}
