import Database
import MicroHTTP

/// Requests of one kind that are written together. The requests of one backend in a group of writes become one
/// transaction with few statements.
///
/// There is one object for each kind.
final class RequestBatch<Item: Sendable>: Sendable {
    private struct Entry: Sendable {
        let item: Item
        let caller: Caller
        let runner: TransactionRunner
        let act: PrivilegedAct?
    }

    private let body: @Sendable (Transaction, [Item]) throws -> [Response]
    private let write: BatchedWrite<Entry, Response>

    /// - Parameter body: returns the response to each item, in their order. If it throws, each item is retried on its
    ///   own.
    init(_ body: @escaping @Sendable (Transaction, [Item]) throws -> [Response]) {
        self.body = body
        write = BatchedWrite { db, entries in try Self.answer(entries, in: db, body) }
    }

    func request(_ item: Item) -> any BatchedRequest { Batched(item: item, batch: self) }

    private struct Batched: BatchedRequest {
        let item: Item
        let batch: RequestBatch

        func answer(in tx: Transaction) throws -> Response { try batch.body(tx, [item])[0] }

        func enqueue(
            _ request: RequestContext, by runner: TransactionRunner, completion: @escaping RequestContext.Completion
        ) throws(StoreBusy) {
            let entry = Entry(item: item, caller: request.call.caller, runner: runner, act: request.act)
            try runner.store.write(lane: request.lane, entry, in: batch.write, completion: completion)
        }
    }

    private static func answer(
        _ entries: [Entry], in db: DatabaseConnection, _ body: (Transaction, [Item]) throws -> [Response]
    ) throws -> [Response] {
        guard let first = entries.first else { return [] }
        if entries.allSatisfy({ $0.caller.writesTogether(with: first.caller) }) {
            return try first.runner.write(
                as: first.caller, in: db, for: PerformedRequests(acts: entries.compactMap(\.act))
            ) {
                try body($0, entries.map { $0.item })
            }
        }
        // With several backends, each backend's items are written separately, and the responses are restored to the
        // original order.
        var responses = [Response?](repeating: nil, count: entries.count)
        var waiting = Array(entries.indices)
        while let first = waiting.first.map({ entries[$0] }) {
            let own = waiting.filter { entries[$0].caller.writesTogether(with: first.caller) }
            let made = try answer(own.map { entries[$0] }, in: db, body)
            for (index, response) in zip(own, made) { responses[index] = response }
            waiting.removeAll { responses[$0] != nil }
        }
        return responses.compactMap(\.self)
    }
}

/// One request of a batch.
protocol BatchedRequest: Sendable {
    /// Answers the request in a transaction of its own.
    func answer(in tx: Transaction) throws -> Response
    /// Queues the request for the next group of writes of its lane.
    func enqueue(
        _ request: RequestContext, by runner: TransactionRunner, completion: @escaping RequestContext.Completion
    ) throws(StoreBusy)
}

extension Caller {
    /// Returns whether both requests may share a transaction: they do if one backend sent both with the same access.
    /// Events of users' requests count against their budgets, request by request.
    fileprivate func writesTogether(with other: Caller) -> Bool {
        self === other
            || isService && other.isService && owner == other.owner && role == other.role
                && spansTenants == other.spansTenants && scope.keys == other.scope.keys
    }
}
