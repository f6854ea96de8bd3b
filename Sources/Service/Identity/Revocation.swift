import Realtime
import Synchronization
import Threads
import Values

/// A revocation of tokens. It belongs to one tenant: a service revokes tokens of its own users.
struct Revocation: Sendable, Hashable {
    enum Kind: String, CaseIterable {
        case token, session, user
        /// An erased user, whose id is known only as a mark (``PersonSeal``).
        case person
        /// A user by the mark, in the event log and in memory.
        case sealed

        /// Whether its subject is the mark of a user.
        var isByMark: Bool { self == .person || self == .sealed }

        func subject(of caller: Caller, _ seal: PersonSeal? = nil) -> String? {
            switch self {
            case .token: caller.tokenId
            case .session: caller.sessionId
            // A backend is revoked by its token. Otherwise a caller with rights on a user could end a backend with the
            // same id.
            case .user: caller.isService ? nil : caller.userId.text
            case .person, .sealed: caller.isService ? nil : seal?.mark(of: caller.owner)
            }
        }
    }

    let tenant: ID<Tenant>
    let kind: Kind
    /// The id of the token, of the session or of the user, or the mark of an erased user.
    let subject: String
    /// For a user, every token issued before this time is revoked. Nil for a token or a session, which is revoked for
    /// good.
    var issuedBefore: Timestamp?

    /// The revocation of an erased user's tokens. An issuer's clock may be ahead of ours, so the tokens that seem to come
    /// from the next seconds may be earlier ones, and are refused too.
    static func ofErased(_ mark: String, in tenant: ID<Tenant>, at now: Timestamp) -> Revocation {
        Revocation(
            tenant: tenant, kind: .person, subject: mark,
            issuedBefore: now.adding(seconds: Limits.clockSkewSeconds + 1))
    }

    func covers(_ caller: Caller, _ seal: PersonSeal? = nil) -> Bool {
        // The time first: the mark of a caller costs a hash.
        caller.tenant == tenant && issuedBefore.map { caller.issuedAt < $0 } ?? true
            && kind.subject(of: caller, seal).hasBytes(of: subject)
    }

    /// The revocation of a user by the user's mark, for the event log: an erasure removes the events that name the user,
    /// and a replica may read a revocation later than that.
    func sealed(by seal: PersonSeal?) -> Revocation {
        guard kind == .user, let seal else { return self }
        let mark = seal.mark(of: Owner(tenant: tenant, userId: ID(subject)))
        return Revocation(tenant: tenant, kind: .sealed, subject: mark, issuedBefore: issuedBefore)
    }
}

/// The revocations in force, checked at every request and every opening of a stream.
final class RevocationList: Sendable {
    private struct Key: Hashable {
        let tenant: ID<Tenant>
        let kind: Revocation.Kind
        let subject: ID<Revocation>

        init(tenant: ID<Tenant>, kind: Revocation.Kind, subject: String) {
            (self.tenant, self.kind, self.subject) = (tenant, kind, ID(subject))
        }
    }

    /// Tokens issued before these times are revoked.
    private let moments = Locked([Key: Timestamp]())
    /// Makes the usual case, no revocation at all, lock-free.
    private let isEmpty = Atomic<Bool>(true)
    /// Whether users were erased. Only then is the mark of each caller computed.
    private let hasErased = Atomic<Bool>(false)
    let seal: PersonSeal?
    /// Revocations of other replicas are known up to this time, in nanoseconds after `madeAt`.
    private let knownUntil = Atomic<Int64>(.max)
    private let madeAt = ContinuousClock.now

    /// The code of a refusal while it is unknown here whether a token was revoked.
    static let unknownCode = "revocations.unknown"

    /// - Parameter seal: recognizes erased users; nil without erased users
    init(_ revocations: [Revocation] = [], seal: PersonSeal? = nil) {
        self.seal = seal
        insert(revocations)
    }

    func insert(_ revocations: [Revocation]) {
        moments.withLock { moments in
            for revocation in revocations {
                let key = Key(tenant: revocation.tenant, kind: revocation.kind, subject: revocation.subject)
                let moment = revocation.issuedBefore ?? Timestamp(microseconds: .max)
                moments[key] = max(moment, moments[key] ?? moment)
            }
            isEmpty.store(moments.isEmpty, ordering: .releasing)
            if revocations.contains(where: \.kind.isByMark) {
                hasErased.store(true, ordering: .releasing)
            }
        }
    }

