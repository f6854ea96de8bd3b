import Domain
import MicroHTTP
import Realtime
import Synchronization
import Values

/// What is known of a request between its beginning and its answer.
///
/// `@unchecked Sendable`: it belongs to its request, which one thread owns at a time.
final class RequestTrace: @unchecked Sendable {
    let id: String
    let endpoint: EndpointMetrics?
    let credentials: Credentials
    var principal: Principal?
    var rate: RateBucket.State?

    /// What says who asks, and so decides about the answer.
    enum Credentials: Int, CaseIterable {
        case none, token
        /// Streams are opened by a cookie too.
        case tokenOrCookie
    }

    private init(id: String, endpoint: EndpointMetrics?, credentials: Credentials) {
        (self.id, self.endpoint, self.credentials) = (id, endpoint, credentials)
    }

    static func of(
        _ request: Request, endpoint: EndpointMetrics? = nil, by credentials: Credentials = .none
    ) -> RequestTrace {
        if let trace = request.context as? RequestTrace { return trace }
        let trace = RequestTrace(id: RequestId.of(request), endpoint: endpoint, credentials: credentials)
        request.context = trace
        return trace
    }
}

/// Names a request in answers, problems and the log.
enum RequestId {
    /// Of this process, whose count of requests is nobody's business.
    private static let permutation = KeyedPermutation()
    private static let count = Atomic<UInt64>(0)

    /// The client's own, if it is harmless; else one of ours.
    static func of(_ request: Request) -> String {
        let sent = request.withHeader("X-Request-Id") { sent -> String? in
            guard let sent, (1...Limits.requestIdBytesMax).contains(sent.count), sent.allSatisfy(isSafe) else {
                return nil
            }
            return String(decoding: sent, as: UTF8.self)
        }
        return sent ?? permutation.seal(count.wrappingAdd(1, ordering: .relaxed).newValue).text
    }

    private static func isSafe(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || "-_.:".utf8.contains(byte)
    }
}
