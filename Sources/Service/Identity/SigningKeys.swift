import Foundation
import Logging
import OutboundHTTP
import Threads
import Values

/// An issuer's public keys, from a file, an address, or the address in its OpenID configuration.
///
/// A key set is fetched at the start, again after its lifetime, and when a token names an unknown key id. One fetch
/// runs at a time, at most once in ten seconds, while requests that wait for it are suspended. While the issuer is
/// unreachable, the known keys stay in use. A file must be usable at the start, because nothing would repair it later.
struct SigningKeys: Sendable {
    enum Lookup {
        /// All keys with the token's `kid`; usually one.
        case found([SigningKey])
        case unknown
        /// Nothing was fetched yet, or the issuer publishes no usable key.
        case unavailable
        case fetching
    }

    let source: KeySource
    let clock: Clock
    let logger: Logger
    /// Called after the keys changed: verified tokens may have been signed by a withdrawn key.
    let replaced: @Sendable () -> Void
    private let state = Locked(State())

    private struct State {
        var set: KeySet?
        var isFetching = false
        /// Both by the clock's uptime.
        var attemptedAt: Duration?
        var fetchedAt: Duration = .zero
        /// The address that the issuer's configuration named last.
        var discovered: OutboundURL?
        var waiting: [@Sendable () -> Void] = []

        func isDue(_ now: Duration) -> Bool {
            guard let attemptedAt else { return !isFetching }
            return !isFetching && now >= attemptedAt + .seconds(Limits.keyFetchPauseSeconds)
        }

        /// Returns whether the caller must fetch now.
        mutating func begin(_ now: Duration) -> Bool {
            guard isDue(now) else { return false }
            (isFetching, attemptedAt) = (true, now)
            return true
        }
    }

    /// - Throws: if `source` is a file that cannot be used now. An address is fetched later.
    init(
        source: KeySource, clock: Clock, logger: Logger, replaced: @escaping @Sendable () -> Void
    ) throws(Settings.Mistake) {
        (self.source, self.clock, self.logger, self.replaced) = (source, clock, logger, replaced)
        guard case .file(let path) = source else {
            refresh {}
            return
        }
        do {
            let set = try KeySet(reading: Data(contentsOf: URL(fileURLWithPath: path)))
            guard !set.keys.isEmpty else { throw KeySet.Unusable(description: Self.reasonOfNone(set)) }
            finish(set)
        } catch let unusable as KeySet.Unusable {
            throw Settings.key(\.$jwks).mistake("\(path): \(unusable)")
        } catch {
            throw Settings.key(\.$jwks).mistake("\(path): the file cannot be read")
        }
    }

    /// Whether there is a key.
    var isLoaded: Bool { state.withLock { $0.set?.keys.isEmpty == false } }

    /// The numbers of keys that can verify tokens, and of others.
    var counts: (used: Int, skipped: Int) { state.withLock { ($0.set?.usedCount ?? 0, $0.set?.skippedCount ?? 0) } }

    /// - Parameter id: the token's `kid`; nil matches a set of one key.
    func find(_ id: String?) -> Lookup {
        let now = clock.uptime()
        var isBegun = false
        defer { if isBegun { fetch() } }
        return state.withLock { state in
            let keys = state.set?.keys ?? [:]
            let found = id.map { keys[$0] } ?? (state.set?.usedCount == 1 ? keys.first?.value : nil)
            if let found {
                isBegun = now >= state.fetchedAt + .seconds(Limits.keySetLifetimeSeconds) && state.begin(now)
                return .found(found)
            }
            if state.isFetching || state.isDue(now) { return .fetching }
            return keys.isEmpty ? .unavailable : .unknown
        }
    }

