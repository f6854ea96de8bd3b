import Database
import Logging
import Values

/// A way for messages to leave the service.
///
/// The outbox knows when a message is sent, in which order and how often. A channel knows its content, its request, and the
/// meaning of an answer.
protocol Channel: Sendable {
    /// The first word of its routes.
    var name: String { get }
    /// The channels with which it shares metrics and the limits of tenants.
    var family: OutboxFamily { get }
    /// Whether it sends requests. A channel may also distribute messages to others.
    var hasRequests: Bool { get }
    var limits: ChannelLimits { get }

    /// A further condition on the due lanes `l`, if any.
    var condition: SQL? { get }

    /// Whether a message of a type is kept after it was accepted, because it may have to be withdrawn.
    func isAlert(_ type: String) -> Bool

    /// Reads the content of an attempt, in the transaction in which the attempt begins.
    ///
    /// - Returns: Nil if there is nothing to send any more. Then the message is deleted.
    func delivery(of attempt: OutboxAttempt, at now: Timestamp, in db: DatabaseConnection) throws -> (
        any OutboxDelivery
    )?

    /// Counts for metrics, from time to time.
    func count(in db: DatabaseConnection) throws

    /// The line about an outcome for an operator, if any. It is logged at most once a minute.
    func line(for outcome: OutboxOutcome) -> OutboxLine?

    /// The line about the first success after a logged failure.
    var recoveryLine: OutboxLine? { get }

    /// Work on the database before the first message, on the sender's thread.
    func prepare(_ store: DatabaseStore)

    func start()

    /// Interrupts the running requests.
    func stop()
}

extension Channel {
    var condition: SQL? { nil }
    var hasRequests: Bool { true }
    var recoveryLine: OutboxLine? { nil }

    func count(in _: DatabaseConnection) throws {}
    func prepare(_: DatabaseStore) {}
    func line(for _: OutboxOutcome) -> OutboxLine? { nil }

    /// Whether messages of a route leave by this channel.
    func isOn(_ route: String) -> Bool { route == name || route.hasPrefix("\(name) ") }
}

/// A line of the log.
struct OutboxLine: Sendable {
    let message: Logger.Message
    let metadata: Logger.Metadata
}

/// A message with its destination, as read at the moment of sending.
protocol OutboxDelivery: Sendable {
    var attempt: OutboxAttempt { get }

    /// Sends the request. `complete` is called once, on any thread.
    func send(_ complete: @escaping @Sendable (OutboxOutcome) -> Void)

    /// Whether the destination of the attempt is still the same. The outbox asks before it removes the destination.
    func isDestinationPresent(in db: DatabaseConnection) throws -> Bool

    /// Stores the channel's own records about a result. The caller holds the lock of the user.
    ///
    /// - Parameter isLatest: Whether no later attempt of the message was begun.
    func note(_ result: OutboxResult, isLatest: Bool, at now: Timestamp, in db: DatabaseConnection) throws
}

/// The channels that share metrics and the limits of tenants.
enum OutboxFamily: String, CaseIterable, Sendable {
    case webhooks, push

    /// How many messages may wait.
    var waitingMax: Int { self == .webhooks ? OutboxLimits.webhooksWaitingMax : OutboxLimits.pushWaitingMax }
}

/// The limits of a channel.
struct ChannelLimits: Sendable {
    /// Attempts that run at the same time, on each replica.
    let slots: Int
    /// The slots of one tenant. The rest is for other tenants, whose messages would otherwise wait behind its backlog.
    let tenantSlots: Int
    /// How long the receiver may take to answer.
    let timeoutSeconds: Int
    /// Whether messages that are not accepted in time are kept as dead, so that an operator can try them again.
    let keepsDead: Bool
    /// Attempts of a tenant in a minute, on each replica; 0 for no limit.
    let minuteMax: @Sendable (ID<Tenant>) -> Int
}
