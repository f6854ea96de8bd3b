import ArgumentParser
import BellhopCalls
import Cryptography
import Foundation
import Values

/// The option for the address of a running service.
struct ServiceAccess: ParsableArguments {
    @Option(help: "URL of the running service (or BELLHOP_URL).")
    var url: String?

    var baseURL: String {
        let environment = ProcessInfo.processInfo.environment
        return Self.address(url ?? environment["BELLHOP_URL"] ?? "127.0.0.1:\(environment["BELLHOP_PORT"] ?? "8080")")
    }

    /// Returns the URL for an address as people write it, such as `localhost:8080`.
    static func address(_ text: String) -> String {
        text.contains("://") ? text : "http://" + text
    }
}

/// A JWT signed with a shared secret (HS256), as `bellhop token` mints it for development and for scripts.
struct DevelopmentToken {
    var subject: String
    var role: String?
    var tenant: String?
    /// Further claims; those for authorization belong under `app_metadata`.
    var claims: [String: JSON] = [:]
    var lifetimeSeconds = 3600

    /// The secret that the service verifies tokens with.
    static func requireSecret() throws -> String {
        guard let secret = ProcessInfo.processInfo.environment["BELLHOP_JWT_SECRET"], !secret.isEmpty else {
            throw ValidationError(
                "BELLHOP_JWT_SECRET is not set. Set it to the secret with which the service verifies tokens.")
        }
        return secret
    }

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
        let signed = RFC4648.encodeURL(head.data) + "." + RFC4648.encodeURL(JSON.object(payload).data)
        return signed + "." + RFC4648.encodeURL(AuthenticationKey(secret.utf8).code(for: signed.utf8))
    }
}
