import Foundation
import Logging
import OutboundHTTP
import Threads
import Values

/// The issuer's public keys, from a file or a URL.
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

    let source: String
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

    /// - Throws: if `source` is a file that cannot be used now. A URL is fetched later.
    init(
        source: String, clock: Clock, logger: Logger, replaced: @escaping @Sendable () -> Void
    ) throws(Settings.Mistake) {
        (self.source, self.clock, self.logger, self.replaced) = (source, clock, logger, replaced)
        do {
            if try Self.address(source) != nil {
                refresh {}
                return
            }
        } catch {
            throw Settings.key(\.$jwks).mistake("\(error)")
        }
        do {
            let set = try KeySet(reading: Data(contentsOf: URL(fileURLWithPath: source)))
            guard !set.keys.isEmpty else { throw KeySet.Unusable(description: Self.reasonOfNone(set)) }
            finish(set)
        } catch let unusable as KeySet.Unusable {
            throw Settings.key(\.$jwks).mistake("\(source): \(unusable)")
        } catch {
            throw Settings.key(\.$jwks).mistake("\(source): the file cannot be read")
        }
    }

    /// Whether there is a key.
    var isLoaded: Bool { state.withLock { $0.set?.keys.isEmpty == false } }

    func register(in metrics: MetricsRegistry) {
        metrics.register { [state] text in
            let (used, skipped) = state.withLock { ($0.set?.usedCount ?? 0, $0.set?.skippedCount ?? 0) }
            text.family(
                "bellhop_signing_keys", .gauge, "Keys of the issuer's key set, by whether they can verify tokens.",
                by: "state", samples: [("used", used), ("skipped", skipped)])
        }
    }

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
                finish(try await Self.load(source))
            } catch {
                logger.error(
                    "The signing keys could not be fetched.", metadata: ["reason": "\(Self.reason(of: error))"])
                finish(nil)
            }
        }
    }

    private func finish(_ found: KeySet?) {
        let now = clock.uptime()
        let (resumed, before) = state.withLock { state in
            let before = state.set
            if let found {
                state.set = found
                state.fetchedAt = now
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
        logger.info("The signing keys were loaded.", metadata: ["keys": "\(set.usedCount)"])
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

    /// Returns the address of a key set; nil for a file.
    ///
    /// Keys decide whose tokens are accepted, so they are fetched only over TLS, or from this machine.
    private static func address(_ source: String) throws(KeySet.Unusable) -> OutboundURL? {
        guard ["http:", "https:"].contains(where: { source.lowercased().hasPrefix($0) }) else { return nil }
        let url: OutboundURL
        do {
            url = try OutboundURL(source)
        } catch {
            throw KeySet.Unusable(description: "the URL \(error)")
        }
        guard url.isEncrypted || url.host.isLoopbackHost else {
            throw KeySet.Unusable(
                description: "the URL must begin with https:// (http:// is only accepted for loopback addresses)")
        }
        return url
    }

    /// Reads the key set from a file or a URL.
    static func load(_ source: String) async throws -> KeySet {
        try KeySet(reading: try await bytes(of: source))
    }

    /// Returns why the key set could not be loaded, without the address, whose query may contain a secret.
    static func reason(of error: any Error) -> String {
        error is KeySet.Unusable ? "\(error)" : (error as NSError).localizedDescription
    }

    private static func bytes(of source: String) async throws -> Data {
        guard let address = try address(source) else { return try Data(contentsOf: URL(fileURLWithPath: source)) }
        return try await withCheckedThrowingContinuation { continuation in
            // The client blocks its thread, which must not be one of the cooperative pool. There is one fetch in ten
            // seconds.
            Thread.detachNewThread { continuation.resume(with: Result { try fetchedBytes(of: address.text) }) }
        }
    }

    /// Issuers may be in a private network. The client follows no redirect, uses no proxy of the environment, and stops
    /// at the size limit of a document.
    private static let client = OutboundClient(allowsPrivate: true, timeoutSeconds: Limits.keyFetchTimeoutSeconds)

    private static func fetchedBytes(of address: String) throws -> Data {
        var document = Data()
        let answer = client.watch(OutboundProbe(url: address, headers: [("Accept", "application/json")])) { piece in
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
