import Foundation

/// A push message of the service, as APNs, FCM or a browser's service delivers it.
public struct PushPayload: Sendable, Hashable {
    /// Nil for a message without a text: a new number on the icon, or a withdrawal.
    public let title: String?
    public let body: String
    /// Whether it is shown without a sound.
    public let isSilent: Bool
    /// The tags of the messages to remove from the screen.
    public let withdrawn: [String]
    /// The number on the icon.
    public let badge: Int?
    public let tag: String
    /// The type and the ids, for the app.
    public let data: JSON
    /// Whether the system shows the message by itself.
    public let isShownBySystem: Bool

    /// Reads a message. A message of another sender has neither a text, a number nor tags.
    public init(_ message: JSON) {
        let whole = Members.of(message)
        if let members = whole.aps?.object {
            let (aps, own) = (Members.of(.object(members)), Members.of(whole.bellhop))
            self.init(
                alert: Members.of(aps.alert), isSilent: aps.sound == nil, withdrawn: own.withdrawn,
                badge: own.badge?.int ?? aps.badge?.int, tag: own.tag, data: own.data, isShownBySystem: true)
        } else if let badge = whole.badge?.string {
            // FCM carries texts only.
            func parsed(_ text: String?) -> JSON? { text.flatMap { try? JSON(parsing: $0) } }
            self.init(
                alert: nil, isSilent: false, withdrawn: parsed(whole.withdrawn?.string), badge: parsed(badge)?.int,
                tag: whole.tag, data: parsed(whole.data?.string), isShownBySystem: true)
        } else {
            self.init(
                alert: whole, isSilent: whole.silent?.bool ?? false, withdrawn: whole.withdrawn,
                badge: whole.badge?.int, tag: whole.tag, data: whole.data, isShownBySystem: false)
        }
    }

    /// The members of a message and of its parts. Another sender's may have any form.
    private struct Members: Decodable {
        let aps, bellhop, alert, title, body, sound, silent, badge, withdrawn, tag, data: JSON?

        /// Returns no members for a value that is no object.
        static func of(_ json: JSON?) -> Members {
            (json ?? .null).model()
                ?? Members(
                    aps: nil, bellhop: nil, alert: nil, title: nil, body: nil, sound: nil, silent: nil, badge: nil,
                    withdrawn: nil, tag: nil, data: nil)
        }
    }

    /// Reads the `userInfo` of a notification of Apple's systems.
    public init(userInfo: [AnyHashable: Any]) {
        let members = userInfo.reduce(into: [String: Any]()) { $0["\($1.key)"] = $1.value }
        let isValid = JSONSerialization.isValidJSONObject(members)
        let bytes = isValid ? try? JSONSerialization.data(withJSONObject: members) : nil
        self.init(bytes.flatMap { try? JSON(parsing: $0) } ?? .null)
    }

    private init(
        alert: Members?, isSilent: Bool, withdrawn: JSON?, badge: Int?, tag: JSON?, data: JSON?, isShownBySystem: Bool
    ) {
        (title, body, self.isSilent) = (alert?.title?.string, alert?.body?.string ?? "", isSilent)
        (self.withdrawn, self.badge, self.tag) = (withdrawn?.strings ?? [], badge, tag?.string ?? "")
        (self.data, self.isShownBySystem) = (data.flatMap { $0.isNull ? nil : $0 } ?? [:], isShownBySystem)
    }

    /// What a device does with the message.
    var actions: [PushAction] {
        var actions: [PushAction] = withdrawn.isEmpty ? [] : [.close(withdrawn)]
        if let title, !isShownBySystem {
            actions.append(.show(PushAlert(title: title, body: body, tag: tag, isSilent: isSilent, data: data)))
        }
        if let badge { actions.append(.badge(badge)) }
        return actions
    }

    /// Does what the message asks for. Extensions and background tasks call it without a bell.
    public func apply(to screen: any NotificationScreen) async {
        for action in actions { await action.perform(on: screen) }
    }
}

/// A change of a device's screen.
public enum PushAction: Sendable, Hashable {
    case show(PushAlert)
    /// Removes the notifications of these tags.
    case close([String])
    /// Sets the number on the app's icon.
    case badge(Int)

    func perform(on screen: any NotificationScreen) async {
        switch self {
        case .show(let alert): await screen.show(alert)
        case .close(let tags): await screen.remove(tags)
        case .badge(let count): await screen.setBadge(count)
        }
    }
}
