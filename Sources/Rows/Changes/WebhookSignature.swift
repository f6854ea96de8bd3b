import Values

/// The signature of a webhook, as Standard Webhooks 1.0.0 defines it: HMAC-SHA256 over `{id}.{timestamp}.{body}`.
///
/// The hash and the time are parameters, so that this needs no cryptography of its own and no clock.
public enum WebhookSignature {
    /// HMAC-SHA256 (RFC 2104): the 32 bytes for a key and a message.
    public typealias HMAC = (_ key: [UInt8], _ message: [UInt8]) -> [UInt8]

    /// How far a delivery's time may lie from now, before or after. An intercepted delivery can be sent again for as
    /// long.
    static let toleranceSeconds: Int64 = 300
    /// Signatures that are looked at. A sender who changes keys sends two; each costs a comparison for each secret.
    public static let signaturesMax = 16
    /// Secrets that are tried. Each costs a hash over the whole body, which an unknown sender chooses.
    public static let secretsMax = 4

    /// The key behind a secret's text.
    public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
        /// Bytes of a key: what the standard asks of senders. A shorter key can be guessed; a longer one than a block
        /// of SHA-256 is hashed first and gains nothing.
        static let keyBytes = 24...64

        let key: [UInt8]

        /// Reads `whsec_` and base64; the prefix may be missing. Throws what is wrong, without the secret.
        public init(_ text: String) throws(Failure) {
            let encoded = text.hasPrefix("whsec_") ? String(text.dropFirst(6)) : text
            guard let key = RFC4648.decode(encoded) else {
                throw Failure(.invalid, "webhook.bad_secret", "A webhook's secret is whsec_ followed by base64.")
            }
            guard Secret.keyBytes.contains(key.count) else {
                throw Failure(
                    .invalid, "webhook.bad_secret",
                    "A webhook's secret has \(Secret.keyBytes.lowerBound) to \(Secret.keyBytes.upperBound) bytes, "
                        + "and this one has \(key.count).")
            }
            self.key = key
        }

        /// Without the key, so that no log ever contains one.
        public var description: String { "a webhook's secret" }
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// Why a delivery was refused. It reveals to an attacker only what they sent.
    public enum Refusal: String, Error, Sendable, Hashable, CaseIterable {
        case missingID = "webhook-id is missing"
        /// A full stop would let the parts be divided otherwise under the same signature.
        case badID = "webhook-id must be 1 to 128 bytes without full stops, spaces and control characters"
        case missingTimestamp = "webhook-timestamp is missing"
        case badTimestamp = "webhook-timestamp must be whole seconds since 1970"
        case tooOld = "webhook-timestamp is more than 5 minutes ago"
        case tooNew = "webhook-timestamp is more than 5 minutes ahead"
        case missingSignature = "webhook-signature is missing"
        case tooManySignatures = "webhook-signature has more than 16 signatures"
        /// None of the kind `v1,…`; those of other kinds are ignored, as the standard requires.
        case noKnownSignature = "webhook-signature has no signature of version v1"
        case wrongSignature = "webhook-signature does not fit the id, the time and the body"

        /// The answer to the caller: 401, with the header at fault.
        public var failure: Failure {
            Failure(.unauthenticated, "webhook.refused", "The delivery is not authentic: \(rawValue).")
        }
    }

    /// Checks the three headers against the body, which must be the bytes as they arrived.
    ///
    /// - Parameters:
    ///   - secrets: any of them may have signed; two are usual while keys change. Those beyond ``secretsMax`` are not
    ///     tried.
    ///   - now: the time against which old and early deliveries are recognized.
    /// - Returns: the id, by which duplicates are recognized.
    public static func verify(
        id: String?, timestamp: String?, signatures: String?, body: [UInt8], secrets: [Secret], now: Timestamp,
        hmac: HMAC
    ) throws(Refusal) -> String {
        guard let id, !id.isEmpty else { throw .missingID }
        guard isUsable(id) else { throw .badID }
        guard let timestamp, !timestamp.isEmpty else { throw .missingTimestamp }
        guard timestamp.utf8.count <= 12, timestamp.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }),
            let seconds = Int64(timestamp)
        else { throw .badTimestamp }
        guard seconds >= now.seconds - toleranceSeconds else { throw .tooOld }
        guard seconds <= now.seconds + toleranceSeconds else { throw .tooNew }
        guard let signatures, !signatures.isEmpty else { throw .missingSignature }
        let candidates = try candidates(signatures)
        let message = message(id: id, timestamp: timestamp, body: body)
        // Every signature is compared with every secret's, so that the time reveals nothing.
        var fits = false
        for secret in secrets.prefix(secretsMax) {
            let expected = hmac(secret.key, message)
            for candidate in candidates where isEqual(candidate, expected) { fits = true }
        }
        guard fits else { throw .wrongSignature }
        return id
    }

    /// The value of `webhook-signature` for a webhook that is sent: `v1,{base64}`.
    ///
    /// - Precondition: the id has no full stop; ids are made here and not by users.
    public static func sign(id: String, seconds: Int64, body: [UInt8], secret: Secret, hmac: HMAC) -> String {
        precondition(isUsable(id), "a webhook's id with a full stop could be divided otherwise")
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

    /// The bytes of all `v1,{base64}` of a space-separated list.
    private static func candidates(_ signatures: String) throws(Refusal) -> [[UInt8]] {
        let parts = signatures.split(separator: " ", maxSplits: signaturesMax)
        guard parts.count <= signaturesMax else { throw .tooManySignatures }
        let candidates = parts.compactMap { part in
            part.hasPrefix("v1,") ? RFC4648.decode(String(part.dropFirst(3))) : nil
        }
        guard !candidates.isEmpty else { throw .noKnownSignature }
        return candidates
    }

    /// Compares in a time that depends on the lengths alone, so that nobody learns a signature byte by byte.
    public static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}
