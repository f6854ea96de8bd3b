import Crypto
import Domain
import Foundation
import JWTKit
import Logging
import Rows
import Values
import Visibility

/// What is known of callers' memberships, for whoever authenticates them.
struct CallerMemberships: Sendable {
    /// Grows whenever memberships change: keys that were made from an older one are made again.
    let generation: @Sendable () -> Int
    /// The caller with the keys that it has now.
    let scoped: @Sendable (Caller) -> Caller
}

/// Verifies tokens, and caches those it has verified until they expire.
///
/// A key is pinned to its algorithm: the token's header chooses among the keys, never how a key is used. Nothing here
/// blocks, so it may be called on a reactor.
final class Authenticator: Sendable {
    enum Verdict {
        case principal(Principal)
        case refused(Failure)
        /// The keys are being fetched: start with a callback, and ask again when it comes.
        case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    }

    private let claims: Claims
    private let clock: Clock
    let limiter: RateLimiter
    private let revocations: RevocationList
    private let memberships: CallerMemberships
    private let secret: SymmetricKey?
    private let keys: SigningKeys?
    private let verified = VerifiedTokens()

    init(
        settings: Settings, clock: Clock, revocations: RevocationList, memberships: CallerMemberships, logger: Logger
    ) {
        claims = Claims(settings: settings)
        self.clock = clock
        self.revocations = revocations
        self.memberships = memberships
        limiter = RateLimiter(limitUser: settings.rateLimitUser, limitService: settings.rateLimitService)
        secret = settings.jwtSecret.map { SymmetricKey(data: Data($0.utf8)) }
        keys = settings.jwks.map { [verified] source in
            SigningKeys(source: source, clock: clock, logger: logger) { verified.removeAll() }
        }
        keys?.refresh {}
    }

    /// Whether tokens can be verified at all.
    var isReady: Bool { secret != nil || keys?.isLoaded == true }

    /// - Parameter token: the bytes after `Bearer `.
    func verdict(on token: UnsafeBufferPointer<UInt8>) -> Verdict {
        guard !token.isEmpty, token.count <= Limits.tokenBytesMax else {
            return .refused(Claims.refusal("There is no usable token after Bearer."))
        }
        let now = clock.now()
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(token))
        let hash = hasher.finalize()
        let (found, generation) = verified.find(hash, token)
        if let found {
            let present = scoped(found)
            if present !== found { verified.store(present, hash, token, generation) }
            return check(present, now)
        }
        do {
            let payload: JSONValue
            switch try verify(token) {
            case .verified(let verified): payload = verified
            case .pending(let start): return .pending(start)
            }
            let caller = try claims.caller(of: payload, at: now)
            let principal = scoped(
                Principal(caller: caller, generation: -1, bucket: limiter.bucket(for: caller, at: now)))
            verified.store(principal, hash, token, generation)
            return check(principal, now)
        } catch {
            return .refused(error)
        }
    }

    private func check(_ principal: Principal, _ now: Timestamp) -> Verdict {
        guard principal.caller.expiresAt > now else { return .refused(Claims.refusal("The token has expired.")) }
        guard !revocations.isRevoked(principal.caller) else {
            return .refused(Claims.refusal("The token was revoked."))
        }
        return .principal(principal)
    }

    /// The same with the keys that the caller has now.
    private func scoped(_ principal: Principal) -> Principal {
        let generation = memberships.generation()
        guard principal.generation != generation else { return principal }
        return Principal(caller: memberships.scoped(principal.caller), generation: generation, bucket: principal.bucket)
    }

    // MARK: The signature

    private enum Verification {
        case verified(JSONValue)
        case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    }

    private func verify(_ token: UnsafeBufferPointer<UInt8>) throws(Failure) -> Verification {
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let head = RFC4648.decodeURL(parts[0]), let body = RFC4648.decodeURL(parts[1]),
            let signature = RFC4648.decodeURL(parts[2])
        else { throw Claims.refusal("The token is no JWT.") }
        let signed = Array(token[..<parts[1].endIndex])
        let header = try Self.parse(head)
        guard case .object(let members) = header, case .string(let algorithm)? = members["alg"] else {
            throw Claims.refusal("The token names no algorithm.")
        }
        // RFC 7515, 4.1.11: what must be understood and is not, makes the token invalid.
        guard members["crit"] == nil else { throw Claims.refusal("The token has critical headers.") }
        if algorithm == "HS256" {
            guard let secret,
                HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: signed, using: secret)
            else { throw Claims.refusal("The token's signature is not valid.") }
            return .verified(try Self.parse(body))
        }
        guard let keys else { throw Claims.refusal("The token's algorithm is not accepted.") }
        var keyId: String?
        if case .string(let id)? = members["kid"] { keyId = id }
        switch keys.find(keyId) {
        case .fetching: return .pending { keys.refresh($0) }
        case .unavailable:
            throw Failure(
                .unavailable, "keys.unavailable", "The issuer's keys could not be fetched yet.",
                retryAfterSeconds: Int(Limits.keyFetchPauseSeconds))
        case .unknown: throw Claims.refusal("The token's key is not known.")
        case .found(let key):
            guard key.algorithm == algorithm, (try? key.verifier.verify(signature, signs: signed)) == true else {
                throw Claims.refusal("The token's signature is not valid.")
            }
            return .verified(try Self.parse(body))
        }
    }

    private static func parse(_ bytes: [UInt8]) throws(Failure) -> JSONValue {
        do {
            return try JSONValue(parsing: bytes)
        } catch {
            throw Claims.refusal("The token holds no JSON.")
        }
    }
}

extension Authenticator {
    /// Whom a token speaks for: for whoever asks about it, and not for its holder.
    func identity(of token: String) -> Verdict {
        var token = token
        return token.withUTF8 { verdict(on: $0) }
    }

    /// For streams, whose token may stand in a header, a cookie or a body. An opening is a request like any other: it
    /// counts, or a client that reconnects in a loop would be bounded by nothing.
    func verdict(on token: String) -> TokenVerdict {
        switch identity(of: token) {
        case .principal(let principal): admitted(principal)
        case .refused(let failure): .refused(failure)
        case .pending(let start): .pending(start)
        }
    }

    private func admitted(_ principal: Principal) -> TokenVerdict {
        guard let rate = principal.bucket?.take(at: clock.now()), !rate.isAllowed else {
            return .caller(principal.caller)
        }
        return .refused(.rateLimited(rate))
    }
}
