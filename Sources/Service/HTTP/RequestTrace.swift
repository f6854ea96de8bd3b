import Cryptography
import Logging
import MicroHTTP
import Realtime
import Synchronization
import Values

/// The state of a request between its start and its answer.
///
/// `@unchecked Sendable`: it belongs to its request, which one thread owns at a time.
final class RequestTrace: @unchecked Sendable {
    let id: String
    /// The form of the id for the database and the log: a digest if the caller chose the id, which may then name a person.
    var storedId: String { isChosen ? RequestId.digest(of: id) : id }
    private let isChosen: Bool
    let endpoint: EndpointMetrics?
    let credentials: Credentials
    /// The service's span in the request's trace; nil without tracing.
    private(set) var span: OpenSpan?
    var principal: Principal? {
        didSet { if principal?.caller.isService == true { noteBackend() } }
    }
    var rate: RateBucket.State?

    /// The kind of credentials, which the answer depends on.
    enum Credentials: Int, CaseIterable {
        case none, token
        /// Streams can also be authenticated by a cookie.
        case tokenOrCookie
    }

    private init(
        id: (text: String, isChosen: Bool), endpoint: EndpointMetrics?, credentials: Credentials, span: OpenSpan?
    ) {
        (self.id, isChosen) = id
        (self.endpoint, self.credentials, self.span) = (endpoint, credentials, span)
    }

    static func of(
        _ request: Request, endpoint: EndpointMetrics? = nil, by credentials: Credentials = .none, tracer: Tracer? = nil
    ) -> RequestTrace {
        if let trace = request.context as? RequestTrace { return trace }
        let span = tracer?.begin(request: request.withHeader("traceparent") { $0.flatMap { TraceContext($0) } })
        let trace = RequestTrace(id: RequestId.of(request), endpoint: endpoint, credentials: credentials, span: span)
        request.context = trace
        return trace
    }

    /// Records that the sender is a backend, which may decide whether its traces are recorded. Other senders could fill
    /// the collector.
    func noteBackend() { span = span?.recorded }

    /// Names the request in the log.
    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = [
            "requestId": "\(storedId)", "method": "\(endpoint?.method ?? "-")", "route": "\(endpoint?.route ?? "none")",
        ]
        if let span { metadata["traceId"] = "\(span.context.traceId)" }
        return metadata
    }
}

/// The id of a request in answers, problems and the log.
enum RequestId {
    /// Permutes this process's request count, so that ids do not reveal it.
    private static let permutation = KeyedPermutation()
    private static let count = Atomic<UInt64>(0)

    /// Returns the client's own id if it is harmless, otherwise a generated one.
    static func of(_ request: Request) -> (text: String, isChosen: Bool) {
        let sent = request.withHeader("X-Request-Id") { sent -> String? in
            guard let sent, (1...Limits.requestIdBytesMax).contains(sent.count), sent.allSatisfy(isSafe) else {
                return nil
            }
            return String(decoding: sent, as: UTF8.self)
        }
        if let sent { return (sent, true) }
        return (permutation.seal(count.wrappingAdd(1, ordering: .relaxed).newValue).text, false)
    }

    /// Returns the digest of an id that a caller chose: `sha256:` and half of the hash in hexadecimal digits, as
    /// `printf %s ID | sha256sum | cut -c 1-32` prints it.
    static func digest(of id: String) -> String { "sha256:" + RFC4648.hexadecimal(SHA256.hash(id.utf8)[..<16]) }

    private static func isSafe(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || "-_.:".utf8.contains(byte)
    }
}
