/// Why a request could not be done, in the words of the domain.
///
/// One file of the service turns it into `application/problem+json`; nothing else knows about status codes.
/// Codes are part of the API: they may be added, never reused for something else.
public struct Failure: Error, Sendable, Hashable {
    /// The class of a failure, which decides the HTTP status.
    public enum Kind: Sendable, Hashable {
        case malformed, unauthenticated, forbidden, notFound, conflict, stale, tooLarge
        case unsupportedMediaType, invalid, preconditionRequired, rateLimited, unavailable
    }

    /// One place of the request that is wrong: a JSON pointer (`/durationMinutes`), `?name` for a query
    /// item, or a header's name.
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
    /// The `allowed` member of a conflict: what would have been possible instead.
    public var allowed: [String]?
    /// Seconds after which trying again makes sense (`Retry-After`).
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

    /// The answer for a row that is absent, and equally for one the caller may not see.
    public static func notFound(_ what: String) -> Failure {
        Failure(.notFound, "not_found", "There is no such \(what), or you may not see it.")
    }

    public static func invalid(_ fields: [Field]) -> Failure {
        Failure(
            .invalid, "request.invalid", "The request is well formed, but some values are not usable.", fields: fields)
    }

    public static func invalid(_ pointer: String, _ detail: String) -> Failure {
        invalid([Field(pointer, detail)])
    }

    public static func forbidden(_ detail: String, code: String = "insufficient_scope") -> Failure {
        Failure(.forbidden, code, detail)
    }
}

extension Optional {
    /// The value.
    ///
    /// - Throws: 404 without one.
    public func required(_ what: String) throws(Failure) -> Wrapped {
        guard let self else { throw Failure.notFound(what) }
        return self
    }
}
