import Database
import MicroHTTP
import Values

/// Converts failures into `application/problem+json` (RFC 9457). No other place does.
extension Response {
    static func problem(_ failure: Failure) -> Response {
        let (status, title) = failure.kind.status
        let listed = failure.fields.prefix(Limits.problemErrorsMax)
        let isCut = listed.count < failure.fields.count
        let cut = isCut ? " `errors` lists the first \(listed.count) of \(failure.fields.count) errors." : ""
        var response = problem(status, title, code: failure.code, detail: failure.detail + cut) { writer in
            if let allowed = failure.allowed { writer.member("allowed", allowed) }
            guard !listed.isEmpty else { return }
            writer.key("errors")
            writer.array { writer in
                for field in listed {
                    writer.object {
                        $0.member("pointer", field.pointer)
                        $0.member("detail", field.detail)
                    }
                }
            }
        }
        if let seconds = failure.retryAfterSeconds { response.headers.append("Retry-After", "\(seconds)") }
        let challenge: String? =
            switch failure.kind {
            case .unauthenticated where failure.code == "unauthenticated": ""
            case .unauthenticated: ", error=\"invalid_token\""
            case .forbidden: ", error=\"insufficient_scope\""
            default: nil
            }
        if let challenge { response.headers.append("WWW-Authenticate", "Bearer realm=\"bellhop\"" + challenge) }
        return response
    }

    static func problem(
        _ status: Int, _ title: String, code: String, detail: String, _ more: (inout JSONWriter) -> Void = { _ in }
    ) -> Response {
        let body = JSONWriter.object { writer in
            writer.member("type", "urn:bellhop:problem:\(code)")
            writer.member("title", title)
            writer.member("status", status)
            writer.member("detail", detail)
            writer.member("code", code)
            more(&writer)
        }
        return Response(status: status, headers: [("Content-Type", ProblemBody.mediaType)], body: .bytes(body))
    }

    /// The response to an unexpected error. It has no detail, because the detail belongs in the log.
    static let internalProblem = problem(
        500, "Internal Server Error", code: "internal",
        detail: "An internal error occurred. The service's log contains it under the request id.")
}

/// The members of a problem that depend on the request, added to the outgoing response.
enum ProblemBody {
    static let mediaType = "application/problem+json"

    /// Appends `instance` and `requestId` to a problem's object.
    static func complete(_ body: [UInt8], path: String, requestId: String) -> [UInt8] {
        JSONWriter.object { writer in
            writer.members(of: body)
            writer.member("instance", path)
            writer.member("requestId", requestId)
        }
    }
}

extension Failure {
    /// Returns the failure that a handler's error means to the caller; nil for an unexpected error.
    init?(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let busy as StoreBusy:
            self = .unavailable("Too many writes are waiting.", retryAfterSeconds: max(1, busy.retryAfterSeconds))
        case let error as DatabaseError:
            switch error.code {
            case .notPermitted: self = .forbidden("You may not change this resource.", code: "not_permitted")
            case .undecided:
                self = .unavailable(
                    """
                    The database did not confirm whether the change was made. Repeat the request with the same \
                    Idempotency-Key, or read the resource first.
                    """, code: "unavailable.undecided")
            case _ where error.storageTrouble == .full:
                self = .unavailable(
                    "The disk is full. The request changed nothing.", code: "storage.full",
                    retryAfterSeconds: Limits.storageRetrySeconds)
            case _ where error.storageTrouble == .moved:
                self = .unavailable(
                    "The database was moved or removed. An operator must restore it.", code: "storage.moved",
                    retryAfterSeconds: Limits.storageRetrySeconds)
            // The file existed at the start: the process has run out of descriptors, or the file was moved.
            case .cannotOpen:
                self = .unavailable("The database cannot be opened at the moment. The request changed nothing.")
            case .text: self.init(.invalid, "validation", "A string contains U+0000, which cannot be stored.")
            case _ where error.isTransient:
                self = .unavailable("The database is not available at the moment. The request changed nothing.")
            default: return nil
            }
        default: return nil
        }
    }

    /// Makes a failure that may not recur on a retry.
    static func unavailable(
        _ detail: String, code: String = "unavailable", retryAfterSeconds: Int = 1
    ) -> Failure {
        Failure(.unavailable, code, detail, retryAfterSeconds: retryAfterSeconds)
    }

    static let tooMany = unavailable("Too many requests are waiting.")
}

extension Failure.Kind {
    var status: (code: Int, title: String) {
        switch self {
        case .malformed: (400, "Bad Request")
        case .unauthenticated: (401, "Unauthorized")
        case .forbidden: (403, "Forbidden")
        case .notFound: (404, "Not Found")
        case .conflict: (409, "Conflict")
        case .stale: (412, "Precondition Failed")
        case .tooLarge: (413, "Content Too Large")
        case .unsupportedMediaType: (415, "Unsupported Media Type")
        case .invalid: (422, "Unprocessable Content")
        case .preconditionRequired: (428, "Precondition Required")
        case .rateLimited: (429, "Too Many Requests")
        case .unavailable: (503, "Service Unavailable")
        case .insufficientStorage: (507, "Insufficient Storage")
        }
    }
}
