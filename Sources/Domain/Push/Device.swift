import Values

/// A device of a user that receives push messages. Its token is never part of an answer.
public struct Device: Sendable, Hashable {
    public enum Environment: String, CaseIterable, Sendable, MemberValue {
        case production, sandbox
    }

    /// Chosen by the client, and stable as long as the app is installed.
    public var id: ID<Device> = ""
    /// The name of its provider.
    public var platform = ""
    /// The app's bundle id (APNs); nil for the one of the settings.
    public var app: String?
    public var environment = Environment.production
    public var createdAt = Timestamp(microseconds: 0)
    /// The time of the last registration.
    public var registeredAt = Timestamp(microseconds: 0)

    public init() {}

    /// Creates a device from its registration.
    ///
    /// - Parameter createdAt: The time of an earlier registration, if any.
    public init(
        id: ID<Device>, platform: String, app: String?, environment: Environment, createdAt: Timestamp?,
        at now: Timestamp
    ) {
        (self.id, self.platform, self.app, self.environment) = (id, platform, app, environment)
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
}
