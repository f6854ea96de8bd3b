import MicroHTTP
import Values

/// Header fields and members added to every answer, including MicroHTTP's own answers: the request id, the
/// state of the rate limit, the rule for caches, CORS, and the last members of a problem.
struct ResponseDecoration: Sendable {
    private let corsOrigins: Set<String>
    /// The fields common to all answers, by kind of credentials.
    private let constants: [HeaderFields]

    init(settings: Settings) {
        let corsOrigins = Set(settings.corsOrigins)
        self.corsOrigins = corsOrigins
        constants = RequestTrace.Credentials.allCases.map { credentials in
            var fields: HeaderFields = [("X-Content-Type-Options", "nosniff")]
            if let vary = Self.vary(credentials, corsOrigins) { fields.append("Vary", vary) }
            return fields
        }
    }

    func decorate(_ request: Request, _ response: inout Response) {
        let trace = RequestTrace.of(request)
        response.headers.append(constants[trace.credentials.rawValue])
        response.headers.append("X-Request-Id", trace.id)
        if let span = trace.span { response.headers.append("traceparent", span.context.traceparent) }
        if let rate = trace.rate, let allowance = trace.principal?.allowance {
            response.headers.append("RateLimit-Policy", allowance.policy)
            response.headers.append("RateLimit", writing: rate.write)
        }
        // Caches may store an answer without this field on their own (RFC 9111 §4.2.2). A 304 must not change the rule of
        // the stored answer.
        if response.status != 304, !response.headers.contains("Cache-Control") {
            response.headers.append("Cache-Control", "no-store")
        }
        if !corsOrigins.isEmpty { appendCORS(request, &response) }
        guard response.status >= 400, case .bytes(let body) = response.body,
            response.headers["Content-Type"] == ProblemBody.mediaType
        else { return }
        response.body = .bytes(ProblemBody.complete(body, path: request.path, requestId: trace.id))
    }

    private static let exposed =
        "ETag, Event-Position, Idempotency-Replayed, Link, Location, Poll-Interval, RateLimit, RateLimit-Policy, "
        + "Retry-After, X-Request-Id, traceparent"

    /// Returns the request headers that the answer depends on. A cache must not serve it to another user with another
    /// token, nor to another site.
    private static func vary(_ credentials: RequestTrace.Credentials, _ corsOrigins: Set<String>) -> String? {
        switch (credentials, corsOrigins.isEmpty) {
        case (.none, true): nil
        case (.none, false): "Origin"
        case (.token, true): "Authorization"
        case (.token, false): "Origin, Authorization"
        case (.tokenOrCookie, true): "Authorization, Cookie"
        case (.tokenOrCookie, false): "Origin, Authorization, Cookie"
        }
    }

    private func appendCORS(_ request: Request, _ response: inout Response) {
        // Public resources set this header themselves.
        guard response.headers["Access-Control-Allow-Origin"] == nil, let origin = request.header("Origin") else {
            return
        }
        if corsOrigins.contains(origin) {
            response.headers.append("Access-Control-Allow-Origin", origin)
            // Only configured origins may send the stream's cookie.
            response.headers.append("Access-Control-Allow-Credentials", "true")
        } else if corsOrigins.contains("*") {
            response.headers.append("Access-Control-Allow-Origin", "*")
        } else {
            return
        }
        response.headers.append("Access-Control-Expose-Headers", Self.exposed)
        guard request.method == .options else { return }
        response.headers.append("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
        response.headers.append(
            (
                "Access-Control-Allow-Headers",
                "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Client-Id, "
                    + "X-Request-Id, traceparent, tracestate, baggage, sentry-trace"
            ))
        response.headers.append("Access-Control-Max-Age", "7200")
    }

    /// Makes the answer to a request that MicroHTTP refuses before any handler.
    func problem(_ problem: TransportProblem) -> Response {
        switch problem {
        case .notFound: return .problem(Failure(.notFound, "route.not_found", "There is no resource at this address."))
        case .methodNotAllowed(let allow):
            var response = Response.problem(
                405, "Method Not Allowed", code: "route.method_not_allowed",
                detail: "This address supports only \(allow).")
            response.headers.append("Allow", allow)
            return response
        case .bodyTooLarge(let max):
            return .problem(Failure(.tooLarge, "request.too_large", "The request body must have at most \(max) bytes."))
        case .malformed(let detail): return .problem(Failure(.malformed, "request.malformed", detail))
        case .tooManyStreams:
            return .problem(
                .unavailable(
                    "The service has reached its maximum number of streams. Try again later.", code: "stream.capacity",
                    retryAfterSeconds: 5))
        case .tooSlow:
            return .problem(
                408, "Request Timeout", code: "request.too_slow",
                detail: "The request arrived too slowly. Send its head within 10 seconds and its body without a pause.")
        case .noRoomForBody: return .problem(BodyBudgets.noRoom)
        case .unanswered: return .problem(.unavailable("The service did not answer the request in time."))
        }
    }
}
