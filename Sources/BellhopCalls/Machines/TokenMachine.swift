/// Decides when to request a token from the app, and how to use it (R-SCH-FR-001, R-SCH-FR-002, R-SCH-NFR-004,
/// R-SCH-EC4).
package struct TokenMachine: Sendable, Hashable {
    package struct Limits: Sendable, Hashable {
        /// How long before its end a token is replaced; a quarter of its life if that is shorter.
        package var leadMilliseconds = 60_000
        /// Delay before a stream asks again, if the app could not replace its token.
        package var askMilliseconds = 10_000
    }

    package enum Input: Sendable {
        /// A caller needs a token other than the spent one.
        ///
        /// - Parameter problem: Why the spent one was refused.
        case need(spent: String?, problem: ConnectionMachine.Reason? = nil)
        /// The app's answer, with the service's digest of the token's rights.
        case token(String, subject: String? = nil, identity: String? = nil, lifeMilliseconds: Int? = nil)
        /// The service refused a token before a caller received it.
        case refused(String, ConnectionMachine.Reason)
        case failed(ConnectionMachine.Reason)
        case timer(String)
        /// What the device shows is this identity's: a token of another one is another user's.
        case assume(identity: String)
        /// The stream opened with that token.
        case ready(streamId: String, token: String?)
        /// The stream closed.
        case lost
        case expiring
        /// The answer to `renew`.
        case renewed(streamId: String, token: String, status: Int)
    }

    package enum Action: Sendable, Hashable {
        /// Requests a token from the app.
        case ask(spent: String?)
        /// Gives a token to all waiting callers; nil otherwise.
        case give(String?)
        case timer(name: String, at: Int?)
        /// Renews the token of an open stream without reconnecting.
        case renew(streamId: String, token: String)
        /// The service refused the stream's token for good: a new connection shows whether the next one is accepted.
        case reconnect
        /// The app returned a token of another user or of another identity.
        case user(String?, identity: String?)
    }

    private(set) var token: String?
    /// The user of the token.
    private(set) var user: String?
    /// The digest of what the token may do; nil if unknown.
    private(set) var identity: String?
    private(set) var problem: ConnectionMachine.Reason?
    /// When the token's life is over, counted from its receipt. The service decides whether it is valid.
    private var expiresAt: Int?
    private var receivedAt = 0
    /// When to request the next token, while a stream uses this one.
    private var refreshAt: Int?
    private var isAsking = false
    /// Why the present token was refused, so that it is not given out again.
    private var refusal: ConnectionMachine.Reason?
    /// A token that was refused or is about to expire: the app must return another.
    private var spent: String?
    private var streamId: String?
    /// The token that the open stream uses.
    private var streamToken: String?
    private var isRenewing = false
    private let limits: Limits
    private static let expiredCode = Bellhop.Problem.Code.invalidTokenExpired.rawValue

    package init(user: String? = nil, identity: String? = nil, limits: Limits = Limits()) {
        self.user = user
        self.identity = identity
        self.limits = limits
    }

    package mutating func receive(_ input: Input, now: Int) -> [Action] {
        switch input {
        case .need(let spent, let problem):
            // The present token, unless any caller reported it as refused, or its life is over.
            if token != nil, token == spent { refusal = problem ?? .init(code: "token.wrong") }
            guard let token, refusal == nil, expiresAt.map({ now < $0 }) ?? true else { return ask(spent: token) }
            return [.give(token)]
        case .token(let token, let subject, let identity, let life):
            return take(token, subject: subject, identity: identity, life: life, at: now)
        case .refused(let token, let problem):
            // The app is asked for another one, once.
            guard spent == nil else { return fail(problem, now) }
            (isAsking, refusal) = (false, problem)
            return ask(spent: token)
        case .failed(let problem): return fail(problem, now)
        case .timer(let name): return name == "token" ? ask(spent: token) : []
        case .assume(let identity):
            self.identity = identity
            return []
        case .ready(let streamId, let token):
            (self.streamId, streamToken, isRenewing) = (streamId, token, false)
            return [timer] + renew()
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
        }
    }

    private mutating func ask(spent: String?) -> [Action] {
        guard !isAsking else { return [] }
        (isAsking, self.spent) = (true, spent)
        return [.ask(spent: spent)]
    }

    private mutating func fail(_ problem: ConnectionMachine.Reason, _ now: Int) -> [Action] {
        let isExpired = problem.code == TokenMachine.expiredCode
        self.problem =
            isExpired ? .init(code: "token.expired", status: problem.status, detail: problem.detail) : problem
        (isAsking, spent, refreshAt) = (false, nil, now + limits.askMilliseconds)
        return [.give(nil), timer]
    }

    /// Only an open stream needs the next token before a caller requests it.
    private var timer: Action { .timer(name: "token", at: streamId == nil ? nil : refreshAt) }

    private mutating func take(
        _ token: String, subject: String?, identity: String?, life: Int?, at now: Int
    ) -> [Action] {
        let isOld = token == spent
        if isOld, let refusal { return fail(refusal, now) }
        // A token of another user, or of the same user with other rights, starts a new session. The previous state must
        // be removed before new state is shown, and earlier writes must not be sent under the new rights.
        if TokenMachine.differs(user, subject) || TokenMachine.differs(self.identity, identity) {
            (isAsking, spent) = (false, nil)
            return [.user(subject, identity: identity), .give(nil)]
        }
        if token != self.token { expiresAt = life.map { now + $0 } }
        if let life, let expiresAt {
            let lead = min(limits.leadMilliseconds, life / 4)
            refreshAt = isOld ? now + limits.askMilliseconds : expiresAt - lead
        } else {
            refreshAt = nil
        }
        (self.token, receivedAt, isAsking, spent, refusal, problem) = (token, now, false, nil, nil, nil)
        user = user ?? subject
        self.identity = self.identity ?? identity
        return [.give(token), timer] + renew()
    }

    private static func differs(_ known: String?, _ given: String?) -> Bool {
        known != nil && given != nil && known != given
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
    }
}
