import Foundation

/// The claims of a token's payload.
///
/// The client does not verify them: the service checks the signature.
struct TokenClaims: Sendable, Hashable, Encodable {
    /// All claims except `iat`, `exp`, `nbf` and `jti`, as canonical JSON.
    ///
    /// These claims decide what a token may do. Tokens of one identity share a cursor and an outbox.
    private(set) var identity: String?
    private(set) var subject: String?
    /// Milliseconds since 1970.
    private(set) var expiresAt: Int?

    /// Reads a JWT; every property is nil for a token of another kind.
    init(of token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return }
        let base64 = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: base64 + padding), let json = try? JSON(parsing: data) else { return }
        self = TokenClaims(payload: json)
    }

    init(payload: JSON) {
        guard case .object(var members) = payload else { return }
        for name in ["iat", "exp", "nbf", "jti"] { members[name] = nil }
        identity = TokenClaims.sorted(.object(members)).text
        subject = payload["sub"].string
        expiresAt = payload["exp"].double.flatMap { Int(exactly: ($0 * 1000).rounded()) }
    }

    /// Issuers may list the same roles in another order. The members of objects are sorted by `text`.
    private static func sorted(_ json: JSON) -> JSON {
        switch json {
        case .array(let elements): .array(elements.map(sorted).sorted { $0.text < $1.text })
        case .object(let members): .object(members.mapValues(sorted))
        default: json
        }
    }
}
