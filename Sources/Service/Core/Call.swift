import Domain
import MicroHTTP

/// One request on its way to a handler: who calls, and typed views of what was sent.
struct Call: Sendable {
    let request: Request
    let caller: Caller
    let settings: Settings
    let now: Timestamp
    let cursors: PageCursors
    let badgeVersions: BadgeVersions

    /// A path parameter as an id. What cannot be an id names nothing, so it is a 404.
    func pathID<E>(_ index: Int, _: E.Type) throws -> ID<E> {
        let text = request.parameter(index)
        guard Fields.isIdentifier(text) else { throw Failure.notFound("resource") }
        return ID(text)
    }

    /// The body as the members of a JSON object.
    func fields() throws -> Fields {
        let type = request.header("Content-Type")?.split(separator: ";").first.map { $0.lowercased() } ?? ""
        let trimmed = type.drop { $0 == " " }.prefix { $0 != " " }
        guard trimmed == "application/json" else {
            throw Self.notJSON
        }
        return try Fields(request.body)
    }

    static var notJSON: Failure {
        Failure(
            .unsupportedMediaType, "request.media_type", "The body must be JSON: send it as application/json.",
            fields: [Failure.Field("Content-Type", "must be application/json")])
    }

    /// The query's items. Unknown and repeated ones are mistakes: a misspelt filter must not be dropped in silence.
    func query(_ allowed: Set<String>) throws -> Query {
        try Query(request.queryItems, allowed: allowed, call: self)
    }

    /// The version that `If-Match` names, without its quotes.
    var ifMatch: String? { request.header("If-Match").map(Self.unquoted) }

    func requireIfMatch() throws -> Int {
        guard let text = ifMatch else {
            throw Failure(
                .preconditionRequired, "precondition.required",
                "Send the version you have seen as If-Match, so that no one else's change is lost.",
                fields: [Failure.Field("If-Match", "is missing")])
        }
        guard let version = Int(text) else {
            throw Failure(
                .stale, "precondition.stale", "The If-Match header names no version of this resource.",
                fields: [Failure.Field("If-Match", "must be a version, such as \"3\"")])
        }
        return version
    }

    /// The counts' version of the caller, if it is known without asking the database.
    var knownBadgeVersion: Int? {
        badgeVersions.version(of: caller.userId, tenant: caller.tenant)
    }

    static func unquoted(_ tag: String) -> String {
        var text = tag.drop { $0 == " " }
        if text.hasPrefix("W/") { text = text.dropFirst(2) }
        while text.last == " " { text = text.dropLast() }
        guard text.count >= 2, text.first == "\"", text.last == "\"" else { return String(text) }
        return String(text.dropFirst().dropLast())
    }
}

/// The items of a request's query.
struct Query {
    private let items: [String: String]
    private let call: Call

    fileprivate init(
        _ found: [(name: String, value: String?)], allowed: Set<String>, call: Call
    ) throws(Failure) {
        var items: [String: String] = [:]
        var mistakes: [Failure.Field] = []
        for (name, value) in found {
            if !allowed.contains(name) {
                mistakes.append(Failure.Field("?\(name)", "is not known here"))
            } else if items.updateValue(value ?? "", forKey: name) != nil {
                mistakes.append(Failure.Field("?\(name)", "must not be repeated"))
            }
        }
        guard mistakes.isEmpty else { throw Failure.invalid(Array(mistakes.prefix(20))) }
        self.items = items
        self.call = call
    }

    func string(_ name: String) throws(Failure) -> String? {
        guard let text = items[name] else { return nil }
        guard !text.isEmpty else { throw Failure.invalid("?\(name)", "must not be empty") }
        guard text.utf8.count <= 256, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw Failure.invalid("?\(name)", "must be at most 256 bytes without control characters")
        }
        return text
    }

    func int(_ name: String, in range: ClosedRange<Int>) throws(Failure) -> Int? {
        guard let text = try string(name) else { return nil }
        guard text.utf8.allSatisfy({ (48...57).contains($0) || $0 == 45 }), let number = Int(text),
            range.contains(number)
        else {
            throw Failure.invalid(
                "?\(name)", "must be a whole number between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }

    func bool(_ name: String) throws(Failure) -> Bool? {
        switch try string(name) {
        case nil: nil
        case "true": true
        case "false": false
        default: throw Failure.invalid("?\(name)", "must be true or false")
        }
    }

    /// One of a closed set of words.
    func word<Word: RawRepresentable & CaseIterable>(
        _ name: String, _: Word.Type
    ) throws(Failure) -> Word? where Word.RawValue == String {
        guard let text = try string(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            throw Failure.invalid(
                "?\(name)", "must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return word
    }

    func id<E>(_ name: String, _: E.Type) throws(Failure) -> ID<E>? {
        guard let text = try string(name) else { return nil }
        guard Fields.isIdentifier(text) else {
            throw Failure.invalid("?\(name)", "must be an id of at most \(Fields.idBytesMax) bytes")
        }
        return ID(text)
    }

    /// `limit` and `cursor`.
    func page(limitMax: Int) throws(Failure) -> PageRequest {
        let limit = try int("limit", in: 1...limitMax) ?? min(Limits.pageDefault, limitMax)
        guard let cursor = try string("cursor") else { return PageRequest(after: nil, limit: limit) }
        return PageRequest(after: try call.cursors.open(cursor, filters: PageCursors.filters(of: call)), limit: limit)
    }
}

/// The part of a list that a request wants.
struct PageRequest: Sendable {
    /// The key of the last item of the page before.
    let after: String?
    let limit: Int
}
