import Cryptography
import Values

/// The parts of a token in its compact form (RFC 7515 §3.1); nothing is verified yet.
struct SignedToken: Sendable {
    let header: [String: JSONValue]
    /// In the names of RFC 7518 and RFC 8037: RFC 9864 calls EdDSA by the name of its curve.
    let algorithm: String
    let payload: [UInt8]
    private let signature: [UInt8]
    private let signed: [UInt8]

    init(_ token: UnsafeBufferPointer<UInt8>) throws(Failure) {
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let head = RFC4648.decodeURL(parts[0]), let body = RFC4648.decodeURL(parts[1]),
            let signature = RFC4648.decodeURL(parts[2])
        else { throw Claims.refusal("The token is neither a JWT nor a known service key.") }
        guard case .object(let header) = try Self.json(head), let algorithm = header.string("alg") else {
            throw Claims.refusal("The token's alg is missing.")
        }
        (self.header, payload, self.signature) = (header, body, signature)
        self.algorithm = SigningKey.usualName(of: algorithm)
        signed = Array(token[..<parts[1].endIndex])
    }

    /// Returns the key id that the token names, if any.
    func keyId() throws(Failure) -> String? {
        guard let id = header["kid"] else { return nil }
        guard case .string(let text) = id else { throw Claims.refusal("The token's kid is not a string.") }
        return text
    }

    /// - Throws: if the token declares itself as something other than an access token (RFC 8725 §3.11), or requires
    ///   extensions that are not supported (RFC 7515 §4.1.11).
    func requireAccessToken() throws(Failure) {
        guard header["crit"] == nil else {
            throw Claims.refusal("The token has critical headers (crit), which are not supported.")
        }
        guard let type = header["typ"] else { return }
        let known = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"]
        guard case .string(let name) = type, known.contains(name.lowercased()) else {
            throw Claims.refusal("The token's typ must be JWT or at+jwt.")
        }
    }

    /// Verifies the HMAC with SHA-256. The caller checks whether the token names this algorithm.
    func isSigned(by secret: AuthenticationKey) -> Bool {
        secret.isValid(signature, for: signed)
    }

    func isSigned(by key: SigningKey) -> Bool {
        key.algorithm == algorithm && key.publicKey.verifies(signature, of: signed)
    }

    /// Returns the token's claims, which may only be trusted once its signature is verified. Until then they can only
    /// select a key.
    func claims() throws(Failure) -> JSONValue { try Self.json(payload) }

    private static func json(_ bytes: [UInt8]) throws(Failure) -> JSONValue {
        do throws(Failure) {
            return try JSONValue(parsing: bytes)
        } catch {
            throw Claims.refusal("The token does not contain valid JSON.")
        }
    }
}
