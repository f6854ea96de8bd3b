import Cryptography
import Rows

extension WebhookSignature {
    /// HMAC-SHA256, for signing and for verifying.
    static let hmac: @Sendable (_ key: [UInt8], _ message: [UInt8]) -> [UInt8] = { key, message in
        AuthenticationKey(key).code(for: message)
    }
}
