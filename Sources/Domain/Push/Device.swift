import Values

/// A device of a user that receives push messages. Its token is never part of an answer.
public struct Device: Sendable, Hashable {
    public enum Platform: String, CaseIterable, Sendable, MemberValue {
        case apns, fcm
        case webPush = "webpush"
    }

    public enum Environment: String, CaseIterable, Sendable, MemberValue {
        case production, sandbox
    }

    /// Chosen by the client, and stable as long as the app is installed.
    public var id: ID<Device> = ""
    public var platform = Platform.apns
    /// The app's bundle id (APNs); nil for the one of the settings.
    public var app: String?
    public var environment = Environment.production
    public var createdAt = Timestamp(microseconds: 0)
    /// The time of the last registration.
    public var registeredAt = Timestamp(microseconds: 0)

    public init() {}

    /// Whether a text can be a bundle id, which becomes a header: "alphanumeric characters, hyphens and periods" (Apple,
    /// CFBundleIdentifier).
    public static func isBundleID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0.isAlphanumeric || "-.".utf8.contains($0) }
    }

    /// Creates a device from its registration.
    ///
    /// - Parameter createdAt: The time of an earlier registration, if any.
    public init(id: ID<Device>, _ draft: DeviceDraft, createdAt: Timestamp?, at now: Timestamp) {
        (self.id, platform, app, environment) = (id, draft.platform, draft.app, draft.environment)
        (self.createdAt, registeredAt) = (createdAt ?? now, now)
    }
}

extension Device: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("platform", &platform)
        members.member("app", &app)
        members.member("environment", &environment)
        members.member("createdAt", &createdAt)
        members.member("registeredAt", &registeredAt)
    }
}

/// The limits of devices, each with its reason.
public enum DeviceLimits {
    /// Devices of a user. Every message to the user is sent to each of them.
    public static let ofUserMax = 20
    /// Bytes of an id. A key of the device's storage, a UUID or a fingerprint fits.
    public static let idBytesMax = 64
    /// Bytes of a token. APNs and FCM document no maximum; theirs have 64 to 300.
    public static let tokenBytesMax = 4096
    /// Bytes of an app's bundle id.
    static let appBytesMax = 155
    /// Bytes of the address of a browser's push service.
    static let endpointBytesMax = 2048
}

/// The body of `PUT /v1/devices/{id}`: `{platform, token | subscription, app?, environment?}`.
public struct DeviceDraft: Sendable, Hashable {
    /// The address of a device at its provider.
    public enum Address: Sendable, Hashable {
        case token(String)
        /// The keys are decoded; the service checks them and the endpoint.
        case subscription(endpoint: String, key: [UInt8], secret: [UInt8])
    }

    public let platform: Device.Platform
    public let address: Address
    public let app: String?
    public let environment: Device.Environment

    public init(reading fields: inout Fields) {
        let platform: Device.Platform = fields.word("platform")
        self.platform = platform
        app = fields.optionalString("app", bytesMax: DeviceLimits.appBytesMax)
        if let app, !Device.isBundleID(app) {
            fields.reject("app", "must be a bundle id: letters, digits, hyphens and dots")
        }
        environment = fields.optionalWord("environment") ?? .production
        if platform != .apns {
            if app != nil { fields.reject("app", "is only allowed for apns") }
            if environment == .sandbox { fields.reject("environment", "can be sandbox only for apns") }
        }
        if platform == .webPush {
            if fields.value("token") != nil {
                fields.reject("token", "is not allowed for webpush, which has a subscription")
            }
            if !fields.has("subscription") { fields.reject("subscription", "is missing") }
            address = fields.object("subscription") { Self.subscription(reading: &$0) } ?? .token("")
        } else {
            if fields.value("subscription") != nil { fields.reject("subscription", "is only allowed for webpush") }
            let token = fields.string("token", bytesMax: DeviceLimits.tokenBytesMax)
            if let problem = Self.problem(of: token, platform) { fields.reject("token", problem) }
            address = .token(token)
        }
    }

    /// A subscription as `PushSubscription.toJSON()` of a browser returns it.
    private static func subscription(reading fields: inout Fields) -> Address {
        let endpoint = fields.string("endpoint", bytesMax: DeviceLimits.endpointBytesMax)
        _ = fields.value("expirationTime")
        if !fields.has("keys") { fields.reject("keys", "is missing") }
        let keys = fields.object("keys") { keys in
            (key: bytes("p256dh", of: &keys), secret: bytes("auth", of: &keys))
        }
        return .subscription(endpoint: endpoint, key: keys?.key ?? [], secret: keys?.secret ?? [])
    }

    private static func bytes(_ name: String, of keys: inout Fields) -> [UInt8] {
        let text = keys.string(name)
        if let bytes = RFC4648.decodeURL(text.utf8) { return bytes }
        keys.reject(name, "must be base64url")
        return []
    }

    /// APNs takes a token as part of a path. Anything but hexadecimal digits would be another path.
    private static func problem(of token: String, _ platform: Device.Platform) -> String? {
        guard !token.isEmpty else { return nil }
        if platform == .apns {
            guard token.utf8.allSatisfy(\.isHexadecimal) else {
                return "must have hexadecimal digits only, as APNs device tokens do"
            }
            return token.utf8.count.isMultiple(of: 2) ? nil : "must have two hexadecimal digits for each byte"
        }
        return token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? nil : "must have no spaces or control characters"
    }
}
