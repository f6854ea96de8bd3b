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
        let (aps, own) = (message["aps"], message["bellhop"])
        if aps.object != nil {
            self.init(
                alert: aps["alert"], isSilent: aps["sound"].isNull, withdrawn: own["withdrawn"].strings,
                badge: own["badge"].int ?? aps["badge"].int, tag: own["tag"].string, data: own["data"],
                isShownBySystem: true)
        } else if message["badge"].string != nil {
            // FCM carries texts only.
            func parsed(_ name: String) -> JSON { message[name].string.flatMap { try? JSON(parsing: $0) } ?? .null }
            self.init(
                alert: .null, isSilent: false, withdrawn: parsed("withdrawn").strings, badge: parsed("badge").int,
                tag: message["tag"].string, data: parsed("data"), isShownBySystem: true)
        } else {
            self.init(
                alert: message, isSilent: message["silent"].bool ?? false, withdrawn: message["withdrawn"].strings,
                badge: message["badge"].int, tag: message["tag"].string, data: message["data"], isShownBySystem: false)
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
        alert: JSON, isSilent: Bool, withdrawn: [String], badge: Int?, tag: String?, data: JSON, isShownBySystem: Bool
    ) {
        (title, body, self.isSilent) = (alert["title"].string, alert["body"].string ?? "", isSilent)
        (self.withdrawn, self.badge, self.tag) = (withdrawn, badge, tag ?? "")
        (self.data, self.isShownBySystem) = (data.isNull ? [:] : data, isShownBySystem)
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
