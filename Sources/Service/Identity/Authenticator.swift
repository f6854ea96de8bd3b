import Cryptography
import Logging
import Values

/// Verifies tokens, and caches the verified ones until they expire.
///
/// A key is bound to its algorithm: the token's header selects a key, but never how the key is used. No method blocks,
/// so all may be called on a reactor.
final class Authenticator: Sendable {
    /// The result for a token, or that its key must be fetched first. In that case, call the function of `pending` with a
    /// callback, and try again when the callback runs.
    enum Verdict<Value> {
        case known(Value)
        case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    }

    /// An issuer, with the keys that verify its tokens.
    private struct Authority: Sendable {
        let claims: Claims
        let secret: AuthenticationKey?
        let keys: SigningKeys?

        var rules: IssuerRules { claims.rules }
    }

    private let authorities: [Authority]
    private let bytesMax: Int
    private let serviceKeys: ServiceKeys
    private let clock: Clock
    let limiter: RateLimiter
    private let revocations: RevocationList
    private let generation: @Sendable () -> Int
    private let scoped: @Sendable (Caller) -> Caller
    let warnings: ClaimWarnings
    private let seen: @Sendable (Caller) -> Void
    private let logger: Logger
    private let verified = VerifiedTokens()

    /// - Parameters:
    ///   - generation: grows with every change of memberships; keys from an older generation are recomputed.
    ///   - scoped: returns the caller with its present keys.
    ///   - seen: receives the caller of each token when it is verified.
    /// - Throws: if a key file cannot be used.
    init(
        settings: Settings, clock: Clock, revocations: RevocationList, generation: @escaping @Sendable () -> Int,
        scoped: @escaping @Sendable (Caller) -> Caller, seen: @escaping @Sendable (Caller) -> Void = { _ in },
        metrics: MetricsRegistry, logger: Logger
    ) throws {
        bytesMax = settings.jwtBytes
        warnings = ClaimWarnings(metrics: metrics, logger: logger)
        serviceKeys = ServiceKeys(settings)
        (self.seen, self.logger) = (seen, logger)
        self.clock = clock
        self.revocations = revocations
        self.generation = generation
        self.scoped = scoped
        limiter = RateLimiter(
            limitUser: settings.rateLimitUser, limitService: settings.rateLimitService, shares: TenantShares(settings))
        authorities = try settings.issuers.map { [verified] rules throws(Settings.Mistake) in
            Authority(
                claims: Claims(settings: settings, rules: rules),
                secret: rules.secret.map { AuthenticationKey($0.utf8) },
                keys: try rules.keys.map { source throws(Settings.Mistake) in
                    try SigningKeys(source: source, clock: clock, logger: logger, replaced: verified.removeAll)
                })
        }
        Self.register(authorities.compactMap(\.keys), in: metrics)
        limiter.register(in: metrics, clock)
    }

    private static func register(_ keys: [SigningKeys], in metrics: MetricsRegistry) {
        guard !keys.isEmpty else { return }
        metrics.register { text in
            let counts = keys.map(\.counts)
            text.family(
                "bellhop_signing_keys", .gauge, "Keys of the issuers' key sets, by whether they can verify tokens.",
                by: "state",
                samples: [
                    ("used", counts.reduce(0) { $0 + $1.used }), ("skipped", counts.reduce(0) { $0 + $1.skipped }),
                ])
        }
    }

    /// Whether tokens can be verified at all.
    var isReady: Bool { authorities.contains { $0.secret != nil || $0.keys?.isLoaded == true } }

    /// - Parameter token: the bytes after `Bearer `.
    func verdict(on token: UnsafeBufferPointer<UInt8>, at now: Timestamp) throws(Failure) -> Verdict<Principal> {
        guard !token.isEmpty else {
            throw Claims.refusal("The Authorization header must contain a token after Bearer.")
        }
        guard token.count <= bytesMax else {
            throw Claims.refusal(
                "The token has \(token.count) bytes; \(bytesMax) are allowed (\(Settings.variable(\.$jwtBytes))).")
        }
        let hash = VerifiedTokens.hash(of: token)
        let (found, generation) = verified.find(hash, token)
        let principal: Principal
        if let found {
            principal = present(found)
        } else {
            switch try reportingRefusals({ () throws(Failure) in try read(token, at: now) }) {
            case .pending(let start): return .pending(start)
            case .known(let caller):
                principal = present(
                    Principal(caller: caller, generation: -1, allowance: limiter.allowance(of: caller, at: clock.now()))
                )
            }
        }
        if principal !== found { verified.store(principal, hash: hash, token: token, generation: generation) }
        try revocations.requireValid(principal.caller, at: now)
        return .known(principal)
    }

    /// Verifies a token that is not known yet, and returns its caller.
    private func read(_ token: UnsafeBufferPointer<UInt8>, at now: Timestamp) throws(Failure) -> Verdict<Caller> {
        if let backend = serviceKeys.caller(of: token) { return .known(backend) }
        switch try verify(token) {
        case .pending(let start): return .pending(start)
        case .known(let (payload, signer, claims)):
            let caller = try claims.caller(of: payload, signedBy: signer, at: now)
            warnings.note(payload, of: caller, by: claims)
            seen(caller)
            return .known(caller)
        }
    }

