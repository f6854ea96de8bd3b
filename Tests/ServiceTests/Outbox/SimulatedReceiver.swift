import Domain
import OutboundHTTP
import Push
import Values

@testable import Service

/// One receiver of the simulation, with its actual and its expected state: a device of a user, or the app's server with
/// its knowledge of the user.
struct SimulatedReceiver {
    enum Kind: String, CaseIterable {
        case phone, browser, server
    }

    let user: ID<User>
    let kind: Kind
    /// The number in its address; nil if the app is not installed.
    private(set) var token: Int?
    /// The version of each alert on the screen, by tag.
    private(set) var alerts: [String: Int] = [:]
    /// The number on the icon; nil if it was sent no number.
    private(set) var icon: Int?
    /// The user's total at the installation.
    private var firstTotal = 0
    /// Whether the push service refused the latest number.
    private var isIconOld = false
    /// The alerts that were added since the installation.
    private var owed: Set<String> = []
    /// Alerts whose withdrawals were refused.
    private var stuck: Set<String> = []
    /// The version of each alert that arrived last, how often it arrived again, and how often it may.
    private var arrived: [String: Int] = [:]
    private var repeats: [String: Int] = [:]
    private var excuses: [String: Int] = [:]
    /// The notifications that must arrive in this order.
    private var order: [String] = []

    var name: String { "the \(kind) of \(user)" }

    init(of user: ID<User>, _ kind: Kind) { (self.user, self.kind) = (user, kind) }

    // MARK: The app

    mutating func install(_ token: Int, total: Int) {
        self = SimulatedReceiver(of: user, kind)
        (self.token, firstTotal) = (token, total)
    }

    mutating func uninstall() { self = SimulatedReceiver(of: user, kind) }

    mutating func renew(_ token: Int) { self.token = token }

    /// Notes that the user got something, which the device should show.
    mutating func owe(_ tag: String, inOrder: Bool) {
        guard token != nil else { return }
        owed.insert(tag)
        if inOrder { order.append(tag) }
    }

    /// Notes that the present alerts may arrive in any order.
    mutating func disorder() { order = [] }

    mutating func excuse(_ parcel: Parcel) {
        if parcel.isAlert { excuses[parcel.message.tag, default: 0] += 1 }
    }

    // MARK: Messages

    /// Receives a message.
    ///
    /// - Parameter unread: The number of unread things about a tag.
    /// - Returns: The violated invariant, if any.
    mutating func receive(_ message: PushMessage, unread: (String) -> Int) -> String? {
        switch message.content {
        case .alert(_, let body, _):
            for tag in message.withdrawn { alerts[tag] = nil }
            let fault = fault(of: message.tag, Int(body) ?? 0, unread)
            (alerts[message.tag], arrived[message.tag]) = (Int(body), Int(body))
            stuck.remove(message.tag)
            (icon, isIconOld) = (message.badge, false)
            order.removeAll { $0 == message.tag }
            return fault
        case .badge:
            (icon, isIconOld) = (message.badge, false)
        case .withdrawal:
            for tag in message.withdrawn { alerts[tag] = nil }
        }
        return kind == .browser ? "\(name) gets a message that shows nothing" : nil
    }

    private mutating func fault(of tag: String, _ version: Int, _ unread: (String) -> Int) -> String? {
        if let last = arrived[tag] {
            if version < last { return "\(name) gets an old version of \(tag)" }
            if version == last {
                repeats[tag, default: 0] += 1
                if repeats[tag, default: 0] > excuses[tag, default: 0] {
                    return "\(name) gets \(tag) again without a reason"
                }
            }
        }
        let place = order.firstIndex(of: tag) ?? 0
        if let earlier = order[..<place].first(where: { unread($0) > 0 }) {
            return "\(name) gets \(tag) before \(earlier)"
        }
        return nil
    }

    /// The push service does not accept a message, and never will.
    ///
    /// - Parameter isNewest: Whether nothing was added about its subject since it was read.
    mutating func miss(_ message: PushMessage, isNewest: Bool) {
        switch message.content {
        case .alert:
            isIconOld = true
            if isNewest { owed.remove(message.tag) }
            order.removeAll { $0 == message.tag }
        case .badge: isIconOld = true
        case .withdrawal: stuck.formUnion(message.withdrawn)
        }
    }

    // MARK: The end

    /// Returns a wrong state once the senders have nothing to do; nil if all is right.
    ///
    /// - Parameters:
    ///   - unread: The number of unread things about a tag, and the version of the latest.
    ///   - isLast: Whether an alert came last, which takes a browser's withdrawals along.
    func fault(total: Int, isLast: Bool, unread: (String) -> (count: Int, version: Int)) -> String? {
        guard token != nil else { return nil }
        for tag in owed.sorted() where unread(tag).count > 0 && alerts[tag] != unread(tag).version {
            return "\(name) does not show \(tag)"
        }
        guard kind != .browser || isLast else { return nil }
        for tag in alerts.keys.sorted() where unread(tag).count == 0 && !stuck.contains(tag) {
            return "\(name) shows \(tag), which was seen"
        }
        guard kind != .server, !isIconOld, (icon ?? firstTotal) != total else { return nil }
        return "\(name) shows the number \(icon ?? firstTotal) in place of \(total)"
    }
}

/// A message on its way, in one form for all channels.
struct Parcel {
    let attempt: OutboxAttempt
    let user: ID<User>
    let kind: SimulatedReceiver.Kind
    let isAlert: Bool
    let message: PushMessage
    /// The number in the address.
    let token: Int?

    var name: String { "\(attempt.type) \(attempt.subject) to the \(kind) of \(user)" }
    /// The version of the content of an alert.
    var version: Int? { if case .alert(_, let body, _) = message.content { Int(body) } else { nil } }

    init?(_ delivery: any OutboxDelivery) {
        attempt = delivery.attempt
        guard let userId = attempt.userId else { return nil }
        user = userId
        if let push = delivery as? PushDelivery {
            (kind, isAlert) = (push.target.provider is WebPush ? .browser : .phone, push.type.isAlert)
            (message, token) = (push.message, Self.token(push.target))
        } else if let webhook = delivery as? WebhookDelivery,
            case .object(let body) = try? JSONValue(parsing: webhook.request.body), let data = body.object("data")
        {
            (kind, isAlert, token) = (.server, webhook.type.isUnreached, 0)
            let isMessage = webhook.type == .messageUnreached || webhook.type == .messageWithdrawn
            let tag = PushFeature.tag(isMessage ? .message : .notification, attempt.subject)
            let version = data.object("message")?.string("text") ?? "1"
            message = PushMessage(
                isAlert ? .alert(title: "", body: version, isSilent: false) : .withdrawal,
                badge: data.object("badges")?.integer("total").map(Int.init) ?? -1, tag: tag, data: [],
                withdrawn: isAlert ? [] : [tag], secondsToLive: 0)
        } else {
            return nil
        }
    }

    private static func token(_ target: PushTarget) -> Int? {
        if let subscription = target.address as? WebPushSubscription {
            return subscription.endpoint.split(separator: "/").last.flatMap { Int($0) }
        }
        // After its letter and its app, a stored address is a token.
        return Int(String(decoding: target.address.device, as: UTF8.self))
    }
}
