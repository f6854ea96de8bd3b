import Database
import Domain
import MicroHTTP
import Rows
import Values

/// The one place that turns failures into `application/problem+json` (RFC 9457).
extension Response {
    static func problem(_ failure: Failure) -> Response {
        let status = failure.kind.status
        let body = ProblemBody.make(status, failure.kind.title, failure.code, failure.detail) { writer in
            if let allowed = failure.allowed { writer.member("allowed", allowed) }
            guard !failure.fields.isEmpty else { return }
            writer.key("errors")
            writer.array { writer in
                for field in failure.fields {
                    writer.object {
                        $0.member("pointer", field.pointer)
                        $0.member("detail", field.detail)
                    }
                }
            }
        }
        var headers = [(name: "Content-Type", value: ProblemBody.mediaType)]
        if let seconds = failure.retryAfterSeconds { headers.append(("Retry-After", "\(seconds)")) }
        switch failure.kind {
        case .unauthenticated where failure.code == "unauthenticated":
            headers.append(("WWW-Authenticate", "Bearer realm=\"bellhop\""))
        case .unauthenticated:
            headers.append(("WWW-Authenticate", "Bearer realm=\"bellhop\", error=\"invalid_token\""))
        case .forbidden:
            headers.append(("WWW-Authenticate", "Bearer realm=\"bellhop\", error=\"insufficient_scope\""))
        default: break
        }
        return Response(status: status, headers: headers, body: .bytes(body))
    }

    /// The answer for what should not happen: without detail, since the detail is for the log.
    static let internalProblem = Response(
        status: 500, headers: [("Content-Type", ProblemBody.mediaType)],
        body: .bytes(
            ProblemBody.make(
                500, "Internal Server Error", "internal",
                "Something went wrong here; the request id finds it in the log.")))
}

/// The object of a problem: the members that each has, and those that only the request knows, added on the way out.
enum ProblemBody {
    static let mediaType = "application/problem+json"

    static func make(
        _ status: Int, _ title: String, _ code: String, _ detail: String,
        _ more: (inout JSONWriter) -> Void = { _ in }
    ) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("type", "urn:bellhop:problem:\(code)")
            writer.member("title", title)
            writer.member("status", status)
            writer.member("detail", detail)
            writer.member("code", code)
            more(&writer)
        }
    }

    /// Puts `instance` and `requestId` at the end of a problem's object.
    static func complete(_ body: [UInt8], path: String, requestId: String) -> [UInt8] {
        var writer = JSONWriter(reserving: 96)
        writer.object {
            $0.member("instance", path)
            $0.member("requestId", requestId)
        }
        return body.dropLast() + [UInt8(ascii: ",")] + writer.bytes.dropFirst()
    }
}

extension Failure {
    /// What an error of a handler means to the caller; nil for what should not happen.
    init?(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let busy as StoreBusy:
            self.init(
                .unavailable, "unavailable", "Too many writes are waiting.",
                retryAfterSeconds: max(1, busy.retryAfterSeconds))
        case let error as DatabaseError where error.code == .notPermitted:
            self = .forbidden("You may not change this.", code: "not_permitted")
        case let error as DatabaseError where error.code == .full:
            self.init(
                .unavailable, "storage.full", "The disk is full; nothing was changed.", retryAfterSeconds: 30)
        case let error as DatabaseError where error.code == .undecided:
            self.init(
                .unavailable, "unavailable.undecided",
                """
                The database has not said whether this was done. Repeat it with the same Idempotency-Key, or look first.
                """, retryAfterSeconds: 1)
        case let error as DatabaseError where error.code == .text:
            self.init(.invalid, "validation", "A text holds U+0000, which cannot be stored.")
        case let error as DatabaseError where error.isTransient:
            self.init(
                .unavailable, "unavailable", "The database cannot do this now; nothing was changed.",
                retryAfterSeconds: 1)
        default: return nil
        }
    }
}

extension Failure.Kind {
    var status: Int {
        switch self {
        case .malformed: 400
        case .unauthenticated: 401
        case .forbidden: 403
        case .notFound: 404
        case .conflict: 409
        case .stale: 412
        case .tooLarge: 413
        case .unsupportedMediaType: 415
        case .invalid: 422
        case .preconditionRequired: 428
        case .rateLimited: 429
        case .unavailable: 503
        }
    }

    var title: String {
        switch self {
        case .malformed: "Bad Request"
        case .unauthenticated: "Unauthorized"
        case .forbidden: "Forbidden"
        case .notFound: "Not Found"
        case .conflict: "Conflict"
        case .stale: "Precondition Failed"
        case .tooLarge: "Content Too Large"
        case .unsupportedMediaType: "Unsupported Media Type"
        case .invalid: "Unprocessable Content"
        case .preconditionRequired: "Precondition Required"
        case .rateLimited: "Too Many Requests"
        case .unavailable: "Service Unavailable"
        }
    }
}
