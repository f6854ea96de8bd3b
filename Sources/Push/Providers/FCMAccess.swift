import Threads
import Values

/// The access token of FCM, and the messages that wait for it.
///
/// Thread A finds no token and asks for one; B and C also find no token, and wait for A's answer.
final class FCMAccess: Sendable {
    typealias Waiting = @Sendable (Answer) -> Void

    /// The result of asking for a token.
    enum Answer: Sendable {
        case token(String)
        case failure(PushOutcome)
    }

    enum Need: Sendable {
        case token(String)
        /// The caller must ask for a token and pass the answer to ``FCMAccess/received(_:seconds:at:)``.
        case ask
        case wait
        /// Too many messages wait.
        case refused
    }

    private struct State {
        var token: (text: String, expiresAt: Timestamp)?
        var isAsking = false
        var waiting: [Waiting] = []
        /// Whether the last token was discarded before it had served any message.
        var isDiscardedUnused = false
        var served = 0
    }

    /// A token is renewed this long before it expires, so that no message arrives with an expired one.
    private static let marginSeconds: Int64 = 300

    private let state = Locked(State())

    /// Returns a valid token, or registers `waiting` for the next one.
    func need(at now: Timestamp, _ waiting: @escaping Waiting) -> Need {
        state.withLock { state in
            if let token = state.token, now < token.expiresAt { return .token(token.text) }
            guard state.waiting.count < PushLimits.waitingMax else { return .refused }
            state.waiting.append(waiting)
            defer { state.isAsking = true }
            return state.isAsking ? .wait : .ask
        }
    }

    /// Stores a token and passes the answer to all that wait.
    func received(_ answer: Answer, seconds: Int64 = 0, at now: Timestamp) {
        let waiting = state.withLock { state in
            if case .token(let text) = answer {
                state.token = (text, now.adding(seconds: max(seconds - Self.marginSeconds, 1)))
                state.served = 0
            }
            state.isAsking = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiting in waiting { waiting(answer) }
    }

    /// Notes that FCM accepted a message with the token.
    func noteServed() { state.withLock { $0.served += 1 } }

    /// Forgets a token that FCM did not accept, unless it was replaced meanwhile.
    ///
    /// - Parameter used: The refused token; nil for the present one.
    /// - Returns: Whether a new token may help: false if the last two served no message.
    func discard(_ used: String? = nil) -> Bool {
        state.withLock { state in
            guard let token = state.token else { return !state.isDiscardedUnused }
            guard used == nil || used == token.text else { return true }
            let isUnused = state.served == 0
            defer { state.isDiscardedUnused = isUnused }
            state.token = nil
            return !(isUnused && state.isDiscardedUnused)
        }
    }
}
