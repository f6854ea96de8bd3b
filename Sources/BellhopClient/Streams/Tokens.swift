import Foundation

extension BellhopClient {
    /// Where the bearer token comes from.
    ///
    /// Calls of ``BellhopClient/BellhopClient`` ask it each time. A stream and a ``Bell`` keep what it gave until it runs
    /// out, is refused (401), or the stream says that it is about to expire.
    public struct TokenProvider: Sendable {
        /// - Parameter spent: a token that does not serve any more.
        let token: @Sendable (_ spent: String?) async throws -> String?
        /// There is no other one, however often it is asked for.
        let isFixed: Bool

        /// What the app has now.
        public init(_ token: @escaping @Sendable () async throws -> String?) {
            self.init { _ in try await token() }
        }

        /// What the app has now, or a new one where the last one does not serve any more.
        public init(renewing token: @escaping @Sendable (_ needsNew: Bool) async throws -> String?) {
            self.init { spent in try await token(spent != nil) }
        }

        init(isFixed: Bool = false, bySpent token: @escaping @Sendable (_ spent: String?) async throws -> String?) {
            self.token = token
            self.isFixed = isFixed
        }

        public static let none = TokenProvider(isFixed: true) { _ in nil }
        public static func fixed(_ token: String) -> TokenProvider { TokenProvider(isFixed: true) { _ in token } }
    }
}

/// The token machine at work: the app's provider is asked once for all who wait.
final class Tokens: Sendable {
    /// What a stream that lives by a token is told.
    struct Events: Sendable {
        var renew: @Sendable (_ streamId: String, _ token: String) -> Void = { _, _ in }
        var reconnect: @Sendable () -> Void = {}
    }

    private struct State {
        var machine: TokenMachine
        var waiting: [CheckedContinuation<String?, Never>] = []
        var timers = Timers()
        var events = Events()
        /// The last ones that were given.
        var given: [String] = []
        var isClosed = false

        /// Takes those who wait, to be given a token.
        mutating func give(_ token: String?) -> [CheckedContinuation<String?, Never>] {
            if let token, given.last != token { given = given.suffix(7) + [token] }
            defer { waiting = [] }
            return waiting
        }
    }

    /// A provider that does not answer must not hold up everything for ever.
    private static let askMillisecondsMax = 30_000

    let provider: BellhopClient.TokenProvider
    private let clock: ClientClock
    /// The app gave a token of another identity.
    private let onUser: @Sendable (String?) -> Void
    /// Continuations are resumed, and others told, outside of it.
    private let state: Locked<State>

    init(
        _ provider: BellhopClient.TokenProvider, clock: ClientClock, user: String? = nil,
        onUser: @escaping @Sendable (String?) -> Void = { _ in }
    ) {
        self.provider = provider
        self.clock = clock
        self.onUser = onUser
        state = Locked(State(machine: TokenMachine(user: user)))
    }

    deinit { close() }

    /// Whose the token is, once it is known.
    var user: String? { state.withLock { $0.machine.user } }
    /// The claims that decide what the tokens may do, once they are known.
    var identity: String? { state.withLock { $0.machine.identity } }
    /// A token of another identity is given to nobody.
    func expect(_ identity: String) { state.withLock { $0.machine.expect(identity) } }
    var problem: ConnectionMachine.Reason? { state.withLock { $0.machine.problem } }

    /// Whether it came from here, and not from another user's.
    func hasGiven(_ token: String) -> Bool { state.withLock { $0.given.contains(token) } }

    /// Calls of this user alone: there are none any more once it is closed.
    var caller: BellhopClient.TokenProvider {
        BellhopClient.TokenProvider(isFixed: provider.isFixed) { spent in
            let token = await self.get(spent: spent)
            if self.state.withLock({ $0.isClosed }) { throw CancellationError() }
            return token
        }
    }

    func hear(_ events: Events) { state.withLock { $0.events = events } }

    /// One that serves, and is another than the spent one if the app has one; nil: there is none.
    func get(spent: String? = nil) async -> String? {
        await withCheckedContinuation { receive(.need(spent: spent), for: $0) }
    }

    /// - Parameter waiting: who needs a token. Noted in one step with the need: else one whose token was just refused
    ///   would be given it again, with those who have not tried it yet.
    func receive(_ input: TokenMachine.Input, for waiting: CheckedContinuation<String?, Never>? = nil) {
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
            case .user(let user): onUser(user)
            }
        }
    }

    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            state.timers.stopAll()
            return state.give(nil)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    private func setTimer(_ name: String, _ at: Int?, _ state: inout State) {
        state.timers.set(name, at: at, clock) { [weak self] number in self?.fire(name, number) }
    }

    private func fire(_ name: String, _ number: Int) {
        guard state.withLock({ $0.timers.take(name, number) }) else { return }
        receive(name == "slow" ? .failed(.init(code: "token.slow")) : .timer(name))
    }

    private func ask(_ spent: String?) {
        state.withLock { setTimer("slow", clock.now() + Tokens.askMillisecondsMax, &$0) }
        Task { [weak self, provider] in
            let given: TokenMachine.Input
            do {
                if let token = try await provider.token(spent), !token.isEmpty {
                    let claims = Claims(of: token)
                    // What is fixed has no successor: the service says when it is over.
                    given = .token(
                        token, subject: claims.subject, identity: claims.identity,
                        expiresAt: provider.isFixed ? nil : claims.expiresAt)
                } else {
                    given = .failed(.init(code: "token.none"))
                }
            } catch {
                given = .failed(.init(code: "token.failed", detail: "\(error)"))
            }
            guard let self else { return }
            state.withLock { self.setTimer("slow", nil, &$0) }
            receive(given)
        }
    }
}
