import Database
import MicroHTTP
import Values

/// A request on its way from its handler to its answer, with everything that its transaction depends on.
struct RequestContext: Sendable {
    typealias Completion = @Sendable (Result<Response, any Error>) -> Void

    let call: Call
    let endpoint: Endpoint
    let trace: RequestTrace
    /// The key of its stored answer; nil without an `Idempotency-Key`.
    let claim: Idempotency.Claim?
    /// What the audit log notes; nil for a caller without a privilege.
    var act: PrivilegedAct?
    /// The lock that its write takes first.
    var lock: LockKey?

    init(_ call: Call, _ endpoint: Endpoint, _ trace: RequestTrace) throws(Failure) {
        (self.call, self.endpoint, self.trace) = (call, endpoint, trace)
        claim = endpoint.method == .get ? nil : try Idempotency.claim(of: call, route: endpoint.name)
        act = call.caller.privilege.map { privilege in
            PrivilegedAct(
                privilege: privilege, actor: call.caller.userId, action: endpoint.name, requestId: trace.storedId,
                isAlwaysNoted: endpoint.access.isRoleBound || privilege == .service,
                isCounted: endpoint.countsCalls && privilege == .service, subject: call.subject(of: endpoint))
        }
    }

    /// The lane of its write: writes that take the same lock wait for each other anyway.
    var lane: WriteLane { (lock ?? .user(call.caller.userId)).lane(in: call.caller.tenant) }

    /// Returns the request as a read that the audit log notes; nil if the settings do not ask for reads.
    func audited(by reader: TransactionReader) -> RequestContext? {
        let read = act?.reading(as: call.caller, reader, isRoleBound: endpoint.access.isRoleBound)
        guard let read else { return nil }
        var audited = self
        audited.act = read
        return audited
    }
}
