import OutboundHTTP
import Values

/// Sends messages to devices through the providers that are set up: one HTTP/2 connection to each.
public final class PushClient: Sendable {
    /// Receives the outcome on the client's thread.
    public typealias Completion = @Sendable (PushOutcome) -> Void
    /// Receives each request for a message before it leaves.
    public typealias Observer = @Sendable (PushMessage, PushTarget, OutboundPost) -> Void

    private let apns: APNs?
    private let fcm: FCM?
    private let webPush: WebPush?
    private let http: OutboundMultiplexer
    private let clock: @Sendable () -> Timestamp
    private let observer: Observer?

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - allowsPrivate: Whether providers may be at private addresses, also without TLS.
    ///   - certificates: A file of certificates (PEM) to trust instead of the system's; nil for the system's.
    public init(
        apns: APNs?, fcm: FCM?, webPush: WebPush?, allowsPrivate: Bool, certificates: String?, timeoutSeconds: Int,
        clock: @escaping @Sendable () -> Timestamp, observer: Observer? = nil
    ) {
        (self.apns, self.fcm, self.webPush, self.clock, self.observer) = (apns, fcm, webPush, clock, observer)
        http = OutboundMultiplexer(
            "push", allowsPrivate: allowsPrivate, certificates: certificates, timeoutSeconds: timeoutSeconds)
    }

    public func start() { http.start() }

    /// Ends waiting messages as ``PushOutcome/interrupted``.
    public func stop() { http.stop() }

    public func send(_ message: PushMessage, to target: PushTarget, _ complete: @escaping Completion) {
        let leavesBy = ContinuousClock.now + PushLimits.waitMax
        switch target {
        case .apns(let token, let topic, let isSandbox):
            guard let apns else { return complete(.refused(reason: "apns_off")) }
            let request = apns.request(message, token: token, topic: topic, isSandbox: isSandbox, at: clock())
            let used = request.headers.first { $0.name == "authorization" }?.value
            observer?(message, target, request)
            submit(request, leavingBy: leavesBy, complete) {
                apns.outcome(status: $0, retryAfterSeconds: $1, body: $2, used: used)
            }
        case .fcm(let token):
            guard let fcm else { return complete(.refused(reason: "fcm_off")) }
            send(message, to: token, by: fcm, leavingBy: leavesBy, complete)
        case .webPush(let subscription):
            guard let webPush else { return complete(.refused(reason: "web_push_off")) }
            let request = webPush.request(message, to: subscription, at: clock())
            observer?(message, target, request)
            submit(request, leavingBy: leavesBy, complete) {
                webPush.outcome(status: $0, retryAfterSeconds: $1, body: $2)
            }
        }
    }

    private func submit(
        _ request: OutboundPost, leavingBy leavesBy: ContinuousClock.Instant, _ complete: @escaping Completion,
        _ meaning: @escaping @Sendable (Int, Int?, [UInt8]) -> PushOutcome
    ) {
        http.submit(request, leavingBy: leavesBy) { outcome, body in
            switch outcome {
            case .answered(let status, let seconds): complete(meaning(status, seconds, body))
            case .failed(.stopped), .failed(.late): complete(.interrupted)
            case .failed(let failure): complete(.failed(reason: failure.rawValue, retryAfterSeconds: nil))
            }
        }
    }

    // MARK: FCM

    private func send(
        _ message: PushMessage, to token: String, by fcm: FCM, leavingBy leavesBy: ContinuousClock.Instant,
        _ complete: @escaping Completion
    ) {
        let post: @Sendable (String) -> Void = { [self] accessToken in
            let request = fcm.request(message, token: token, accessToken: accessToken)
            observer?(message, .fcm(token: token), request)
            submit(request, leavingBy: leavesBy, complete) { status, seconds, body in
                let outcome = fcm.outcome(status: status, retryAfterSeconds: seconds, body: body, used: accessToken)
                if outcome == .accepted { fcm.access.noteServed() }
                return outcome
            }
        }
        let need = fcm.access.need(at: clock()) { answer in
            switch answer {
            case .token(let accessToken): post(accessToken)
            case .failure(let outcome): complete(outcome)
            }
        }
        switch need {
        case .token(let accessToken): post(accessToken)
        case .ask: askForAccess(fcm)
        case .wait: break
        case .refused: complete(.failed(reason: "access_token", retryAfterSeconds: nil))
        }
    }

    private func askForAccess(_ fcm: FCM) {
        http.submit(fcm.accessRequest(at: clock())) { [self] outcome, body in
            let now = clock()
            switch outcome {
            case .answered(200, _):
                if let token = FCM.accessToken(body) {
                    return fcm.access.received(.token(token.text), seconds: token.seconds, at: now)
                }
                fcm.access.received(.failure(.failed(reason: "access_token", retryAfterSeconds: nil)), at: now)
            case .answered(400..<500, let seconds):
                let isBusy = outcome == .answered(status: 429, retryAfterSeconds: seconds)
                fcm.access.received(
                    .failure(
                        isBusy
                            ? .failed(reason: "access_token", retryAfterSeconds: seconds)
                            : .misconfigured(reason: "access_token")), at: now)
            case .answered(_, let seconds):
                fcm.access.received(
                    .failure(.failed(reason: "access_token", retryAfterSeconds: seconds)), at: now)
            case .failed(.stopped): fcm.access.received(.failure(.interrupted), at: now)
            case .failed(let failure):
                fcm.access.received(.failure(.failed(reason: failure.rawValue, retryAfterSeconds: nil)), at: now)
            }
        }
    }
}