    /// Logs why a token is refused: usually a setting is wrong. The log limits such lines, which anyone can cause. An
    /// expired token is nothing unusual.
    private func reportingRefusals<Value>(_ read: () throws(Failure) -> Value) throws(Failure) -> Value {
        do throws(Failure) {
            return try read()
        } catch {
            if error.kind == .unauthenticated, error.code != Claims.Refusal.expired.rawValue {
                logger.warning(
                    "A token was refused.",
                    metadata: [
                        "reason": "\(error.detail)",
                        "accepted": "\(authorities.map(\.rules.requirements).joined(separator: "; "))",
                    ])
            }
            throw error
        }
    }

    /// Returns the principal with the caller's present keys.
    private func present(_ principal: Principal) -> Principal {
        let generation = generation()
        guard principal.generation != generation else { return principal }
        return Principal(caller: scoped(principal.caller), generation: generation, allowance: principal.allowance)
    }

    // MARK: The signature

    private func verify(
        _ token: UnsafeBufferPointer<UInt8>
    ) throws(Failure) -> Verdict<(payload: JSONValue, signer: Claims.Signer, claims: Claims)> {
        let token = try SignedToken(token)
        try token.requireAccessToken()
        let payload = try token.claims()
        let authority = try authority(of: payload)
        if token.algorithm == "HS256" {
            guard let secret = authority.secret else {
                throw Claims.refusal(
                    "The token's algorithm (HS256) needs a secret, but the service has only public keys.", .notOurs)
            }
            guard token.isSigned(by: secret) else {
                throw Claims.refusal("The token's signature (HS256) is invalid: its secret is another one.", .notOurs)
            }
            return .known((payload, .secret, authority.claims))
        }
        let algorithm = token.algorithm.prefix(20)
        guard let keys = authority.keys else {
            throw Claims.refusal(
                "The token's algorithm (\(algorithm)) needs an issuer's public keys, but the service has only a secret.",
                .notOurs)
        }
        let id = try token.keyId()
        switch keys.find(id) {
        case .fetching: return .pending { keys.refresh($0) }
        case .unavailable:
            throw Failure(
                .unavailable, "keys.unavailable", "The issuer's keys could not be fetched yet. Try again later.",
                retryAfterSeconds: Int(Limits.keyFetchPauseSeconds))
        case .unknown:
            let name = id.map { "named “\($0.prefix(100))” (kid)" } ?? "without a name (kid)"
            throw Claims.refusal("The token was signed with an unknown key, \(name).", .notOurs)
        case .found(let keys):
            guard keys.contains(where: { $0.algorithm == token.algorithm }) else {
                throw Claims.refusal(
                    "The token's algorithm (\(algorithm)) is not its key's (\(keys[0].algorithm)).", .notOurs)
            }
            guard keys.contains(where: token.isSigned) else {
                throw Claims.refusal("The token's signature is invalid.", .notOurs)
            }
            return .known((payload, .issuer, authority.claims))
        }
    }

    /// Returns the issuer whose keys must have signed a token, by a claim that is not verified yet.
    private func authority(of payload: JSONValue) throws(Failure) -> Authority {
        guard case .object(let members) = payload else {
            throw Claims.refusal("The token's payload is not a JSON object.")
        }
        guard let authority = IssuerRules.of(members["iss"], among: authorities, rules: \.rules) else {
            throw Claims.notOurs("iss", members["iss"])
        }
        return authority
    }
}

extension Authenticator {
    /// Returns the identity in a token, for a request that asks about the token rather than for its holder.
    func identity(of token: String) throws(Failure) -> Verdict<Principal> {
        var token = token
        return try token.withUTF8 { utf8 in Result { () throws(Failure) in try verdict(on: utf8, at: clock.machine()) }
        }
        .get()
    }

    /// What opening and renewing a stream requires of a backend.
    static let streamCapability = Capability.read

    /// Admits a stream, whose token may be in a header, a cookie or a body. Opening a stream counts as a request;
    /// otherwise a client that reconnects in a loop would not be limited.
    ///
    /// - Parameter note: Receives the principal and the state of its rate limit, which the request's answer shows.
    func admit(
        _ token: String, note: (Principal, RateBucket.State?) -> Void = { _, _ in }
    ) throws(Failure) -> Verdict<Principal> {
        let verdict = try identity(of: token)
        guard case .known(let principal) = verdict else { return verdict }
        let rate = principal.allowance?.take(at: clock.now())
        note(principal, rate)
        if let rate, !rate.isAllowed { throw .rateLimited(rate) }
        try Self.streamCapability.require(principal.caller)
        return verdict
    }

    /// Returns the caller of a token in a request's body.
    ///
    /// - Throws: `invalid` if the token is refused, `unavailable` while its key is being fetched.
    static func caller(
        ofBody verdict: () throws(Failure) -> Verdict<Principal>, pendingCode: String
    ) throws(Failure) -> Caller {
        let found: Verdict<Principal>
        do throws(Failure) {
            found = try verdict()
        } catch {
            throw Failure.invalid("/token", error.detail)
        }
        switch found {
        case .known(let principal): return principal.caller
        case .pending(let start):
            start {}
            throw Failure(
                .unavailable, pendingCode, "The token's key is being fetched. Try again later.", retryAfterSeconds: 1)
        }
    }
}

/// An authenticated caller, with the state that each of its requests needs.
final class Principal: Sendable {
    let caller: Caller
    /// The generation of memberships that the caller's keys were computed from; see ``Authenticator``.
    let generation: Int
    /// Nil means no limit.
    let allowance: RateAllowance?

    init(caller: Caller, generation: Int, allowance: RateAllowance?) {
        self.caller = caller
        self.generation = generation
        self.allowance = allowance
    }
}
