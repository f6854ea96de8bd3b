import OutboundHTTP
import Values

/// Sends messages to devices through their providers: one HTTP/2 connection to each.
public final class PushClient: Sendable {
    /// Receives the outcome on the client's thread.
    public typealias Completion = @Sendable (PushOutcome) -> Void
    /// Receives each request for a message before it leaves.
    public typealias Observer = @Sendable (PushMessage, PushTarget, OutboundPost) -> Void

    private let http: OutboundMultiplexer
    private let clock: @Sendable () -> Timestamp
    private let observer: Observer?

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - allowsPrivate: Whether providers may be at private addresses, also without TLS.
    ///   - certificates: A file of certificates (PEM) to trust instead of the system's; nil for the system's.
    public init(
        allowsPrivate: Bool, certificates: String?, timeoutSeconds: Int, clock: @escaping @Sendable () -> Timestamp,
        observer: Observer? = nil
    ) {
        (self.clock, self.observer) = (clock, observer)
        http = OutboundMultiplexer(
            "push", allowsPrivate: allowsPrivate, certificates: certificates, timeoutSeconds: timeoutSeconds)
    }

    public func start() { http.start() }

    /// Ends waiting messages as ``PushOutcome/interrupted``.
    public func stop() { http.stop() }

    public func send(_ message: PushMessage, to target: PushTarget, _ complete: @escaping Completion) {
        let observe = observer.map { observer in { observer(message, target, $0) } as @Sendable (OutboundPost) -> Void }
        let attempt = PushAttempt(
            http: http, clock: clock, leavesBy: ContinuousClock.now + PushLimits.waitMax, observe: observe,
            complete: complete)
        target.send(message, in: attempt)
    }
}

/// The sending of one message: how its provider sends requests, and where the outcome goes.
public struct PushAttempt: Sendable {
    fileprivate let http: OutboundMultiplexer
    fileprivate let clock: @Sendable () -> Timestamp
    fileprivate let leavesBy: ContinuousClock.Instant
    fileprivate let observe: (@Sendable (OutboundPost) -> Void)?
    fileprivate let complete: PushClient.Completion

    var now: Timestamp { clock() }

    /// Sends the request for the message. Its outcome ends the attempt.
    ///
    /// - Parameter meaning: Returns what an answer means: its status, its `Retry-After` and its body.
    func send(_ request: OutboundPost, _ meaning: @escaping @Sendable (Int, Int?, [UInt8]) -> PushOutcome) {
        observe?(request)
        http.submit(request, leavingBy: leavesBy) { outcome, body in
            switch outcome {
            case .answered(let status, let seconds): complete(meaning(status, seconds, body))
            case .failed(.stopped), .failed(.late): complete(.interrupted)
            case .failed(let failure): complete(.failed(reason: failure.rawValue, retryAfterSeconds: nil))
            }
        }
    }

    /// Sends a request for something that messages need, such as an access token.
    func ask(_ request: OutboundPost, _ complete: @escaping OutboundMultiplexer.Completion) {
        http.submit(request, complete)
    }

    /// Ends the attempt without a request.
    func end(_ outcome: PushOutcome) { complete(outcome) }
}
