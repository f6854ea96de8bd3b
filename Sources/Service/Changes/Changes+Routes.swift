import Database
import Domain
import MicroHTTP
import Synchronization
import Visibility

extension ChangesFeature {
    static func endpoints(_ tables: TableRegister?) -> [Endpoint] {
        func serving(
            _ handler: @escaping @Sendable (Call, TableRegister) throws -> Answer
        ) -> @Sendable (Call) throws -> Answer {
            { call in
                guard let tables else { throw Failure(.unavailable, "unavailable", "This process takes no changes.") }
                return try handler(call, tables)
            }
        }
        return [
            Endpoint(
                .post, "/v1/changes", access: .feed, bodyBytesMax: ChangeLimits.bodyBytesMax, serving(takeChanges))
        ]
    }

    /// `POST /v1/changes`: table changes in any form that is known. 202: they are on disk, and on their way.
    ///
    /// What is wrong with one item rejects that item alone: a feed that is not heard as a whole because of one row would
    /// send the same again for ever.
    @Sendable private static func takeChanges(_ call: Call, _ tables: TableRegister) throws -> Answer {
        guard !tables.isCongested else {
            throw Failure(
                .unavailable, "changes.congested", "Streams are told more slowly than changes come.",
                retryAfterSeconds: 1)
        }
        let query = try call.query(["format"])
        let format = try query.string("format").map { name throws(Failure) in
            guard let format = ChangeFormat(rawValue: name) else {
                let known = ChangeFormat.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure.invalid("?format", "is none of \(known)")
            }
            return format
        }
        let delivery = try ChangeDelivery(headers: call.request.headers.lazy.map { ($0.name, $0.value) })
        guard delivery.isJSON else { throw Call.notJSON }
        let batch = try ChangeBatch(reading: call.request.body, delivery: delivery, format: format)
        return .write { tx in
            var intake = try ChangeIntake(tables, batch, tx)
            try intake.run()
            let result = intake.result
            tx.afterCommit {
                tables.metrics.accepted.add(result.accepted, ordering: .relaxed)
                tables.metrics.duplicates.add(result.duplicates, ordering: .relaxed)
                tables.metrics.rejected.add(result.rejected.count, ordering: .relaxed)
            }
            return Response.json(202, JSONWriter.bytes(result))
        }
    }
}
