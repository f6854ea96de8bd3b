import Values

/// A message for one device, before a provider gives it its form.
public struct PushMessage: Sendable {
    public enum Content: Sendable {
        /// Shown by the device.
        ///
        /// - Parameter isSilent: Without sound, as in quiet hours.
        case alert(title: String, body: String, isSilent: Bool)
        /// The number on the icon alone.
        case badge
        /// Nothing but what the device removes from its screen.
        case withdrawal
    }

    public let content: Content
    /// The number on the icon: the user's total at the time of sending.
    public let badge: Int
    /// Identifies what the message is about. A device shows the latest message of a tag, and removes it by its tag.
    public let tag: String
    /// A JSON object for the app: the type and the ids.
    public let data: [UInt8]
    public let isUrgent: Bool
    /// Messages that the device removes from its screen, by their tags. Alerts take some along to browsers only.
    public private(set) var withdrawn: [String]
    /// How long the provider keeps the message for a device that is off.
    public let secondsToLive: Int64

    public init(
        _ content: Content, badge: Int, tag: String, data: [UInt8], isUrgent: Bool = false, withdrawn: [String] = [],
        secondsToLive: Int64
    ) {
        (self.content, self.badge, self.tag, self.data) = (content, badge, tag, data)
        (self.isUrgent, self.withdrawn, self.secondsToLive) = (isUrgent, withdrawn, secondsToLive)
    }

    /// Returns the message with as many of its withdrawals as its payload has room for, the first ones. A withdrawal keeps
    /// at least one.
    public func fitting(_ address: some PushAddress) -> PushMessage {
        let kept = if case .withdrawal = content { 1 } else { 0 }
        var message = self
        let bytesMax = type(of: address).payloadBytesMax
        while message.withdrawn.count > kept, address.payload(of: message).count > bytesMax {
            message.withdrawn = Array(message.withdrawn.prefix(max(kept, message.withdrawn.count / 2)))
        }
        return message
    }
}

/// The answer of a provider.
public enum PushOutcome: Sendable, Equatable {
    case accepted
    /// The device no longer has the app: it must be removed. No setting can cause this answer.
    ///
    /// - Parameter since: The time from which the provider knows it. A device that was registered later stays.
    case gone(reason: String, since: Timestamp?)
    /// This message cannot be sent to this device. Trying again does not help.
    case refused(reason: String)
    /// The provider is busy, down or out of reach.
    case failed(reason: String, retryAfterSeconds: Int?)
    /// The provider does not accept the key or another setting. Every message fails until an operator mends it.
    case misconfigured(reason: String)
    /// The device and the settings do not match, such as a token of another environment or of another project. Either may
    /// be wrong, so the device stays.
    case mismatched(reason: String)
    /// The message may not have left: the service stops, or the connection or the access token took too long.
    case interrupted
}

/// The limits of push messages, each with its reason.
public enum PushLimits {
    /// Bytes of a payload: the limit of APNs, FCM and, after encryption, of the browsers' services.
    public static let payloadBytesMax = 4096
    /// Bytes of a tag that APNs takes as its collapse id.
    static let tagBytesMax = 64
    /// Bytes of one text of an alert. Title, body and data fit the payload together, even if every character is escaped.
    static let titleBytesMax = 256
    static let bodyBytesMax = 1024
    /// The time in which a message must leave. It has the number of the moment when it was read, and may be seen
    /// meanwhile. One that waits longer, for its connection or for an access token, is read again.
    static let waitMax: Duration = .seconds(1)
    /// Messages that wait for an access token of FCM. More fail and are tried again.
    static let waitingMax = 1024
}

extension String {
    /// Returns the text, cut at the end of a character if it is longer than `bytesMax` bytes.
    func clipped(to bytesMax: Int) -> String {
        guard utf8.count > bytesMax else { return self }
        var (result, count) = ("", 3)
        for character in self {
            count += character.utf8.count
            guard count <= bytesMax else { break }
            result.append(character)
        }
        return result + "…"
    }
}
