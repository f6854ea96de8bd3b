import Database
import Domain
import MicroHTTP
import Rows
import Synchronization
import Values
import Visibility

extension ChangesFeature {
    static func endpoints(_ parts: Parts?) -> [Endpoint] {
        [
            Endpoint(
                .post, "/v1/changes", access: .feed, query: ["format"], bodyBytesMax: ChangeLimits.bodyBytesMax,
                Endpoint.serving(parts, takeChanges))
        ]
    }

    /// `POST /v1/changes`: table changes in any form that is known. 202: they are on disk, and on their way.
    ///
    /// What is wrong with one item rejects that item alone: a feed that is refused as a whole because of one row would
    /// send the same again for ever.
    @Sendable private static func takeChanges(_ call: Call, _ parts: Parts) throws -> Answer {
        guard !parts.isCongested() else {
            throw Failure(
                .unavailable, "changes.congested", "Streams are told more slowly than changes come.",
                retryAfterSeconds: 1)
        }
        let format = try call.query.string("format").map { name throws(Failure) in
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
            var intake = try ChangeIntake(parts.memberships, batch, tx)
            try intake.run()
            let result = intake.result
            tx.afterCommit {
                parts.metrics.accepted.add(result.accepted, ordering: .relaxed)
                parts.metrics.duplicates.add(result.duplicates, ordering: .relaxed)
                parts.metrics.rejected.add(result.rejected.count, ordering: .relaxed)
            }
            return Response.json(202, result)
        }
    }
}
