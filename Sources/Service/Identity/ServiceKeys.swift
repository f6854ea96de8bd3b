import Cryptography
import Database
import Values
import Visibility

/// The backends that authenticate with a key of the settings.
///
/// A key is removed by a restart without it, so its backend is no row and has no expiry.
struct ServiceKeys: Sendable {
    private let known: [(digest: [UInt8], caller: Caller)]

    init(_ settings: Settings) {
        known = settings.serviceKeys.map { ($0.digest, Self.caller(of: $0)) }
    }

    /// Returns the backend of a key; nil if a text is not a key.
    ///
    /// All digests are compared, in constant time: the time reveals neither bytes of a key nor its place.
    func caller(
        of token: UnsafeBufferPointer<UInt8>, isEqual: ([UInt8], [UInt8]) -> Bool = { constantTimeEqual($0, $1) }
    ) -> Caller? {
        guard !known.isEmpty, !ServiceKey.isLikeToken(token) else { return nil }
        let digest = SHA256.hash(token)
        return known.reduce(nil) { found, key in isEqual(key.digest, digest) ? key.caller : found }
    }

    private static func caller(of key: ServiceKey) -> Caller {
        let tenant = key.tenant ?? "default"
        return Caller(
            tenant: tenant, userId: ID(key.name), role: TokenRole.backend.rawValue, isService: true,
            spansTenants: key.tenant == nil, capabilities: key.capabilities,
            scope: Scope(
                tenant: tenant,
                keys: ["everyone", AudienceKey.make("user", key.name), AudienceKey.make("tenant", "service")]),
            expiresAt: expiresAt)
    }

    /// The last second that RFC 3339 can express.
    fileprivate static let expiresAt = Timestamp(microseconds: 253_402_300_799_000_000)
}

extension Caller {
    /// Whether it is the backend of a key, which never expires.
    var hasServiceKey: Bool { expiresAt == ServiceKeys.expiresAt }
}
