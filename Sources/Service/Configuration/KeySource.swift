import OutboundHTTP

/// The place of an issuer's public keys.
enum KeySource: Sendable {
    case file(String)
    case address(OutboundURL)
    /// The issuer's OpenID configuration names the address (OpenID Connect Discovery 1.0 §4). `isPrivate` says whether it
    /// may be in a private network without TLS.
    case discovery(issuer: String, OutboundURL, isPrivate: Bool)

    /// The place without a query, which may contain a secret.
    var name: String {
        switch self {
        case .file(let path): path
        case .address(let url), .discovery(_, let url, _): "\(url.origin)\(url.path)"
        }
    }
}
