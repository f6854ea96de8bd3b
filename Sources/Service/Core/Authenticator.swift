import Crypto
import Domain
import Foundation
import JWTKit
import Logging
import Synchronization
import Visibility

/// Who has proved to be whom, with what every request of theirs needs.
final class Principal: Sendable {
    let caller: Caller
    /// What was known of memberships when the caller's keys were made: see `TableRegister.generation`.
    let generation: Int
    /// Nil: no limit.
    let bucket: RateBucket?

    init(caller: Caller, generation: Int, bucket: RateBucket?) {
        self.caller = caller
        self.generation = generation
        self.bucket = bucket
    }
}

/// Verifies tokens, and remembers those it has verified until they expire.
///
/// A key is pinned to its algorithm: the token's header chooses among the keys, never how a key is used. Nothing here
/// blocks, so it may be called on a reactor.
///
/// `@unchecked Sendable`: the tables and their generation are only touched while `lock` is held; `keys` is set once, in
/// the initializer.
final class Authenticator: @unchecked Sendable {
    enum Verdict {
        case principal(Principal)
        case refused(Failure)
        /// The keys are being fetched: start with a callback, and ask again when it comes.
        case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    }

    private struct Entry {
        let token: [UInt8]
        let principal: Principal

        /// Two tokens may share a hash: only the bytes prove that this is the one that was verified.
        func holds(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
            token.count == other.count
                && token.withUnsafeBufferPointer { own in
                    guard let left = own.baseAddress, let right = other.baseAddress else { return false }
                    return memcmp(left, right, other.count) == 0
                }
        }
    }

    private let claims: Claims
    private let clock: Clock
    let limiter: RateLimiter
    private let revocations: RevocationList
    private let tables: TableRegister
    private let secret: SymmetricKey?
    private var keys: SigningKeys?
    /// Guards the two tables. The young one takes what is verified; when it is full it becomes the old one, and what
    /// is still asked for moves back. So the least used half goes, and no list of uses is kept.
    private let lock = NSLock()
    private var young: [Int: Entry] = [:]
    private var old: [Int: Entry] = [:]
    /// Grows when the keys are replaced: what was verified by the keys before is not remembered after.
    private var generation = 0

    init(settings: Settings, clock: Clock, revocations: RevocationList, tables: TableRegister, logger: Logger) {
        claims = Claims(settings: settings)
        self.clock = clock
        self.revocations = revocations
        self.tables = tables
        limiter = RateLimiter(limitUser: settings.rateLimitUser, limitService: settings.rateLimitService)
        secret = settings.jwtSecret.map { SymmetricKey(data: Data($0.utf8)) }
        guard let source = settings.jwks else { return }
        keys = SigningKeys(source: source, clock: clock, logger: logger) { [weak self] in self?.forgetAll() }
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
        let (found, generation) = remembered(hash, token)
        if let found {
            let present = scoped(found)
            if present !== found { remember(hash, Entry(token: Array(token), principal: present), generation) }
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
            remember(hash, Entry(token: Array(token), principal: principal), generation)
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

    /// The same with the keys that the caller holds now.
    private func scoped(_ principal: Principal) -> Principal {
        let generation = tables.generation.load(ordering: .acquiring)
        guard principal.generation != generation else { return principal }
        return Principal(caller: tables.scoped(principal.caller), generation: generation, bucket: principal.bucket)
    }

    // MARK: The memory

    private func remembered(_ hash: Int, _ token: UnsafeBufferPointer<UInt8>) -> (Principal?, generation: Int) {
        lock.withLock {
            if let entry = young[hash] { return (entry.holds(token) ? entry.principal : nil, generation) }
            guard let entry = old[hash], entry.holds(token) else { return (nil, generation) }
            old[hash] = nil
            insert(hash, entry)
            return (entry.principal, generation)
        }
    }

    private func remember(_ hash: Int, _ entry: Entry, _ generation: Int) {
        lock.withLock {
            if generation == self.generation { insert(hash, entry) }
        }
    }

    /// Call with the lock held.
    private func insert(_ hash: Int, _ entry: Entry) {
        if young.count >= Limits.verifiedTokensMax / 2 {
            old = young
            young = [:]
        }
        young[hash] = entry
    }

    private func forgetAll() {
        lock.withLock {
            young = [:]
            old = [:]
            generation += 1
        }
    }

    // MARK: The signature

    private enum Verification {
        case verified(JSONValue)
        case pending(@Sendable (_ resume: @escaping @Sendable () -> Void) -> Void)
    }

    private func verify(_ token: UnsafeBufferPointer<UInt8>) throws(Failure) -> Verification {
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64URL.decode(parts[0]), let body = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
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
