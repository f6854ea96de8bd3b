/// The reason why a request failed, in the terms of the domain.
///
/// One file of the service turns it into `application/problem+json`; no other file knows about status codes. Codes are
/// part of the API: new ones may be added, and a code is never reused for something else.
public struct Failure: Error, Sendable, Hashable {
    /// The class of a failure, which decides the HTTP status.
    public enum Kind: Sendable, Hashable {
        case malformed, unauthenticated, forbidden, notFound, conflict, stale, tooLarge
        case unsupportedMediaType, invalid, preconditionRequired, rateLimited, unavailable, insufficientStorage
    }

    /// One invalid part of the request: a JSON pointer (`/durationMinutes`), `?name` for a query item, or the name of a
    /// header.
    public struct Field: Sendable, Hashable {
        public let pointer: String
        public let detail: String

        public init(_ pointer: String, _ detail: String) {
            self.pointer = pointer
            self.detail = detail
        }
    }

    public let kind: Kind
    public let code: String
    public let detail: String
    public var fields: [Field]
    /// The `allowed` member of a conflict: the values that would have been possible instead.
    public var allowed: [String]?
    /// Seconds after which a retry makes sense (`Retry-After`).
    public var retryAfterSeconds: Int?

    public init(
        _ kind: Kind, _ code: String, _ detail: String, fields: [Field] = [], allowed: [String]? = nil,
        retryAfterSeconds: Int? = nil
    ) {
        self.kind = kind
        self.code = code
        self.detail = detail
        self.fields = fields
        self.allowed = allowed
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// Returns the failure for a row that does not exist, and equally for one that the caller may not see.
    public static func notFound(_ what: String) -> Failure {
        Failure(.notFound, "not_found", "The \(what) does not exist, or you may not see it.")
    }

    public static func invalid(_ fields: [Field]) -> Failure {
        Failure(
            .invalid, "request.invalid", "The request is well formed, but some values are invalid.", fields: fields)
    }

    public static func invalid(_ pointer: String, _ detail: String) -> Failure {
        invalid([Field(pointer, detail)])
    }

    public static func forbidden(_ detail: String, code: String = "insufficient_scope") -> Failure {
        Failure(.forbidden, code, detail)
    }
}

extension Optional {
    /// Returns the value.
    ///
    /// - Throws: 404 if it is nil.
    public func required(_ what: String) throws(Failure) -> Wrapped {
        guard let self else { throw Failure.notFound(what) }
        return self
    }
}
