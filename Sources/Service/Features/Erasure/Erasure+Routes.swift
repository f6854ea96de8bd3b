import Domain
import MicroHTTP
import Values

extension ErasureFeature {
    static func endpoints(_ parts: Parts?, exported tables: [PersonRows]) -> [Endpoint] {
        [
            Endpoint(
                .delete, "/v1/users/{id}", access: .adminOrService, needs: .erase, subject: .path, decidesAccess: true,
                Endpoint.serving(parts, erase)),
            Endpoint(
                .get, "/v1/users/{id}/erasure", access: .adminOrService, needs: .erase, Endpoint.serving(parts, show)),
            Endpoint(.get, "/v1/users/{id}/export", access: .service, needs: .erase, subject: .path) {
                try export($0, tables)
            },
        ]
    }

    /// `DELETE /v1/users/{id}`: refuses the person's tokens at once, and erases everything about the person soon. An
    /// erasure that is not done begins again, and refuses the tokens that were issued meanwhile.
    @Sendable private static func erase(_ call: Call, _ parts: Parts) throws -> Answer {
        let userId = try person(call)
        let owner = Owner(tenant: call.caller.tenant, userId: userId)
        let (mark, encryptedId) = (parts.seal.mark(of: owner), parts.seal.encrypt(owner))
        return .write { tx in
            if try find(mark, tx)?.isOpen != true, try countOpen(tx) >= ErasureLimits.openMax {
                throw Failure(
                    .rateLimited, "erasure.too_many",
                    "\(ErasureLimits.openMax) erasures of this tenant are not done yet. Try again later.",
                    retryAfterSeconds: Int(ErasureLimits.roundSeconds))
            }
            try insert(mark, encryptedId, tx)
            tx.erased.insert(userId)
            tx.record(.personLeft(userId, mark: mark))
            parts.router.revoke(.ofErased(mark, in: tx.tenant, at: tx.now), in: tx)
            // A round without this erasure, which begins again.
            tx.afterCommit { parts.gate.lookAgain() }
            return response(202, try find(mark, tx).required("erasure"), of: userId)
        }
    }

    @Sendable private static func show(_ call: Call, _ parts: Parts) throws -> Answer {
        let userId = try person(call)
        let mark = parts.seal.mark(of: Owner(tenant: call.caller.tenant, userId: userId))
        return .read { tx in response(200, try find(mark, tx).required("erasure"), of: userId) }
    }

    /// The answer is not stored for its idempotency key, because it names the person.
    private static func response(_ status: Int, _ erasure: Erasure, of userId: ID<User>) -> Response {
        var headers: HeaderFields = [("Cache-Control", "no-store")]
        if status == 202 { headers.append("Location", "/v1/users/\(Response.encoded(userId.text))/erasure") }
        return Response.json(status, headers: headers) { writer in
            writer.member("userId", userId)
            writer.member("state", erasure.doneAt == nil ? "pending" : "done")
            writer.member("requestedAt", erasure.requestedAt)
            writer.member("doneAt", erasure.doneAt)
        }
    }

    /// Returns the person in the path.
    static func person(_ call: Call) throws -> ID<User> {
        let userId = try call.pathUser(0)
        guard !userId.isOfErased else { throw Failure.notFound("user") }
        return userId
    }
}
