import Foundation

/// What a client reads of a token's payload.
///
/// The client does not verify it: the service checks the signature, and names the identity (`GET /v1/me`).
package struct TokenClaims: Sendable, Hashable, Encodable {
    package private(set) var subject: String?
    /// A digest of the issuer and the subject: the user of the token, whatever its rights are.
    package private(set) var holder: String?
    /// A digest of the subject alone.
    package private(set) var person: String?
    /// All claims except `iat`, `exp`, `nbf` and `jti`, as canonical JSON. Tokens with equal claims have one identity. The
    /// claims stay in memory.
    package private(set) var claims: String?
    /// How long the token lives from its issue on. The device's clock may be wrong by days, so times are not used.
    package private(set) var lifeMilliseconds: Int?

    private enum CodingKeys: String, CodingKey {
        case subject, holder, person
        case lifeMilliseconds = "lifeMs"
    }

    /// Reads a JWT; every property is nil for a token of another kind.
    package init(of token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return }
        let base64 = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: base64 + padding), let json = try? JSON(parsing: data) else { return }
        self = TokenClaims(payload: json)
    }

    package init(payload: JSON) {
        guard case .object(var members) = payload else { return }
        for name in ["iat", "exp", "nbf", "jti"] { members[name] = nil }
        claims = TokenClaims.sorted(.object(members)).text
        subject = payload["sub"].string
        person = TokenClaims.person(of: subject)
        holder = subject.map { Digest.of(JSON.array([payload["iss"], .string($0)]).text) }
        guard let issued = payload["iat"].double, let end = payload["exp"].double, end > issued else { return }
        lifeMilliseconds = Int(exactly: ((end - issued) * 1000).rounded())
    }

    package static func person(of subject: String?) -> String? {
        subject.map { Digest.of(JSON.array([.string($0)]).text) }
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
