import MicroHTTP
import Values

/// One request as its handler sees it: the caller, and typed views of its contents.
final class Call: Sendable {
    let request: Request
    let caller: Caller
    let query: Query
    let now: Timestamp
    let cursors: PageCursors
    let reader: TransactionReader

    init(
        request: Request, caller: Caller, query: Query, now: Timestamp, cursors: PageCursors, reader: TransactionReader
    ) {
        (self.request, self.caller, self.query, self.now) = (request, caller, query, now)
        (self.cursors, self.reader) = (cursors, reader)
    }

    /// Returns a path parameter as an id. A malformed id cannot exist, so it is a 404.
    func pathID<E>(_ index: Int, _: E.Type) throws -> ID<E> {
        let text = request.parameter(index)
        guard Fields.isIdentifier(text) else { throw Failure.notFound("resource") }
        return ID(text)
    }

    /// Returns a path parameter as a user; `me` is the caller.
    func pathUser(_ index: Int) throws -> ID<User> {
        let id = try pathID(index, User.self)
        return id.text == "me" ? caller.userId : id
    }

    /// Returns the user that a request of an endpoint concerns; nil if it names no user.
    func subject(of endpoint: Endpoint) -> ID<User>? {
        switch endpoint.subject {
        case nil: return nil
        case .path: return try? pathUser(0)
        case .query: return try? query.id("userId", User.self)
        case .body:
            guard case .object(let members)? = try? json(), let text = members.string("userId") else { return nil }
            return ID(text)
        }
    }

    /// Returns the body as parsed by `read`. The body must be a JSON object with the members that `read` takes, and no
    /// others.
    ///
    /// - Throws: 400, 415 or 422, with all mistakes at once.
    func body<Value>(_ read: (inout Fields) throws -> Value) throws -> Value { try Self.read(fields(), read) }

    /// Returns the body like `body`, for a body without required members: a missing body counts as an empty object.
    func optionalBody<Value>(_ read: (inout Fields) throws -> Value) throws -> Value {
        try Self.read(request.body.isEmpty ? Fields([:]) : fields(), read)
    }

    private static func read<Value>(_ fields: Fields, _ read: (inout Fields) throws -> Value) throws -> Value {
        var fields = fields
        let value = try read(&fields)
        try fields.finish()
        return value
    }

    /// Returns the body as any JSON value.
    func json(valuesMax: Int = .max) throws -> JSONValue {
        guard request.withHeader("Content-Type", Self.isJSON) else { throw Self.notJSON }
        return try JSONValue(parsing: request.body, valuesMax: valuesMax)
    }

    /// Returns the body as the members of a JSON object.
    func fields(valuesMax: Int = .max) throws -> Fields { try Fields(json(valuesMax: valuesMax)) }

    /// Returns whether a media type is JSON, ignoring case and parameters.
    private static func isJSON(_ type: UnsafeBufferPointer<UInt8>?) -> Bool {
        guard let named = type?.prefix(while: { $0 != UInt8(ascii: ";") }).drop(while: { $0 == UInt8(ascii: " ") })
        else { return false }
        let name: StaticString = "application/json"
        return name.withUTF8Buffer { name in
            named.count >= name.count
                && zip(named, name).allSatisfy { $0 == $1 || $1 >= UInt8(ascii: "a") && $0 | 0x20 == $1 }
                && (named.count == name.count || named[named.startIndex + name.count] == UInt8(ascii: " "))
        }
    }

    /// - Throws: 415 for a compressed body. A few bytes of it could become gigabytes.
    static func requirePlainBody(of request: Request) throws(Failure) {
        let coding = request.header("Content-Encoding")?.trimmingPrefix { $0 == " " } ?? ""
        guard coding.isEmpty || coding.lowercased() == "identity" else {
            throw Failure(
                .unsupportedMediaType, "request.content_encoding", "Send the body without compression.",
                fields: [Failure.Field("Content-Encoding", "must be absent or identity")])
        }
    }

    static var notJSON: Failure {
        Failure(
            .unsupportedMediaType, "request.media_type",
            "The body must be JSON with the content type application/json.",
            fields: [Failure.Field("Content-Type", "must be application/json")])
    }

    /// Returns the versions that `If-Match` names; at least one.
    func requireIfMatch() throws(Failure) -> [Int] {
        guard let versions = request.withHeader("If-Match", { $0.map { EntityTag.versions(namedBy: $0, in: epoch) } })
        else {
            throw Failure(
                .preconditionRequired, "precondition.required",
                "Send the resource's ETag as If-Match, so that the change of another client is not overwritten.",
                fields: [Failure.Field("If-Match", "is missing")])
        }
        guard !versions.isEmpty else {
            throw Failure(
                .stale, "precondition.stale", "The If-Match header is not an ETag of this resource.",
                fields: [
                    Failure.Field(
                        "If-Match", "must be the resource's ETag, or its version and epoch, such as \"3-\(epoch)\"")
                ])
        }
        return versions
    }

    /// The epoch that versions belong to.
    var epoch: String { reader.log.epoch }
    /// The position of the caller's tenant, to be noted before a snapshot begins.
    var knownPosition: TenantPositions.Known { reader.positions.known(of: caller.tenant) }

    /// Returns the tag of a version as the caller sees it.
    func tag(_ version: Int, variant: String = "") -> EntityTag {
        EntityTag(version, in: epoch, for: caller, variant: variant)
    }

    var badgeVersions: BadgeVersions { reader.badgeVersions }
    var settings: Settings { reader.settings }

    /// The version of the caller's counts, if it is known without a database query.
    var knownBadgeVersion: Int? { badgeVersions.version(of: caller.owner) }
}
