/// Decides when to request a token from the app, and how to use it (R-SCH-FR-001, R-SCH-FR-002, R-SCH-NFR-004,
/// R-SCH-EC4).
struct TokenMachine: Sendable, Hashable {
    struct Limits: Sendable, Hashable {
        /// How long before its end a token is replaced; a quarter of its life if that is shorter.
        var leadMilliseconds = 60_000
        /// Delay before a stream asks again, if the app could not replace its token.
        var askMilliseconds = 10_000
    }

    enum Input: Sendable {
        /// A caller needs a token other than the spent one.
        case need(spent: String?)
        /// The app's answer.
        case token(String, subject: String? = nil, identity: String? = nil, expiresAt: Int? = nil)
        case failed(ConnectionMachine.Reason)
        case timer(String)
        /// The stream opened with that token.
        case ready(streamId: String, token: String?, serverTime: Int?)
        /// The stream closed.
        case lost
        case expiring
        /// The answer to `renew`.
        case renewed(streamId: String, token: String, status: Int)
        case user(String?)
    }

    enum Action: Sendable, Hashable {
        /// Requests a token from the app.
        case ask(spent: String?)
        /// Gives a token to all waiting callers; nil if there is none.
        case give(String?)
        case timer(name: String, at: Int?)
        /// Renews the token of an open stream without reconnecting.
        case renew(streamId: String, token: String)
        /// The service refused the stream's token for good: a new connection shows whether the next one is accepted.
        case reconnect
        /// The app returned a token of another identity.
        case user(String?)
    }

    private(set) var token: String?
    /// The user of the token.
    private(set) var user: String?
    /// The claims that decide what the token may do; nil if unknown.
    private(set) var identity: String?
    private(set) var problem: ConnectionMachine.Reason?
    /// By the device's clock.
    private var expiresAt: Int?
    private var receivedAt = 0
    /// When to request the next token, while a stream uses this one.
    private var refreshAt: Int?
    private var isAsking = false
    /// The present token was refused, so it is not given out again.
    private var isRefused = false
    /// A token that was refused or is about to expire: the app must return another.
    private var spent: String?
    /// How far the service's clock is ahead of the device's.
    private var skewMilliseconds = 0
    private var streamId: String?
    /// The token that the open stream uses.
    private var streamToken: String?
    private var isRenewing = false
    private let limits: Limits

    init(user: String? = nil, limits: Limits = Limits()) {
        self.user = user
        self.limits = limits
    }

    mutating func expect(_ identity: String) { self.identity = self.identity ?? identity }

    mutating func receive(_ input: Input, now: Int) -> [Action] {
        switch input {
        case .need(let spent):
            // The present token, unless any caller reported it as refused, or it has expired.
            isRefused = isRefused || token != nil && token == spent
            guard let token, !isRefused, !isOver(now) else { return ask(spent: token) }
            return [.give(token)]
        case .token(let token, let subject, let identity, let expiresAt):
            return take(token, subject, identity, expiresAt, now)
        case .failed(let problem):
            (isAsking, self.problem, refreshAt) = (false, problem, now + limits.askMilliseconds)
            return [.give(nil), timer]
        case .timer(let name): return name == "token" ? ask(spent: token) : []
        case .ready(let streamId, let token, let serverTime): return ready(streamId, token, serverTime, now)
        case .lost:
            let had = streamId != nil
            (streamId, streamToken, isRenewing) = (nil, nil, false)
            return had ? [timer] : []
        case .expiring:
            // The service announces the end 30 s ahead, and its clock is more reliable than the device's.
            guard streamToken == token else { return renew() }
            // For a token that lives shorter than that, the announcement repeats at once; then the timer decides.
            if let refreshAt, now < min(refreshAt, receivedAt + limits.askMilliseconds) { return [] }
            return ask(spent: token)
        case .renewed(let streamId, let token, let status): return renewed(streamId, token, status)
        case .user(let user):
            self = TokenMachine(user: user, limits: limits)
            return [.timer(name: "token", at: nil)]
        }
    }

    private func isOver(_ now: Int) -> Bool { expiresAt.map { now >= $0 } ?? false }

    private mutating func ask(spent: String?) -> [Action] {
        guard !isAsking else { return [] }
        (isAsking, self.spent) = (true, spent)
        return [.ask(spent: spent)]
    }

    /// Only an open stream needs the next token before a caller requests it.
    private var timer: Action { .timer(name: "token", at: streamId == nil ? nil : refreshAt) }

    private mutating func take(
        _ token: String, _ subject: String?, _ identity: String?, _ expiresAt: Int?, _ now: Int
    ) -> [Action] {
        // A token of another user, or of the same user with other rights, starts a new session. The previous state must
        // be removed before new state is shown, and earlier writes must not be sent under the new rights.
        if TokenMachine.differs(user, subject) || TokenMachine.differs(self.identity, identity) {
            isAsking = false
            return [.user(subject), .give(nil)]
        }
        let local = expiresAt.map { $0 - skewMilliseconds }
        let isOld = token == spent
        refreshAt = local.map {
            isOld ? now + limits.askMilliseconds : $0 - min(limits.leadMilliseconds, ($0 - now) / 4)
        }
        (self.token, self.expiresAt, receivedAt, isAsking, spent, problem) = (token, local, now, false, nil, nil)
        isRefused = false
        user = user ?? subject
        self.identity = self.identity ?? identity
        // An expired token is not given out: the service would refuse it.
        return [.give(isOver(now) ? nil : token), timer] + renew()
    }

    private static func differs(_ known: String?, _ given: String?) -> Bool {
        known != nil && given != nil && known != given
    }

    private mutating func ready(_ streamId: String, _ token: String?, _ serverTime: Int?, _ now: Int) -> [Action] {
        let skew = serverTime.map { $0 - now } ?? skewMilliseconds
        let earlier = skew - skewMilliseconds
        (expiresAt, refreshAt) = (expiresAt.map { $0 - earlier }, refreshAt.map { $0 - earlier })
        (skewMilliseconds, self.streamId, streamToken, isRenewing) = (skew, streamId, token, false)
        return [timer] + renew()
    }

    /// Renews the token of the open stream without reconnecting.
    private mutating func renew() -> [Action] {
        guard let streamId, let token, streamToken != token, !isRenewing else { return [] }
        isRenewing = true
        return [.renew(streamId: streamId, token: token)]
    }

    private mutating func renewed(_ streamId: String, _ token: String, _ status: Int) -> [Action] {
        guard streamId == self.streamId else { return [] }
        isRenewing = false
        if status == 200 {
            streamToken = token
            return renew()
        }
        // Refused for good: a new connection shows whether the token is accepted. Otherwise `stream:expiring` triggers
        // another try.
        let isRefused = (400..<500).contains(status) && ![408, 425, 429].contains(status)
        return isRefused ? [.reconnect] : []
    }
}

extension TokenMachine: Encodable {
    private enum CodingKeys: String, CodingKey {
        case token, user, identity, expiresAt, streamId, streamToken, problem
        case isAsking = "asking"
        case isRenewing = "renewing"
        case skewMilliseconds = "skewMs"
    }
}
