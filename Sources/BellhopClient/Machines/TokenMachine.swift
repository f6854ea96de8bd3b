/// When the app is asked for a token, and what becomes of it (R-SCH-FR-001, R-SCH-FR-002, R-SCH-NFR-004, R-SCH-EC4).
struct TokenMachine: Sendable, Hashable {
    struct Limits: Sendable, Hashable {
        /// So long before its end a token is replaced, or at a quarter of its life where that is short.
        var leadMilliseconds = 60_000
        /// A stream whose token the app could not replace asks again after this time.
        var askMilliseconds = 10_000
    }

    enum Input: Sendable {
        /// Somebody needs a token, and another one than the spent one.
        case need(spent: String?)
        /// What the app answered.
        case token(String, subject: String? = nil, identity: String? = nil, expiresAt: Int? = nil)
        case failed(ConnectionMachine.Reason)
        case timer(String)
        /// A stream lives by that token.
        case ready(streamId: String, token: String?, serverTime: Int?)
        /// The stream is gone.
        case lost
        case expiring
        /// The answer to `renew`.
        case renewed(streamId: String, token: String, status: Int)
        case user(String?)
    }

    enum Action: Sendable, Hashable {
        /// Of the app.
        case ask(spent: String?)
        /// To all who wait; nil: there is none.
        case give(String?)
        case timer(name: String, at: Int?)
        /// An open stream goes on with it, without a break.
        case renew(streamId: String, token: String)
        /// The stream's token was refused for good: a new stream tells whether the next is any better.
        case reconnect
        /// The app gave a token of another identity.
        case user(String?)
    }

    private(set) var token: String?
    /// Whose it is.
    private(set) var user: String?
    /// The claims that decide what it may do; nil: unknown.
    private(set) var identity: String?
    private(set) var problem: ConnectionMachine.Reason?
    /// By this device's clock.
    private var expiresAt: Int?
    private var gotAt = 0
    /// When the next one is asked for, while a stream lives by this one.
    private var refreshAt: Int?
    private var isAsking = false
    /// The token that there is was refused: nobody is given it any more.
    private var isRefused = false
    /// A token that was refused, or runs out: the answer must be another.
    private var spent: String?
    /// How far the service's clock is ahead of this device's.
    private var skewMilliseconds = 0
    private var streamId: String?
    /// The token that the open stream lives by.
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
            // The one there is, unless it was refused, whoever tried it, or is over.
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
            // The service says so 30 s before, and it knows better than this device's clock.
            guard streamToken == token else { return renew() }
            // Of a life shorter than that it says so at once, again and again: then the timer decides.
            if let refreshAt, now < min(refreshAt, gotAt + limits.askMilliseconds) { return [] }
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

    /// Only a stream needs its token's successor before anybody asks for it.
    private var timer: Action { .timer(name: "token", at: streamId == nil ? nil : refreshAt) }

    private mutating func take(
        _ token: String, _ subject: String?, _ identity: String?, _ expiresAt: Int?, _ now: Int
    ) -> [Action] {
        // A token of another user, or of the same user with other rights: what the last one saw must be gone before
        // anything of this one's is shown, and what was written under those rights is not sent under these.
        if TokenMachine.differs(user, subject) || TokenMachine.differs(self.identity, identity) {
            isAsking = false
            return [.user(subject), .give(nil)]
        }
        let local = expiresAt.map { $0 - skewMilliseconds }
        let isOld = token == spent
        refreshAt = local.map {
            isOld ? now + limits.askMilliseconds : $0 - min(limits.leadMilliseconds, ($0 - now) / 4)
        }
        (self.token, self.expiresAt, gotAt, isAsking, spent, problem) = (token, local, now, false, nil, nil)
        isRefused = false
        user = user ?? subject
        self.identity = self.identity ?? identity
        // One that is over is given to nobody: the service would only say so.
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

    /// An open stream goes on with the new token, without a break.
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
        // Refused for good: a new stream tells whether the token is any better. Else `stream:expiring` tries once more.
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
