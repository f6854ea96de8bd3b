import BellhopClient
import Crypto
import Foundation

/// A JWT signed with a shared secret (HS256), as `bellhop token` mints it for development and for scripts.
struct DevelopmentToken {
    var subject: String
    var role: String?
    var tenant: String?
    /// Further claims; those that concern authorization belong under `app_metadata`.
    var claims: [String: JSON] = [:]
    var lifetimeSeconds = 3600

    func signed(with secret: String, now: Date = Date()) -> String {
        var metadata = claims["app_metadata"]?.object ?? [:]
        if let role { metadata["user_role"] = .string(role) }
        if let tenant { metadata["tenant"] = .string(tenant) }
        var payload = claims
        if !metadata.isEmpty { payload["app_metadata"] = .object(metadata) }
        let issuedAt = Int64(now.timeIntervalSince1970)
        payload["sub"] = .string(subject)
        payload["iat"] = .integer(issuedAt)
        payload["exp"] = .integer(issuedAt + Int64(lifetimeSeconds))
        payload["jti"] = payload["jti"] ?? .string(UUID().uuidString.lowercased())
        let head: JSON = ["alg": "HS256", "typ": "JWT"]
        let signed = DevelopmentToken.base64URL(head.data) + "." + DevelopmentToken.base64URL(JSON.object(payload).data)
        let code = HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return signed + "." + DevelopmentToken.base64URL(Data(code))
    }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}
