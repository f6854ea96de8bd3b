/// A request that the service sends by itself: always a POST of JSON.
public struct OutboundPost: Sendable {
    public let url: String
    /// Beside `Content-Type`; names and values have no line ends.
    public let headers: [(name: String, value: String)]
    public let body: [UInt8]

    public init(url: String, headers: [(name: String, value: String)], body: [UInt8]) {
        (self.url, self.headers, self.body) = (url, headers, body)
    }
}

/// What came of it.
public enum OutboundOutcome: Sendable, Equatable {
    /// A whole head was received. Redirects are answers like others.
    case answered(status: Int, retryAfterSeconds: Int?)
    case failed(OutboundFailure)
}

/// Why there is no answer.
public enum OutboundFailure: String, Sendable, CaseIterable {
    /// All its addresses are private ones, which are not connected to.
    case privateAddress = "private_address"
    case unresolved = "name_not_found"
    case unreachable
    case timeout
    /// No encrypted connection, or a certificate that is not the host's.
    case tls
    /// The connection ended before an answer, or what came is no HTTP.
    case broken = "no_answer"
    /// The service stops.
    case stopped
}

/// The bounds of what is received.
enum OutboundLimits {
    /// Bytes of an answer's head. Without it a receiver fills the memory.
    static let headBytesMax = 16 * 1024
    /// Bytes of an answer's body that are read, and thrown away, so that the connection can be used again; behind them it
    /// is closed.
    static let bodyBytesMax = 16 * 1024
}
