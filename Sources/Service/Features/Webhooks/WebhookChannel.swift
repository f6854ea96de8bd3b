import Database
import Domain
import Logging
import OutboundHTTP
import Rows
import Values

/// Webhooks to the app's own server.
final class WebhookChannel: Channel {
    let name = WebhookType.channel
    let family = OutboxFamily.webhooks
    let limits: ChannelLimits

    private let settings: WebhookSettings
    private let sources: WebhookSources
    private let epoch: @Sendable () -> String
    private let clock: Clock
    private let client: OutboundMultiplexer

    init(
        _ settings: WebhookSettings, _ sources: WebhookSources, _ shares: TenantShares, clock: Clock,
        epoch: @escaping @Sendable () -> String
    ) {
        (self.settings, self.sources, self.epoch, self.clock) = (settings, sources, epoch, clock)
        limits = ChannelLimits(
            slots: WebhookLimits.slots, tenantSlots: WebhookLimits.tenantSlots, timeoutSeconds: settings.timeoutSeconds,
            keepsDead: true, minuteMax: { shares.webhooks(of: $0) })
        client = OutboundMultiplexer(
            "webhooks", allowsPrivate: settings.allowsPrivate, timeoutSeconds: settings.timeoutSeconds,
            hostConnectionsMax: WebhookLimits.slots, version: .http1)
    }

    func start() { client.start() }

    func stop() { client.stop() }

    func isAlert(_ type: String) -> Bool { WebhookType(rawValue: type)?.isUnreached == true }

    // MARK: Content

    func delivery(
        of attempt: OutboxAttempt, at now: Timestamp, in db: DatabaseConnection
    ) throws -> (any OutboxDelivery)? {
        guard let type = WebhookType(rawValue: attempt.type) else {
            throw DatabaseError(.corrupt, "a stored webhook has an unknown type")
        }
        var content = WebhookContent(type: type, createdAt: attempt.createdAt, data: attempt.data)
        if let owner = attempt.owner {
            content.badges = try BadgeLedger.counts(of: owner, at: now, in: db).sent(in: epoch())
            if type == .messageUnreached {
                guard let unread = try sources.message(ID(attempt.subject), owner, db) else { return nil }
                content.data = JSONWriter.bytes(unread)
            }
            if type.namesQuietHours { content.preferences = try sources.preferences(owner, db) }
        }
        return WebhookDelivery(attempt: attempt, type: type, request: request(attempt.id, content), client: client)
    }

    private func request(_ id: String, _ content: WebhookContent) -> OutboundPost {
        let now = clock.now()
        let body = content.body(at: now)
        let signatures = settings.secrets.map {
            WebhookSignature.sign(id: id, seconds: now.seconds, body: body, secret: $0, hmac: WebhookSignature.hmac)
        }
        let headers = [
            (name: "webhook-id", value: id), (name: "webhook-timestamp", value: "\(now.seconds)"),
            (name: "webhook-signature", value: signatures.joined(separator: " ")),
        ]
        return OutboundPost(url: settings.url, headers: headers, body: body)
    }

    // MARK: Lines of the log

    func line(for outcome: OutboxOutcome) -> OutboxLine? {
        outcome.reason.map {
            OutboxLine(
                message: "A webhook was not accepted.", metadata: ["host": "\(settings.host)", "reason": "\($0)"])
        }
    }

    var recoveryLine: OutboxLine? {
        OutboxLine(message: "Webhooks are accepted again.", metadata: ["host": "\(settings.host)"])
    }
}

/// The reads of other features that a webhook needs at the moment of sending. The start of the service passes them,
/// because features do not know one another.
struct WebhookSources: Sendable {
    /// Returns the unread messages of a member, if any.
    let message: @Sendable (ID<Conversation>, Owner, DatabaseConnection) throws -> UnreadConversation?
    let preferences: @Sendable (Owner, DatabaseConnection) throws -> Preferences
}

/// What a webhook contains.
private struct WebhookContent {
    let type: WebhookType
    let createdAt: Timestamp
    /// A JSON object.
    var data: [UInt8]
    /// The user's preferences, for quiet hours.
    var preferences: Preferences?
    /// The user's counts of this moment.
    var badges: SentBadges?

    func body(at now: Timestamp) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("type", type)
            writer.member("timestamp", createdAt)
            writer.member("data") { writer in
                if let preferences {
                    let minute = TimeZones.minuteOfDay(now, preferences)
                    writer.member("quietHours", preferences.quietHours?.contains(minuteOfDay: minute) ?? false)
                }
                if let badges { writer.member("badges", badges) }
                writer.members(of: data)
            }
        }
    }
}

/// One webhook with its request.
struct WebhookDelivery: OutboxDelivery {
    let attempt: OutboxAttempt
    let type: WebhookType
    let request: OutboundPost
    let client: OutboundMultiplexer

    func send(_ complete: @escaping @Sendable (OutboxOutcome) -> Void) {
        Exits.note(webhook: request, type: type)
        client.submit(request) { outcome, _ in complete(Self.meaning(of: outcome)) }
    }

    /// Returns what an answer means. A receiver that refuses one body may accept the next one.
    static func meaning(of outcome: OutboundOutcome) -> OutboxOutcome {
        switch outcome {
        case .answered(200..<300, _): .accepted
        case .answered(429, let seconds): .failed(reason: "status_429", retryAfterSeconds: seconds)
        case .answered(400..<500, _): .rejected(reason: outcome.word, retryAfterSeconds: nil)
        case .answered(let status, let seconds):
            .failed(reason: outcome.word, retryAfterSeconds: status == 503 ? seconds : nil)
        case .failed(.stopped), .failed(.late): .interrupted
        case .failed: .failed(reason: outcome.word, retryAfterSeconds: nil)
        }
    }

    func isDestinationPresent(in _: DatabaseConnection) throws -> Bool { true }

    func note(_ result: OutboxResult, isLatest: Bool, at _: Timestamp, in db: DatabaseConnection) throws {
        guard case .accepted = result, isLatest, type == .messageUnreached else { return }
        try Outbox.deleteWithdrawal(
            WebhooksFeature.slot(.messageWithdrawn, attempt.subject), before: attempt, in: db)
    }
}

extension OutboundOutcome {
    /// The label of its count in the metrics.
    fileprivate var word: String {
        switch self {
        case .answered(let status, _): "status_\(status)"
        case .failed(let failure): failure.rawValue
        }
    }
}
