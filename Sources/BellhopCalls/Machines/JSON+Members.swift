import Foundation

extension JSON {
    /// Returns a copy in which these members replace its own of the same names.
    package func with(_ changes: [String: JSON]) -> JSON {
        .object((object ?? [:]).merging(changes) { _, new in new })
    }

    package var strings: [String] { (array ?? []).compactMap(\.string) }

    /// Decodes the document as a model; nil if it has another form.
    package func model<Model: Decodable>(_ type: Model.Type = Model.self) -> Model? {
        try? Bellhop.decoder.decode(type, from: data)
    }

    /// Encodes a model in the service's format; null if it cannot be encoded.
    package init(model: some Encodable) {
        self = (try? JSON(parsing: Bellhop.encoder.encode(model))) ?? .null
    }

    package init(_ number: Int) { self = .integer(Int64(number)) }
    package init(_ text: String?) { self = text.map(JSON.string) ?? .null }
}

extension String {
    /// The text as one segment of a path, encoded as JavaScript's `encodeURIComponent` does.
    package var pathSegment: String {
        let unreserved = CharacterSet(charactersIn: "-_.!~*'()").union(.asciiLetters)
        return addingPercentEncoding(withAllowedCharacters: unreserved) ?? self
    }
}

extension CharacterSet {
    fileprivate static let asciiLetters = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
}

/// Timestamps in the service's format: RFC 3339 in UTC with milliseconds.
extension Moment {
    private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    package static func date(_ milliseconds: Int) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Returns nil if the text is not a timestamp.
    package static func milliseconds(_ text: String?) -> Int? {
        text.flatMap { try? style.parse($0) }.map(milliseconds)
    }

    package static func milliseconds(_ date: Date) -> Int { Int((date.timeIntervalSince1970 * 1000).rounded()) }
}
