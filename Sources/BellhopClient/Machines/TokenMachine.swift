/// Decides when to request a token from the app, who it is about, and how to use it (R-SCH-FR-001, R-SCH-FR-002,
/// R-SCH-NFR-004, R-SCH-EC4).
struct TokenMachine: Sendable, Hashable {
    struct Limits: Sendable, Hashable {
        /// How long before its end a token is replaced; a quarter of its life if that is shorter.
        var leadMilliseconds = 60_000
        /// Delay before a stream asks again, if the app could not replace its token.
        var askMilliseconds = 10_000
    }

    /// The app's answer.
    struct Given: Sendable, Hashable {
        let token: String
        var subject: String?
        /// A hash of the issuer and the subject.
        var person: String?
        /// The digest by which the service names what the token may do; nil if it has not been asked yet.
        var identity: String?
        /// How long the token lives from its issue on.
        var lifeMilliseconds: Int?
    }

    enum Input: Sendable {
        /// A caller needs a token other than the spent one.
        case need(spent: String?)
        case token(Given)
        case failed(ConnectionMachine.Reason)
        /// The service's answer to who a token is about; status 0 if there was none.
        case identified(
            token: String, status: Int, identity: String? = nil, user: String? = nil,
            problem: ConnectionMachine.Reason? = nil)
        case timer(String)
        /// The stream opened with that token.
        case ready(streamId: String, token: String?)
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
        /// Asks the service who a token is about. Until it has answered, nobody receives the token.
        case identify(token: String)
        /// Gives a token to all waiting callers; nil if there is none.
        case give(String?)
        case timer(name: String, at: Int?)
        /// Renews the token of an open stream without reconnecting.
        case renew(streamId: String, token: String)
        /// The service refused the stream's token for good: a new connection shows whether the next one is accepted.
        case reconnect
        /// The app returned a token of another user or of another identity, which is nil if unknown.
        case user(String?, identity: String?)
    }

    private(set) var token: String?
    /// The user of the token.
    private(set) var user: String?
    private(set) var person: String?
    /// The digest of what the token may do; nil if unknown.
    private(set) var identity: String?
    private(set) var problem: ConnectionMachine.Reason?
    /// By the device's clock, from the moment at which the token was received.
    private var expiresAt: Int?
    private var receivedAt = 0
    /// When to request the next token, while a stream uses this one.
    private var refreshAt: Int?
    private var isAsking = false
    /// The token whose identity the service is asked for, or could not be asked for.
    private var unknown: Given?
    private var isIdentifying = false
    /// The present token was refused, so it is not given out again.
    private var isRefused = false
    /// When the app last returned a token that was refused or about to expire.
    private var repeatedAt: Int?
    /// A token that was refused or is about to expire: the app must return another.
    private var spent: String?
    private var streamId: String?
    /// The token that the open stream uses.
    private var streamToken: String?
    private var isRenewing = false
    private let limits: Limits
    private static let expiredCode = Bellhop.Problem.Code.invalidTokenExpired.rawValue

    init(user: String? = nil, identity: String? = nil, limits: Limits = Limits()) {
        self.user = user
        self.identity = identity
        self.limits = limits
    }

    /// The person of the app's last token, also if its identity is unknown.
    var lastPerson: String? { unknown?.person ?? person }

    mutating func expect(_ identity: String) { self.identity = self.identity ?? identity }

    mutating func receive(_ input: Input, now: Int) -> [Action] {
        switch input {
        case .need(let spent): return need(spent, now)
        case .token(let given): return take(given, now)
        case .failed(let problem):
            isAsking = false
            return fail(problem, now)
        case .identified(let token, let status, let identity, let user, let problem):
            guard let given = unknown, given.token == token, isIdentifying else { return [] }
            isIdentifying = false
            if let identity, status == 200 { return accept(given, identity, user, now) }
            return unidentified(token, problem ?? .init(code: "token.unknown"), now)
        case .timer(let name): return name == "token" ? ask(spent: token) : []
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
        case .user(let user):
            self = TokenMachine(user: user, limits: limits)
            return [.timer(name: "token", at: nil)]
        }
    }