    /// Removes a revocation, whatever its moment. That of an erased user stays.
    func remove(_ revocation: Revocation) {
        let forms = [revocation, revocation.sealed(by: seal)]
        moments.withLock { moments in
            for form in forms { moments[Key(tenant: form.tenant, kind: form.kind, subject: form.subject)] = nil }
        }
    }

    func isRevoked(_ caller: Caller) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        // Computed outside the lock, for which all requests wait.
        let mark = hasErased.load(ordering: .acquiring) ? Revocation.Kind.person.subject(of: caller, seal) : nil
        return moments.withLock { moments in
            Revocation.Kind.allCases.contains { kind in
                guard let subject = kind.isByMark ? mark : kind.subject(of: caller),
                    let moment = moments[Key(tenant: caller.tenant, kind: kind, subject: subject)]
                else { return false }
                return caller.issuedAt < moment
            }
        }
    }

    // MARK: Whether the list is up to date

    /// How old the known revocations may be. While a replica cannot read the log, a token that another replica has
    /// revoked is accepted for at most this time. A shorter one would refuse tokens whenever the database is slow.
    static let trusted: Duration = .seconds(5)

    /// Whether the list is up to date. The clock decides, and not the thread that reads the log: a process that was
    /// suspended must not accept tokens before that thread has continued.
    var isTrusted: Bool {
        let known = knownUntil.load(ordering: .acquiring)
        return known == .max || madeAt.duration(to: .now) <= .nanoseconds(known) + Self.trusted
    }

    /// Records that all revocations of other replicas up to a time are known. Without a call, there are no others.
    func follow(until time: ContinuousClock.Instant) {
        knownUntil.store(Int64(madeAt.duration(to: time) / .nanoseconds(1)), ordering: .releasing)
    }

    func register(in metrics: MetricsRegistry) {
        metrics.register { [self] text in
            text.single(
                "bellhop_revocations_trusted", .gauge,
                "1 if the revocations of all replicas are known, else 0.", value: isTrusted ? 1 : 0)
        }
    }

    /// - Throws: `unauthenticated` if the caller's token has expired or was revoked; `unavailable` while the list is
    ///   outdated.
    func requireValid(_ caller: Caller, at now: Timestamp) throws(Failure) {
        guard isTrusted else {
            throw Failure(
                .unavailable, Self.unknownCode,
                "The service cannot check at the moment whether the token was revoked. Try again later.",
                retryAfterSeconds: Limits.revocationsRetrySeconds)
        }
        guard caller.expiresAt > now else { throw Claims.expired(at: caller.expiresAt, now) }
        guard !isRevoked(caller) else { throw Claims.refusal("The token has been revoked.", .revoked) }
    }
}

extension Revocation {
    /// The event that informs replicas of a revocation; no stream delivers it. It does not name a user (``sealed(by:)``).
    static let event: StaticString = "bellhop:revoked"
    /// The event that informs replicas that a revocation was lifted.
    static let lifted: StaticString = "bellhop:revocation-lifted"

    /// The event's data; the tenant is the event's own.
    var json: [UInt8] {
        JSONWriter.object { writer in
            writer.key("\(kind.rawValue)Id")
            writer.value(subject)
            if let issuedBefore { writer.member("issuedBefore", issuedBefore.microseconds) }
        }
    }

    /// Returns nil if the event was not written by any version of the service.
    init?(_ event: StreamEvent) {
        guard case .object(let members)? = try? JSONValue(parsing: event.data) else { return nil }
        let moment = members.integer("issuedBefore").map(Timestamp.init(microseconds:))
        for kind in Kind.allCases {
            guard let subject = members.string("\(kind.rawValue)Id"),
                kind != .user || moment != nil || event.name == "\(Self.lifted)"
            else { continue }
            self.init(tenant: event.tenant, kind: kind, subject: subject, issuedBefore: moment)
            return
        }
        return nil
    }
}