    /// Fetches the keys, unless a fetch has just been made, and calls back when a lookup is worth repeating.
    func refresh(_ resume: @escaping @Sendable () -> Void) {
        let now = clock.uptime()
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
                let (set, discovered) = try await Self.load(source, discovered: state.withLock(\.discovered))
                finish(set, discovered: discovered)
            } catch {
                logger.error(
                    "The signing keys could not be fetched.", metadata: ["reason": "\(Self.reason(of: error))"])
                finish(nil)
            }
        }
    }

    private func finish(_ found: KeySet?, discovered: OutboundURL? = nil) {
        let now = clock.uptime()
        let (resumed, before) = state.withLock { state in
            let before = state.set
            if let found {
                state.set = found
                state.fetchedAt = now
                state.discovered = discovered
            }
            state.attemptedAt = now
            state.isFetching = false
            defer { state.waiting = [] }
            return (state.waiting, before)
        }
        // An unchanged set changes nothing; anyone can trigger its fetch with an unknown key id.
        if let found, found.document != before?.document {
            report(found, after: before)
            replaced()
        }
        for resume in resumed { resume() }
    }

    /// Logs skipped keys once per key set, which is fetched again every ten minutes.
    private func report(_ set: KeySet, after before: KeySet?) {
        logger.info(
            "The signing keys were loaded.", metadata: ["keys": "\(set.usedCount)", "source": "\(source.name)"])
        let hasBecomeEmpty = set.keys.isEmpty && before?.keys.isEmpty != true
        guard set.skippedCount > 0 else {
            if hasBecomeEmpty { logger.warning("The key set is empty, so no token can be verified.") }
            return
        }
        guard hasBecomeEmpty || set.skipped != before?.skipped else { return }
        logger.warning(
            "The key set contains keys that cannot verify tokens.",
            metadata: [
                "used": "\(set.usedCount)", "skipped": "\(set.skippedCount)",
                "reasons": "\(set.skipped.joined(separator: "; "))",
            ])
    }

    private static func reasonOfNone(_ set: KeySet) -> String {
        let reasons = set.skipped.isEmpty ? "" : ": " + set.skipped.joined(separator: "; ")
        return "it contains no key that can verify tokens\(reasons)"
    }

    // MARK: Reading a key set

    /// Reads the key set of a source.
    ///
    /// - Parameter discovered: The address that the issuer's configuration named last, for when it cannot be read.
    static func load(
        _ source: KeySource, discovered: OutboundURL? = nil
    ) async throws -> (set: KeySet, discovered: OutboundURL?) {
        switch source {
        case .file(let path): return (try KeySet(reading: Data(contentsOf: URL(fileURLWithPath: path))), nil)
        case .address(let url): return (try await keySet(at: url), nil)
        case .discovery(let issuer, let document, let isPrivate):
            let configuration: Data
            do {
                configuration = try await bytes(at: document)
            } catch let unusable as KeySet.Unusable {
                guard let discovered else { throw unusable.at(document) }
                return (try await keySet(at: discovered), discovered)
            }
            let address = try keyAddress(in: configuration, at: document, of: issuer, isPrivate: isPrivate)
            return (try await keySet(at: address), address)
        }
    }

    private static func keySet(at url: OutboundURL) async throws -> KeySet {
        do {
            return try KeySet(reading: try await bytes(at: url))
        } catch let unusable as KeySet.Unusable {
            throw unusable.at(url)
        }
    }

    /// Returns the address of the keys in an OpenID configuration (OpenID Connect Discovery 1.0 §4.3).
    ///
    /// - Throws: if the configuration is another issuer's. Its keys would verify tokens in the name of this one.
    private static func keyAddress(
        in document: Data, at url: OutboundURL, of issuer: String, isPrivate: Bool
    ) throws(KeySet.Unusable) -> OutboundURL {
        func unusable(_ reason: String) -> KeySet.Unusable { KeySet.Unusable(description: reason).at(url) }
        guard document.count <= Limits.keySetBytesMax,
            case .object(let members)? = try? JSONValue(parsing: Array(document))
        else { throw unusable("it is not an OpenID configuration (JSON)") }
        guard members.string("issuer") == issuer else {
            let found = members.string("issuer").map { "\($0.prefix(200))" } ?? "no issuer"
            throw unusable("it names \(found), not \(issuer): they must be equal, also in a slash at the end")
        }
        guard let text = members.string("jwks_uri") else { throw unusable("its jwks_uri is missing") }
        do {
            return try KeySource.address(text, isPrivate: isPrivate)
        } catch {
            throw unusable("its jwks_uri is refused: \(error.problem)")
        }
    }

    /// Returns why the key set could not be loaded.
    static func reason(of error: any Error) -> String {
        error is KeySet.Unusable ? "\(error)" : (error as NSError).localizedDescription
    }

    private static func bytes(at url: OutboundURL) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            // The client blocks its thread, which must not be one of the cooperative pool. There is one fetch in ten
            // seconds.
            Thread.detachNewThread { continuation.resume(with: Result { try fetchedBytes(of: url) }) }
        }
    }

    /// Issuers may be in a private network. The client follows no redirect, uses no proxy of the environment, and stops
    /// at the size limit of a document.
    private static let client = OutboundClient(allowsPrivate: true, timeoutSeconds: Limits.keyFetchTimeoutSeconds)
    /// The client for `http://`. Over the internet, anyone on the way could answer with own keys.
    private static let privateClient = OutboundClient(
        allowsPrivate: true, allowsPublic: false, timeoutSeconds: Limits.keyFetchTimeoutSeconds)

    private static func fetchedBytes(of url: OutboundURL) throws -> Data {
        var document = Data()
        let client = url.isEncrypted ? client : privateClient
        let answer = client.watch(OutboundProbe(url: url.text, headers: [("Accept", "application/json")])) { piece in
            document.append(contentsOf: piece)
            return document.count <= Limits.keySetBytesMax
        }
        if let failure = answer.failure {
            throw KeySet.Unusable(description: "the issuer could not be reached: \(failure.rawValue)")
        }
        if (300..<400).contains(answer.status) {
            throw KeySet.Unusable(
                description: "the issuer answered \(answer.status): set the URL that it redirects to")
        }
        guard answer.status == 200 else {
            throw KeySet.Unusable(description: "the issuer answered \(answer.status)")
        }
        return document
    }
}

extension KeySet.Unusable {
    /// Names the address, without its query, which may contain a secret.
    fileprivate func at(_ url: OutboundURL) -> KeySet.Unusable {
        KeySet.Unusable(description: "\(url.origin)\(url.path): \(description)")
    }
}