    private func isOver(_ now: Int) -> Bool { expiresAt.map { now >= $0 } ?? false }

    /// Gives the present token, unless any caller reported it as refused, or it has expired.
    private mutating func need(_ spent: String?, _ now: Int) -> [Action] {
        isRefused = isRefused || token != nil && token == spent
        // An app that has no other token is not asked again by each caller.
        if let token, isRefused, token == spent, let repeatedAt, now < repeatedAt + limits.askMilliseconds {
            isRefused = false
            return isAsking || isIdentifying ? [] : [.give(isOver(now) ? nil : token)]
        }
        if let token, !isRefused, !isOver(now) { return [.give(token)] }
        if let unknown, unknown.token != spent, !isAsking { return identify(unknown) }
        return ask(spent: token)
    }

    private mutating func ask(spent: String?) -> [Action] {
        guard !isAsking, !isIdentifying else { return [] }
        (isAsking, self.spent) = (true, spent)
        return [.ask(spent: spent)]
    }

    private mutating func identify(_ given: Given) -> [Action] {
        unknown = given
        guard !isIdentifying else { return [] }
        isIdentifying = true
        return [.identify(token: given.token)]
    }

    private mutating func fail(_ problem: ConnectionMachine.Reason, _ now: Int) -> [Action] {
        (self.problem, refreshAt) = (problem, now + limits.askMilliseconds)
        return [.give(nil), timer]
    }

    /// Only an open stream needs the next token before a caller requests it.
    private var timer: Action { .timer(name: "token", at: streamId == nil ? nil : refreshAt) }

    private mutating func take(_ given: Given, _ now: Int) -> [Action] {
        isAsking = false
        // A token of another person starts a new session. The previous state must be removed before new state is shown,
        // and earlier writes must not be sent as somebody else.
        if TokenMachine.differs(user, given.subject) || TokenMachine.differs(person, given.person) {
            return [.user(given.subject, identity: given.identity), .give(nil)]
        }
        // The service has just refused this token.
        if given.token == spent, given.token != token { return fail(problem ?? .init(code: "token.wrong"), now) }
        guard let identity = given.identity ?? (given.token == token ? self.identity : nil) else {
            return identify(given)
        }
        return accept(given, identity, nil, now)
    }

    private mutating func unidentified(
        _ token: String, _ problem: ConnectionMachine.Reason, _ now: Int
    ) -> [Action] {
        guard problem.status == 401 else { return fail(problem, now) }
        let isExpired = problem.code == TokenMachine.expiredCode
        let refusal = ConnectionMachine.Reason(
            code: isExpired ? "token.expired" : "token.wrong", status: 401, detail: problem.detail)
        (unknown, self.problem) = (nil, refusal)
        // The app is asked once more, unless it was asked because of a refusal.
        return spent == nil ? ask(spent: token) : fail(refusal, now)
    }

    /// - Parameter told: The user of the token, as the service names it.
    private mutating func accept(_ given: Given, _ identity: String, _ told: String?, _ now: Int) -> [Action] {
        unknown = nil
        // The same user with other rights. Waiting writes must not be sent under them.
        if TokenMachine.differs(self.identity, identity) {
            return [.user(user ?? given.subject ?? told, identity: identity), .give(nil)]
        }
        let isSame = given.token == token
        let isOld = given.token == spent
        if !isSame { (receivedAt, expiresAt) = (now, given.lifeMilliseconds.map { now + $0 }) }
        let life = given.lifeMilliseconds
        refreshAt =
            isOld
            ? now + limits.askMilliseconds
            : life.map { receivedAt + $0 - min(limits.leadMilliseconds, $0 / 4) }
        (token, spent, problem, isRefused) = (given.token, nil, nil, false)
        repeatedAt = isOld ? now : nil
        user = user ?? given.subject ?? told
        person = person ?? given.person
        self.identity = identity
        // An expired token is not given out: the service would refuse it.
        guard isOver(now) else { return [.give(given.token), timer] + renew() }
        problem = .init(code: "token.expired")
        return [.give(nil), timer]
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
