import Foundation

extension BellhopClient {
    /// The source of the bearer token.
    ///
    /// Calls of ``BellhopCalls/BellhopClient`` ask it each time. A stream and a `Bell` keep the token until it
    /// expires, is refused (401), or the stream announces its expiry.
    public struct TokenProvider: Sendable {
        /// - Parameter spent: a token that is no longer valid.
        let token: @Sendable (_ spent: SpentToken?) async throws -> String?
        /// Whether the token never changes, however often it is requested.
        package let isFixed: Bool

        /// Returns the app's current token.
        public init(_ token: @escaping @Sendable () async throws -> String?) {
            self.init { _ in try await token() }
        }

        /// Returns the app's current token, or a new one if the last one is no longer valid.
        public init(renewing token: @escaping @Sendable (_ needsNew: Bool) async throws -> String?) {
            self.init { spent in try await token(spent != nil) }
        }

        package init(
            isFixed: Bool = false, bySpent token: @escaping @Sendable (_ spent: SpentToken?) async throws -> String?
        ) {
            self.token = token
            self.isFixed = isFixed
        }

        public static let none = TokenProvider(isFixed: true) { _ in nil }
        public static func fixed(_ token: String) -> TokenProvider { TokenProvider(isFixed: true) { _ in token } }
    }
}

