import Foundation
import JWTKit
import Logging
import Threads
import Values

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The issuer's public keys, from a file or a URL.
///
/// A key set is fetched at start, again after its lifetime, and for a key id that it does not have: one fetch at a time,
/// at most one in ten seconds, while those who wait for it are suspended. As long as the issuer is away, the keys known
/// go on serving.
struct SigningKeys: Sendable {
    /// A key with the one algorithm it may be used with (RFC 8725, 3.1).
    struct Key: Sendable {
        let algorithm: String
        let verifier: any JWTAlgorithm
    }

    enum Lookup {
        case found(Key)
        case unknown
        /// Nothing was ever fetched.
        case unavailable
        case fetching
    }

    let source: String
    let clock: Clock
    let logger: Logger
    /// Called after the keys were replaced.
    let replaced: @Sendable () -> Void
    private let state = Locked(State())

    private struct State {
        var keys: [String: Key]?
        var isFetching = false
        var attemptedAt: Int64 = .min
        var fetchedAt: Int64 = .min
        var waiting: [@Sendable () -> Void] = []

        func isDue(_ now: Int64) -> Bool {
            !isFetching && (attemptedAt == .min || now >= attemptedAt + Limits.keyFetchPauseSeconds)
        }

        /// Whether the caller is to fetch now.
        mutating func begin(_ now: Int64) -> Bool {
            guard isDue(now) else { return false }
            (isFetching, attemptedAt) = (true, now)
            return true
        }
    }

    var isLoaded: Bool { state.withLock { $0.keys != nil } }

    /// - Parameter id: the token's `kid`; nil fits a set of one key.
    func find(_ id: String?) -> Lookup {
        let now = clock.now().seconds
        var isBegun = false
        defer { if isBegun { fetch() } }
        return state.withLock { state in
            let key = id.map { state.keys?[$0] } ?? (state.keys?.count == 1 ? state.keys?.first?.value : nil)
            if let key {
                isBegun = now >= state.fetchedAt + Limits.keySetLifetimeSeconds && state.begin(now)
                return .found(key)
            }
            if state.isFetching || state.isDue(now) { return .fetching }
            return state.keys == nil ? .unavailable : .unknown
        }
    }

    /// Fetches, unless that has just been done, and calls back when asking again makes sense.
    func refresh(_ resume: @escaping @Sendable () -> Void) {
        let now = clock.now().seconds
        let (isBegun, isWaiting) = state.withLock { state in
            let isBegun = state.begin(now)
            if state.isFetching { state.waiting.append(resume) }
            return (isBegun, state.isFetching)
        }
        if isBegun { fetch() }
        if !isWaiting { resume() }
    }

    private func fetch() {
        Task.detached {
            do {
                finish(try await Self.load(source))
            } catch {
                logger.error("The signing keys could not be fetched.", metadata: ["reason": "\(error)"])
                finish(nil)
            }
        }
    }

    private func finish(_ found: [String: Key]?) {
        let now = clock.now().seconds
        let resumed = state.withLock { state in
            if let found {
                state.keys = found
                state.fetchedAt = now
            }
            state.attemptedAt = now
            state.isFetching = false
            defer { state.waiting = [] }
            return state.waiting
        }
        if let found {
            logger.info("The signing keys are here.", metadata: ["keys": "\(found.count)"])
            replaced()
        }
        for resume in resumed { resume() }
    }

    // MARK: Reading a key set

    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    private static func load(_ source: String) async throws -> [String: Key] {
        let data = try await bytes(of: source)
        guard data.count <= Limits.keySetBytesMax else { throw Unusable(description: "the document is too large") }
        return try await keys(in: data)
    }

    private static func bytes(of source: String) async throws -> Data {
        guard source.hasPrefix("http://") || source.hasPrefix("https://") else {
            return try Data(contentsOf: URL(fileURLWithPath: source))
        }
        guard let url = URL(string: source) else { throw Unusable(description: "\(source) is no URL") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = Limits.keyFetchTimeoutSeconds
        configuration.timeoutIntervalForResource = Limits.keyFetchTimeoutSeconds
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        let (data, response) = try await session.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
            throw Unusable(description: "the issuer answered \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        }
        return data
    }

    static func keys(in document: Data) async throws -> [String: Key] {
        let set = try JSONDecoder().decode(JWKS.self, from: document)
        guard set.keys.count <= Limits.signingKeysMax else { throw Unusable(description: "there are too many keys") }
        let collection = JWTKeyCollection()
        var keys: [String: Key] = [:]
        for (index, jwk) in set.keys.enumerated() {
            guard let algorithm = algorithm(of: jwk) else { continue }
            var jwk = jwk
            let id = jwk.keyIdentifier ?? JWKIdentifier(string: "\(index)")
            jwk.keyIdentifier = id
            try await collection.add(jwk: jwk)
            keys[id.string] = Key(
                algorithm: algorithm, verifier: try await collection.getKey(for: id, alg: algorithm))
        }
        guard !keys.isEmpty else { throw Unusable(description: "there is no public key of a known kind in it") }
        return keys
    }

    /// The algorithm that a key names, else the one its type is made for; nil for symmetric and unknown keys: a shared
    /// secret has no place in a published set.
    private static func algorithm(of jwk: JWK) -> String? {
        if let named = jwk.algorithm?.rawValue { return asymmetric.contains(named) ? named : nil }
        switch jwk.keyType {
        case .rsa: return "RS256"
        case .octetKeyPair: return "EdDSA"
        case .ecdsa: return jwk.curve.flatMap { ["P-256": "ES256", "P-384": "ES384", "P-521": "ES512"][$0.rawValue] }
        default: return nil
        }
    }

    private static let asymmetric: Set<String> = [
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    ]
}
