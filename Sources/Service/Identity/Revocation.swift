import Realtime
import Synchronization
import Threads
import Values

/// Which tokens are no longer valid. Each is of one tenant: a service revokes among its own users.
struct Revocation: Sendable, Hashable {
    enum Kind: String, CaseIterable {
        case token, session, user

        func subject(of caller: Caller) -> String? {
            switch self {
            case .token: caller.tokenId
            case .session: caller.sessionId
            case .user: caller.userId.text
            }
        }
    }

    let tenant: ID<Tenant>
    let kind: Kind
    /// The id of the token, of the session or of the user.
    let subject: String
    /// Of a user, every token that was issued before; nil for a token and a session, which are revoked for ever.
    var issuedBefore: Timestamp?

    func covers(_ caller: Caller) -> Bool {
        caller.tenant == tenant && kind.subject(of: caller).hasBytes(of: subject)
            && issuedBefore.map { caller.issuedAt < $0 } ?? true
    }
}

/// The revocations in force, asked for every request and every opening of a stream.
final class RevocationList: Sendable {
    private struct Key: Hashable {
        let tenant: ID<Tenant>
        let kind: Revocation.Kind
        let subject: ID<Revocation>

        init(tenant: ID<Tenant>, kind: Revocation.Kind, subject: String) {
            (self.tenant, self.kind, self.subject) = (tenant, kind, ID(subject))
        }
    }

    /// Tokens are revoked that were issued before.
    private let moments = Locked([Key: Timestamp]())
    /// Lets the usual answer, that nothing is revoked, cost no lock.
    private let isEmpty = Atomic<Bool>(true)
    /// Whether others can have revoked what is not known here, longer than is allowed.
    private let isOutdated = Atomic<Bool>(false)

    /// The code of a refusal where nobody knows here whether a token was revoked.
    static let unknownCode = "revocations.unknown"

    init(_ revocations: [Revocation] = []) { insert(revocations) }

    func insert(_ revocations: [Revocation]) {
        moments.withLock { moments in
            for revocation in revocations {
                let key = Key(tenant: revocation.tenant, kind: revocation.kind, subject: revocation.subject)
                let moment = revocation.issuedBefore ?? Timestamp(microseconds: .max)
                moments[key] = max(moment, moments[key] ?? moment)
            }
            isEmpty.store(moments.isEmpty, ordering: .releasing)
        }
    }

    func isRevoked(_ caller: Caller) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        return moments.withLock { moments in
            Revocation.Kind.allCases.contains { kind in
                guard let subject = kind.subject(of: caller),
                    let moment = moments[Key(tenant: caller.tenant, kind: kind, subject: subject)]
                else { return false }
                return caller.issuedAt < moment
            }
        }
    }

    // MARK: Whether the list is to be trusted

    var isTrusted: Bool { !isOutdated.load(ordering: .acquiring) }

    /// What replicas have revoked meanwhile has not arrived here. Whether that is new.
    func distrust() -> Bool { !isOutdated.exchange(true, ordering: .acquiringAndReleasing) }

    /// Everything has arrived. Whether that is new.
    func trust() -> Bool { isOutdated.exchange(false, ordering: .acquiringAndReleasing) }

    func register(in metrics: MetricsRegistry) {
        metrics.register { [self] text in
            text.single(
                "bellhop_revocations_trusted", .gauge,
                "0 while other replicas can have revoked tokens that are not known here.", isTrusted ? 1 : 0)
        }
    }

    /// - Throws: `unauthenticated`, where the caller's token is over or revoked; `unavailable`, where nobody knows here.
    func requireValid(_ caller: Caller, at now: Timestamp) throws(Failure) {
        guard isTrusted else {
            throw Failure(
                .unavailable, Self.unknownCode, "Whether the token was revoked is not known here at the moment.",
                retryAfterSeconds: Limits.revocationsRetrySeconds)
        }
        guard caller.expiresAt > now else { throw Claims.expired }
        guard !isRevoked(caller) else { throw Claims.refusal("The token was revoked.", .revoked) }
    }
}

extension Revocation {
    /// The event by which replicas learn of it, which no stream receives.
    static let event: StaticString = "bellhop:revoked"

    /// As the event has it; the tenant is the event's own.
    var json: [UInt8] {
        JSONWriter.object { writer in
            writer.key("\(kind.rawValue)Id")
            writer.value(subject)
            if let issuedBefore { writer.member("issuedBefore", issuedBefore.microseconds) }
        }
    }

    /// Nil for what no version of the service has written.
    init?(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data) else { return nil }
        let moment = members.integer("issuedBefore").map(Timestamp.init(microseconds:))
        for kind in Kind.allCases {
            guard let subject = members.string("\(kind.rawValue)Id"), kind != .user || moment != nil else { continue }
            self.init(tenant: event.tenant, kind: kind, subject: subject, issuedBefore: moment)
            return
        }
        return nil
    }
}
