import Cryptography
import OutboundHTTP
import Values

/// The address of one device at its provider.
public enum PushTarget: Sendable, Equatable {
    /// - Parameters:
    ///   - topic: The app's bundle id; nil for the one of the settings.
    ///   - isSandbox: Whether the app is a development build.
    case apns(token: String, topic: String?, isSandbox: Bool)
    case fcm(token: String)
    case webPush(WebPushSubscription)

    /// Returns the JSON that its provider, or for Web Push its browser, reads: for Web Push, the text before encryption.
    public func payload(of message: PushMessage) -> [UInt8] {
        switch self {
        case .apns: APNs.payload(message)
        case .fcm(let token): FCM.payload(message, token)
        case .webPush: WebPush.payload(message)
        }
    }

    /// Bytes of the payload that the provider takes.
    var payloadBytesMax: Int {
        if case .webPush = self { WebPush.payloadBytesMax } else { PushLimits.payloadBytesMax }
    }

    /// The device that the address leads to, however the address is written. A device has one user, so two registrations
    /// with the same name are one device.
    ///
    /// A token of APNs is a number, whose digits may have either case. The app and the environment say how to reach the
    /// device. A subscription is its endpoint, because a browser may renew the keys.
    public var identity: [UInt8] {
        switch self {
        case .apns(let token, _, _): Array("a\(token.lowercased())".utf8)
        case .fcm(let token): Array("f\(token)".utf8)
        case .webPush(let subscription): Array("w\(subscription.url.canonical)".utf8)
        }
    }

    /// The address as it is encrypted and stored: a letter for its form, and its parts.
    public var stored: [UInt8] {
        switch self {
        case .apns(let token, let topic, let isSandbox):
            Array("a\(isSandbox ? 1 : 0)\(topic ?? "")\u{0}\(token)".utf8)
        case .fcm(let token): Array("f\(token)".utf8)
        case .webPush(let subscription):
            Array("w".utf8) + subscription.secret + subscription.key + Array(subscription.endpoint.utf8)
        }
    }

    /// Reads a stored address; nil if it is malformed.
    public init?(stored bytes: [UInt8]) {
        switch bytes.first {
        case UInt8(ascii: "a"):
            guard bytes.count > 2, let end = bytes.firstIndex(of: 0) else { return nil }
            let topic = String(decoding: bytes[2..<end], as: UTF8.self)
            self = .apns(
                token: String(decoding: bytes[(end + 1)...], as: UTF8.self), topic: topic.isEmpty ? nil : topic,
                isSandbox: bytes[1] == UInt8(ascii: "1"))
        case UInt8(ascii: "f"): self = .fcm(token: String(decoding: bytes.dropFirst(), as: UTF8.self))
        case UInt8(ascii: "w"):
            let rest = bytes.dropFirst()
            let (secret, key) = (WebPushSubscription.secretBytes, PrivateKey.pointBytes)
            guard rest.count > secret + key,
                let subscription = try? WebPushSubscription(
                    endpoint: String(decoding: rest.dropFirst(secret + key), as: UTF8.self),
                    key: Array(rest.dropFirst(secret).prefix(key)), secret: Array(rest.prefix(secret)))
            else { return nil }
            self = .webPush(subscription)
        default: return nil
        }
    }
}
