import Database
import MicroHTTP

/// Requests of one kind whose rows are written together: those that have met in a group of writes are one transaction, and
/// few statements, for each backend that sent some.
///
/// There is one object for each kind.
final class RequestBatch<Item: Sendable>: Sendable {
    private struct Entry: Sendable {
        let item: Item
        let caller: Caller
        let runner: TransactionRunner
    }

    private let body: @Sendable (Transaction, [Item]) throws -> [Response]
    private let write: BatchedWrite<Entry, Response>

    /// - Parameter body: the response to each item, in their order. What it throws is the error of all of them, after which
    ///   each is done by itself.
    init(_ body: @escaping @Sendable (Transaction, [Item]) throws -> [Response]) {
        self.body = body
        write = BatchedWrite { db, entries in try Self.answer(entries, in: db, body) }
    }

    func request(_ item: Item) -> BatchedRequest {
        BatchedRequest(
            answerAlone: { [body] tx in try body(tx, [item])[0] },
            queue: { [write] caller, runner, lane, completion throws(StoreBusy) in
                let entry = Entry(item: item, caller: caller, runner: runner)
                try runner.store.write(lane: lane, entry, in: write, completion: completion)
            })
    }

    private static func answer(
        _ entries: [Entry], in db: Connection, _ body: (Transaction, [Item]) throws -> [Response]
    ) throws -> [Response] {
        guard let first = entries.first else { return [] }
        if entries.allSatisfy({ $0.caller.writesTogether(with: first.caller) }) {
            return try first.runner.write(as: first.caller, in: db) { try body($0, entries.map { $0.item }) }
        }
        // Of several backends: of each its own, and back in their order.
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
struct BatchedRequest: Sendable {
    typealias Completion = @Sendable (Result<Response, any Error>) -> Void

    /// Answers it in a transaction of its own.
    let answerAlone: @Sendable (Transaction) throws -> Response
    /// Queues it for the next group of writes of a lane.
    let queue: @Sendable (Caller, TransactionRunner, _ lane: Int, @escaping Completion) throws(StoreBusy) -> Void
}

extension Caller {
    /// Whether what both write may be one transaction: of one backend, which sees and writes the same in each. What users'
    /// requests publish is taken from their budget, request by request.
    fileprivate func writesTogether(with other: Caller) -> Bool {
        self === other
            || isService && other.isService && owner == other.owner && role == other.role
                && isOfAllTenants == other.isOfAllTenants && scope.keys == other.scope.keys
    }
}
