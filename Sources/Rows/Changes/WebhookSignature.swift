import Values

/// The signature of a webhook by Standard Webhooks 1.0.0: HMAC-SHA256 over `{id}.{timestamp}.{body}`.
///
/// The HMAC function and the time are parameters, so that this code depends on no cryptography library and no clock.
public enum WebhookSignature {
    /// An HMAC-SHA256 function (RFC 2104): the 32 bytes for a key and a message.
    public typealias HMAC = (_ key: [UInt8], _ message: [UInt8]) -> [UInt8]

    /// The allowed difference of a delivery's time from now, in either direction. An intercepted delivery can be
    /// replayed within this time.
    static let toleranceSeconds: Int64 = 300
    /// Signatures that are checked. A sender that rotates keys sends two; each costs a comparison per secret.
    public static let signaturesMax = 16
    /// Secrets that are tried. Each costs a hash of the whole body, whose size an unknown sender chooses.
    public static let secretsMax = 4

    /// The key that a secret's text encodes.
    public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
        /// Bytes of a key, as the standard requires. A shorter key can be guessed. A key longer than a SHA-256 block is
        /// hashed first, so the extra length adds nothing.
        static let keyBytes = 24...64

        let key: [UInt8]

        /// Reads `whsec_` and base64; the prefix is optional. The thrown error does not contain the secret.
        public init(_ text: String) throws(Failure) {
            let encoded = text.hasPrefix("whsec_") ? String(text.dropFirst(6)) : text
            guard let key = RFC4648.decode(encoded) else {
                throw Failure(.invalid, "webhook.bad_secret", "A webhook secret must be whsec_ followed by base64.")
            }
            guard Secret.keyBytes.contains(key.count) else {
                throw Failure(
                    .invalid, "webhook.bad_secret",
                    "A webhook secret must have \(Secret.keyBytes.lowerBound) to \(Secret.keyBytes.upperBound) bytes, "
                        + "but this one has \(key.count).")
            }
            self.key = key
        }

        /// Excludes the key, so that no log ever contains one.
        public var description: String { "a webhook's secret" }
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// The reason for refusing a delivery. It reveals nothing to attackers beyond their own input.
    public enum Refusal: String, Error, Sendable, Hashable, CaseIterable {
        case missingID = "webhook-id is missing"
        /// With a full stop, the parts could be divided differently under the same signature.
        case badID = "webhook-id must be 1 to 128 bytes without full stops, spaces and control characters"
        case missingTimestamp = "webhook-timestamp is missing"
        case badTimestamp = "webhook-timestamp must be whole seconds since 1970"
        case tooOld = "webhook-timestamp is more than 5 minutes ago"
        case tooNew = "webhook-timestamp is more than 5 minutes ahead"
        case missingSignature = "webhook-signature is missing"
        case tooManySignatures = "webhook-signature has more than 16 signatures"
        /// There is no signature of the kind `v1,…`. Other kinds are ignored, as the standard requires.
        case noKnownSignature = "webhook-signature has no signature of version v1"
        case wrongSignature = "webhook-signature does not match the id, the timestamp and the body"

        /// The answer to the caller: 401, with the header at fault.
        public var failure: Failure {
            Failure(.unauthenticated, "webhook.refused", "The delivery is not authentic: \(rawValue).")
        }
    }

    /// The three headers of a signed delivery; nil for a missing one.
    public struct Headers {
        let id, timestamp, signatures: String?

        public init(id: String?, timestamp: String?, signatures: String?) {
            (self.id, self.timestamp, self.signatures) = (id, timestamp, signatures)
        }
    }

    /// Verifies the headers against the body, which must be the bytes as received.
    ///
    /// - Parameters:
    ///   - secrets: Any of them may have signed; two are usual during a rotation. Secrets beyond ``secretsMax`` are not
    ///     tried.
    ///   - now: The time against which old and early deliveries are detected.
    /// - Returns: The id, which identifies duplicates.
    public static func verify(
        _ headers: Headers, body: [UInt8], secrets: [Secret], now: Timestamp, hmac: HMAC
    ) throws(Refusal) -> String {
        guard let id = headers.id, !id.isEmpty else { throw .missingID }
        guard isUsable(id) else { throw .badID }
        guard let timestamp = headers.timestamp, !timestamp.isEmpty else { throw .missingTimestamp }
        guard timestamp.utf8.count <= 12, timestamp.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }),
            let seconds = Int64(timestamp)
        else { throw .badTimestamp }
        guard seconds >= now.seconds - toleranceSeconds else { throw .tooOld }
        guard seconds <= now.seconds + toleranceSeconds else { throw .tooNew }
        guard let signatures = headers.signatures, !signatures.isEmpty else { throw .missingSignature }
        let candidates = try candidates(signatures)
        let message = message(id: id, timestamp: timestamp, body: body)
        // Every signature is compared with that of every secret, so that the duration reveals nothing.
        var fits = false
        for secret in secrets.prefix(secretsMax) {
            let expected = hmac(secret.key, message)
            for candidate in candidates where isEqual(candidate, expected) { fits = true }
        }
        guard fits else { throw .wrongSignature }
        return id
    }

    /// Returns the value of `webhook-signature` for an outgoing webhook: `v1,{base64}`.
    ///
    /// - Precondition: The id contains no full stop. The service makes these ids, not users.
    public static func sign(id: String, seconds: Int64, body: [UInt8], secret: Secret, hmac: HMAC) -> String {
        precondition(isUsable(id), "a webhook id must not contain a full stop, which makes the signed text ambiguous")
        return "v1,\(RFC4648.encode(hmac(secret.key, message(id: id, timestamp: String(seconds), body: body))))"
    }

    private static func isUsable(_ id: String) -> Bool {
        !id.isEmpty && id.utf8.count <= Fields.idBytesMax
            && id.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ".") }
    }

    private static func message(id: String, timestamp: String, body: [UInt8]) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(id.utf8.count + timestamp.utf8.count + 2 + body.count)
        message += id.utf8
        message.append(UInt8(ascii: "."))
        message += timestamp.utf8
        message.append(UInt8(ascii: "."))
        message += body
        return message
    }

    /// Returns the bytes of each `v1,{base64}` in a space-separated list.
    private static func candidates(_ signatures: String) throws(Refusal) -> [[UInt8]] {
        let parts = signatures.split(separator: " ", maxSplits: signaturesMax)
        guard parts.count <= signaturesMax else { throw .tooManySignatures }
        let candidates = parts.compactMap { part in
            part.hasPrefix("v1,") ? RFC4648.decode(String(part.dropFirst(3))) : nil
        }
        guard !candidates.isEmpty else { throw .noKnownSignature }
        return candidates
    }

    /// Compares in a time that depends only on the lengths, so that a signature cannot be discovered byte by byte.
    public static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}
