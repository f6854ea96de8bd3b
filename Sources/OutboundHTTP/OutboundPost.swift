/// A request that the service sends on its own: always a POST.
public struct OutboundPost: Sendable {
    public let url: String
    public let contentType: String
    /// Headers besides `Content-Type`. Names and values have no line breaks.
    public let headers: [(name: String, value: String)]
    public let body: [UInt8]

    public init(
        url: String, contentType: String = "application/json", headers: [(name: String, value: String)], body: [UInt8]
    ) {
        (self.url, self.contentType, self.headers, self.body) = (url, contentType, headers, body)
    }
}

/// The outcome of a request.
public enum OutboundOutcome: Sendable, Equatable {
    /// A complete head was received. Redirects are answers like others.
    case answered(status: Int, retryAfterSeconds: Int?)
    case failed(OutboundFailure)
}

/// The reason why there is no answer.
public enum OutboundFailure: String, Sendable, CaseIterable {
    /// All addresses of the name are private, and connecting to them is not allowed.
    case privateAddress = "private_address"
    case unresolved = "name_not_found"
    case unreachable
    case timeout
    /// TLS failed, or the certificate does not match the host.
    case tls
    /// The connection ended before an answer, or the answer was not HTTP.
    case broken = "no_answer"
    /// The service is stopping.
    case stopped
    /// The request has not left, because its connection was not ready in time.
    case late
}
