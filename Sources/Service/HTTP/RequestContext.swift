import Database
import MicroHTTP
import Values

/// A request that a transaction of its own or of its batch will answer, with everything that the transaction depends on.
/// It is a reference, because several closures keep it until the answer.
final class RequestContext: Sendable {
    typealias Completion = @Sendable (Result<Response, any Error>) -> Void

    let call: Call
    let endpoint: Endpoint
    let trace: RequestTrace
    /// What the audit log notes; nil for a caller without a privilege.
    let act: PrivilegedAct?
    /// The key of its stored answer; nil without an `Idempotency-Key`.
    let claim: Idempotency.Claim?
    /// The lock that its write takes first.
    let lock: LockKey?

    init(
        _ call: Call, _ endpoint: Endpoint, _ trace: RequestTrace, act: PrivilegedAct?,
        claim: Idempotency.Claim? = nil, lock: LockKey? = nil
    ) {
        (self.call, self.endpoint, self.trace) = (call, endpoint, trace)
        (self.act, self.claim, self.lock) = (act, claim, lock)
    }

    /// The lane of its write: writes that take the same lock wait for each other anyway.
    var lane: WriteLane { (lock ?? .user(call.caller.userId)).lane(in: call.caller.tenant) }
}

extension PrivilegedAct {
    /// Creates the act of a request; nil for a caller without a privilege.
    init?(_ call: Call, _ endpoint: Endpoint, _ trace: RequestTrace) {
        guard let privilege = call.caller.privilege else { return nil }
        self.init(
            privilege: privilege, actor: call.caller.userId, action: endpoint.name, requestId: trace.storedId,
            isAlwaysNoted: endpoint.access.isRoleBound || privilege == .service,
            isCounted: endpoint.countsCalls && privilege == .service, subject: call.subject(of: endpoint))
    }
}
