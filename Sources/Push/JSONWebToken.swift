import Cryptography
import Values

/// A signed token that proves the service's identity to a provider (RFC 7519, RFC 7515).
enum JSONWebToken {
    /// Returns a token.
    ///
    /// - Parameter keyId: Names the key for a provider that knows several.
    static func signed(
        by key: PrivateKey, keyId: String?, claims: (inout JSONWriter) -> Void
    ) -> String {
        let header = JSONWriter.object { writer in
            writer.member("alg", key.algorithm.rawValue)
            writer.member("typ", "JWT")
            // RFC 7515 §4.1.4: a text, or no member. Strict push services refuse null.
            if let keyId { writer.member("kid", keyId) }
        }
        let content = RFC4648.encodeURL(header) + "." + RFC4648.encodeURL(JSONWriter.object(claims))
        return content + "." + RFC4648.encodeURL(key.sign(Array(content.utf8)))
    }
}
