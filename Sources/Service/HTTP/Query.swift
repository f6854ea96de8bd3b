import MicroHTTP
import Values

/// The query items that an endpoint accepts.
enum QueryNames: Sendable, ExpressibleByArrayLiteral {
    /// Only these, each at most once. Others are errors: a misspelt filter must not be silently ignored.
    case only([String])
    /// Any items, all ignored: for pages and probes, whose callers add their own.
    case any

    init(arrayLiteral names: String...) { self = .only(names) }
}

/// The query items of a request, checked against the names that the endpoint declares.
struct Query: Sendable {
    private var items: [String: String] = [:]
    private var declared: [String] = []

    /// - Throws: 422, with each item that is undeclared or duplicated.
    init(_ request: Request, _ names: QueryNames) throws(Failure) {
        guard case .only(let declared) = names else { return }
        self.declared = declared
        var mistakes: [Failure.Field] = []
        for (name, value) in request.queryItems {
            if !declared.contains(name) {
                mistakes.append(Failure.Field("?\(name)", "is not a known parameter"))
            } else if items.updateValue(value ?? "", forKey: name) != nil {
                mistakes.append(Failure.Field("?\(name)", "must not be repeated"))
            }
        }
        guard mistakes.isEmpty else { throw Failure.invalid(mistakes) }
    }

    func string(_ name: String) throws(Failure) -> String? {
        precondition(declared.contains(name), "the endpoint does not declare the parameter ?\(name)")
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

    /// Returns one of a closed set of words.
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

    /// Returns a moment in the form of RFC 3339.
    func moment(_ name: String) throws(Failure) -> Timestamp? {
        guard let text = try string(name) else { return nil }
        guard let moment = Timestamp(rfc3339: text) else {
            throw Failure.invalid("?\(name)", "must be a time such as 2026-01-10T10:00:00Z")
        }
        return moment
    }

    func id<E>(_ name: String, _: E.Type) throws(Failure) -> ID<E>? {
        guard let text = try string(name) else { return nil }
        guard Fields.isIdentifier(text) else {
            throw Failure.invalid("?\(name)", "must be an id of at most \(Fields.idBytesMax) bytes")
        }
        return ID(text)
    }
}
