import Cryptography
import MicroHTTP
import Rows
import Values

/// Authentication of a feed of table changes without a backend's token: by a secret in a header, or by a signature
/// (Standard Webhooks).
///
/// A database's webhook has no user and sends the rows of all tenants.
struct FeedCredentials: Sendable {
    /// A header that may carry the secret, beside `Authorization: Bearer`.
    private static let secretHeader: StaticString = "X-Webhook-Secret"
    private static let signatureHeader: StaticString = "webhook-signature"

    private let secret: [UInt8]?
    private let signingSecrets: [WebhookSignature.Secret]

    init(_ settings: Settings) {
        secret = settings.changesSecret.map { Array($0.utf8) }
        signingSecrets = settings.changesSigningSecrets
    }

    /// The feed as a caller, whose rows may belong to any tenant.
    static let feed = Caller.system(tenant: "default", named: "feed", spansTenants: true)

    /// Returns nil if the request has no feed credentials: then it needs a token.
    ///
    /// - Throws: `unauthenticated`, if the credentials are wrong.
    func caller(of request: Request, at now: Timestamp) throws(Failure) -> Caller? {
        if !signingSecrets.isEmpty, let signature = request.header(Self.signatureHeader) {
            do throws(WebhookSignature.Refusal) {
                _ = try WebhookSignature.verify(
                    WebhookSignature.Headers(
                        id: request.header("webhook-id"), timestamp: request.header("webhook-timestamp"),
                        signatures: signature), body: request.body, secrets: signingSecrets, now: now,
                    hmac: WebhookSignature.hmac)
            } catch {
                throw error.failure
            }
            return Self.feed
        }
        switch sendsSecret(request) {
        case true?: return Self.feed
        case false?: throw Self.refused("The secret in \(Self.secretHeader) is wrong.")
        case nil:
            if let refusal = refusal(of: request) { throw refusal }
            return nil
        }
    }

    /// Returns why the feed credentials in a request's head cannot be valid: they are not configured, or the secret is
    /// wrong. Returns nil otherwise, and for a request with an `Authorization` header. A signature is not verified here.
    func refusal(of request: Request) -> Failure? {
        guard request.header("Authorization") == nil else { return nil }
        func missingFailure(_ variable: String, for header: StaticString) -> Failure {
            Self.refused(
                "The request has \(header), but the service has no secret to verify it: set \(variable)."
            )
        }
        if request.header(Self.secretHeader) != nil {
            guard secret != nil else {
                return missingFailure(Settings.variable(\.$changesSecret), for: Self.secretHeader)
            }
            return sendsSecret(request) == true
                ? nil : Self.refused("The secret in \(Self.secretHeader) is wrong.")
        }
        guard signingSecrets.isEmpty, request.header(Self.signatureHeader) != nil else { return nil }
        return missingFailure(Settings.variable(\.$changesSigningSecrets), for: Self.signatureHeader)
    }

    private static func refused(_ detail: String) -> Failure { Failure(.unauthenticated, "webhook.refused", detail) }

    /// Returns whether a request claims by its head to come from a feed. A signature can be verified only with the
    /// body; until then the claim counts.
    func isClaimed(by request: Request) -> Bool { isSigned(request) || sendsSecret(request) == true }

    /// Returns whether a request has a signature, which is verified with the body.
    func isSigned(_ request: Request) -> Bool {
        !signingSecrets.isEmpty && request.header(Self.signatureHeader) != nil
    }

    /// Returns nil if the request sends no secret, or the settings have no secret.
    private func sendsSecret(_ request: Request) -> Bool? {
        guard let secret else { return nil }
        if let sent = request.header(Self.secretHeader) { return Self.isSame(Array(sent.utf8), secret) }
        guard let header = request.header("Authorization") else { return nil }
        // A bearer value other than the secret may be a token.
        let sent = header.drop { $0 != " " }.drop { $0 == " " }
        return Self.isSame(Array(sent.utf8), secret) ? true : nil
    }

    /// Compares digests, so that the timing reveals neither bytes nor the length of the secret.
    private static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        constantTimeEqual(SHA256.hash(left), SHA256.hash(right))
    }
}