/// Runs the token machine. The app's provider is called once for all waiting callers.
package final class Tokens: Sendable {
    /// Callbacks for the stream that uses a token.
    package struct Events: Sendable {
        package var renew: @Sendable (_ streamId: String, _ token: String) -> Void = { _, _ in }
        package var reconnect: @Sendable () -> Void = {}
    }

    private struct State {
        var machine: TokenMachine
        var waiting: [CheckedContinuation<String?, Never>] = []
        var timers = Timers()
        var events = Events()
        var claims: TokenClaims?
        /// The tasks that wait for the app's answer.
        var arrivals: [CheckedContinuation<Void, Never>] = []
        /// The service's answer that did not name the identity of the token.
        var refusal: ServiceAnswer?
        /// The last tokens that were given out.
        var given: [String] = []
        var isClosed = false
        var hasArrived = false

        /// Removes and returns the callers that wait for a token, and notes the token as given out.
        mutating func give(_ token: String?) -> [CheckedContinuation<String?, Never>] {
            if let token, given.last != token { given = given.suffix(7) + [token] }
            defer { waiting = [] }
            return waiting
        }
    }

    /// Limit for a provider's answer, so that a provider that never answers does not block everything.
    private static let providerTimeoutMilliseconds = 30_000

    package let provider: BellhopClient.TokenProvider
    private let clock: ClientClock
    /// Asks the service which user a token is about; nil for a stream without stored state, which does not need it.
    private let identify: (@Sendable (_ token: String) async -> ServiceAnswer)?
    private let identities: KnownClaims
    /// Called when the app returns a token of another user, or of an identity other than the present one.
    private let onUser: @Sendable (_ user: String?, _ identity: String?) -> Void
    /// Continuations and callbacks run outside of its lock.
    private let state: Guarded<State>

    package init(
        _ provider: BellhopClient.TokenProvider, clock: ClientClock, user: String? = nil, identity: String? = nil,
        identities: KnownClaims = KnownClaims(),
        identify: (@Sendable (_ token: String) async -> ServiceAnswer)? = nil,
        onUser: @escaping @Sendable (_ user: String?, _ identity: String?) -> Void = { _, _ in }
    ) {
        self.provider = provider
        self.clock = clock
        self.identities = identities
        self.identify = identify
        self.onUser = onUser
        state = Guarded(State(machine: TokenMachine(user: user, identity: identity)))
    }

    deinit { close() }

    /// The user of the token, once it is known.
    package var user: String? { state.withLock { $0.machine.user } }
    /// The digest of what the tokens may do, once it is known.
    package var identity: String? { state.withLock { $0.machine.identity } }
    /// What the app's last token says of itself, also if the service has not named its identity yet.
    package var claims: TokenClaims? { state.withLock { $0.claims } }
    /// Sets the expected identity. A token of another identity is not given out. Returns false if the service has already
    /// named another identity.
    package func assume(_ identity: String) -> Bool {
        state.withLock { state in
            guard state.machine.identity == nil || state.machine.identity == identity else { return false }
            _ = state.machine.receive(.assume(identity: identity), now: clock.now())
            return true
        }
    }
    package var problem: ConnectionMachine.Reason? { state.withLock { $0.machine.problem } }

    /// The number of callers that wait for a token.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// The token that was given out last.
    package var last: String? { state.withLock { $0.given.last } }

    /// Returns whether the token was given out here, and not by another user's tokens.
    package func hasIssued(_ token: String) -> Bool { state.withLock { $0.given.contains(token) } }

    /// A provider for calls of this user only; once closed, it returns no token.
    package var caller: BellhopClient.TokenProvider {
        BellhopClient.TokenProvider(isFixed: provider.isFixed) { try await self.require($0) }
    }

    package func observe(_ events: Events) { state.withLock { $0.events = events } }

    /// Returns a valid token, other than the spent one if the app has another; nil otherwise.
    ///
    /// - Parameter problem: Why the spent one was refused.
    package func get(spent: String? = nil, problem: ConnectionMachine.Reason? = nil) async -> String? {
        await withCheckedContinuation { receive(.need(spent: spent, problem: problem), for: $0) }
    }

    /// Waits until the app has answered once, with a token or without.
    package func arrival() async {
        Task { _ = await get() }
        await withCheckedContinuation { continuation in
            let isHere = state.withLock { state in
                let isHere = state.isClosed || state.hasArrived
                if !isHere { state.arrivals.append(continuation) }
                return isHere
            }
            if isHere { continuation.resume() }
        }
    }

    private func noteArrival() {
        let waiting = state.withLock { state in
            state.hasArrived = true
            defer { state.arrivals = [] }
            return state.arrivals
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The service's answer that did not name the identity of the token, if that is why there is no token.
    package var refusal: ServiceAnswer? { state.withLock { $0.refusal } }

    /// Returns a valid token as ``get(spent:)`` does; nil only for a provider without a token.
    ///
    /// - Throws: A ``TokenFailure`` if the app has no token, and a `CancellationError` once these tokens are closed.
    package func require(_ spent: SpentToken? = nil) async throws -> String? {
        let token = await get(spent: spent?.token, problem: spent?.answer?.reason)
        let (isClosed, problem, refusal) = state.withLock { ($0.isClosed, $0.machine.problem, $0.refusal) }
        if isClosed { throw CancellationError() }
        guard token == nil else { return token }
        // Each task that waits for the token receives the answer that stopped it.
        if let refusal { throw UnidentifiedToken(answer: refusal) }
        guard let problem, provider.isFixed, problem.code == "token.none" else { throw TokenFailure(problem) }
        return nil
    }

    /// - Parameter waiting: the caller that needs a token. It is registered in one step with the need. Otherwise a
    ///   caller whose token was just refused could receive it again, together with callers that have not tried it yet.
    package func receive(_ input: TokenMachine.Input, for waiting: CheckedContinuation<String?, Never>? = nil) {
        let now = clock.now()
        let (actions, events, given) = state.withLock { state in
            var given: [(CheckedContinuation<String?, Never>, String?)] = []
            guard !state.isClosed else {
                if let waiting { given.append((waiting, nil)) }
                return ([TokenMachine.Action](), Events(), given)
            }
            if let waiting { state.waiting.append(waiting) }
            let actions = state.machine.receive(input, now: now)
            for action in actions {
                if case .timer(let name, let at) = action { setTimer(name, at, &state) }
                if case .give(let token) = action { given += state.give(token).map { ($0, token) } }
            }
            return (actions, state.events, given)
        }
        for (continuation, token) in given { continuation.resume(returning: token) }
        for action in actions {
            switch action {
            case .timer, .give: break
            case .ask(let spent): ask(spent)
            case .renew(let streamId, let token): events.renew(streamId, token)
            case .reconnect: events.reconnect()
            case .user(let user, let identity): onUser(user, identity)
            }
        }
    }

    package func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            state.timers.stopAll()
            return state.give(nil)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
        noteArrival()
    }

    private func setTimer(_ name: String, _ at: Int?, _ state: inout State) {
        state.timers.set(name, at: at, clock) { [weak self] number in self?.fire(name, number) }
    }

    private func fire(_ name: String, _ number: Int) {
        guard state.withLock({ $0.timers.take(name, number) }) else { return }
        receive(name == "slow" ? .failed(.init(code: "token.slow")) : .timer(name))
    }

    private func ask(_ spent: String?) {
        state.withLock { setTimer("slow", clock.now() + Tokens.providerTimeoutMilliseconds, &$0) }
        Task { [weak self, provider] in
            let given: Result<String?, any Error>
            do { given = .success(try await provider.checked(spent.map { SpentToken(token: $0) })) } catch {
                given = .failure(error)
            }
            guard let self else { return }
            state.withLock { state in
                self.setTimer("slow", nil, &state)
                state.refusal = nil
            }
            switch given {
            case .success(let token?): await take(token)
            case .success(nil): receive(.failed(.init(code: "token.none")))
            case .failure(let failure as TokenFailure): receive(.failed(failure.reason))
            case .failure(let error): receive(.failed(.init(code: "token.failed", detail: "\(error)")))
            }
            noteArrival()
        }
    }

    /// Requests the identity of a token from the service, before a caller receives the token.
    private func take(_ token: String) async {
        let claims = TokenClaims(of: token)
        state.withLock { $0.claims = claims }
        noteArrival()
        let text = claims.claims ?? token
        var known = identify == nil ? nil : identities.find(text)
        if let identify, known == nil {
            let answer = await identify(token)
            let me = answer.json
            guard answer.status == 200, let identity = me["identity"].string else { return refuse(token, answer) }
            known = KnownClaims.Meaning(identity: identity, user: me["userId"].string)
            identities.keep(text, known)
        }
        // The service may take the user from another claim than the subject.
        let user = known?.user ?? claims.subject
        // A fixed token is never replaced; the service reports when it has expired.
        let life = provider.isFixed ? nil : claims.lifeMilliseconds
        receive(.token(token, subject: user, identity: known?.identity, lifeMilliseconds: life))
    }

    private func refuse(_ token: String, _ answer: ServiceAnswer) {
        let refusal = Refusal(answer.body)
        let problem = ConnectionMachine.Reason(
            code: refusal.code ?? "unreachable", status: answer.status == 0 ? nil : answer.status,
            detail: refusal.detail)
        if answer.status == 401 { return receive(.refused(token, problem)) }
        state.withLock { $0.refusal = answer }
        receive(.failed(problem))
    }
}

/// The identities of the last tokens, by their claims. In memory only: a device keeps no claims.
package final class KnownClaims: Sendable {
    private static let countMax = 8

    /// What the service says about a token.
    package struct Meaning: Sendable {
        package let identity: String
        package let user: String?
    }

    private let all = Guarded<[(claims: String, meaning: Meaning)]>([])

    package init() {}

    package func find(_ claims: String) -> Meaning? { all.withLock { $0.first { $0.claims == claims }?.meaning } }

    package func keep(_ claims: String, _ meaning: Meaning?) {
        guard let meaning else { return }
        all.withLock { all in
            all.removeAll { $0.claims == claims }
            all = all.suffix(KnownClaims.countMax - 1) + [(claims, meaning)]
        }
    }

    package func clear() { all.withLock { $0 = [] } }
}

extension TokenFailure {
    fileprivate init(_ reason: ConnectionMachine.Reason?) {
        self.init(code: reason?.code ?? "token.none", detail: reason?.detail)
    }

    fileprivate var reason: ConnectionMachine.Reason { .init(code: code, detail: detail) }
}
