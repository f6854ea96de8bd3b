import Foundation

/// What the service speaks of: its models, answers and problems. The calls that bring them are those of
/// ``BellhopClient``.
///
/// All are written from `openapi.yaml`, and read what a newer service says: a member that is not known here is passed
/// over, and a word that is not known here is kept (``Bellhop/Word``).
public enum Bellhop {
    /// Reads models as the service writes them; for apps that keep some.
    public static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let moment = Moment.date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "“\(text)” is no RFC 3339 time")
            }
            return moment
        }
        return decoder
    }

    /// Writes models as the service reads them.
    public static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(Moment.text(date))
        }
        return encoder
    }

    /// One of some words, of which a newer service may know more: none is refused, and whoever switches over them has a
    /// `default`.
    public protocol Word: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible
    where RawValue == String {
        init(rawValue: String)
    }

    /// One page of a list.
    public protocol PageOfItems: Decodable, Sendable {
        associatedtype Item: Sendable
        var items: [Item] { get }
        /// The cursor of the next page; nil on the last.
        var next: String? { get }
    }

    /// A page of a list that says nothing more.
    public struct Page<Item: Codable & Sendable & Hashable>: PageOfItems, Codable, Hashable {
        public let items: [Item]
        public let next: String?

        public init(items: [Item], next: String? = nil) {
            self.items = items
            self.next = next
        }
    }

    /// What a call brought, and what the answer's head says of it.
    public struct Answer<Value: Sendable>: Sendable {
        public let value: Value
        public let status: Int
        /// Names in lower case.
        public let headers: [String: String]

        /// Names this version of the state: sent back as `ifNoneMatch` it asks for another one only, as `ifMatch` it
        /// changes this one only.
        public var etag: String? { headers["etag"] }
        /// The event behind which the state is: a stream that is opened with it as `lastEventID` goes on exactly there.
        public var eventPosition: String? { headers["event-position"] }
        public var location: String? { headers["location"] }
        public var requestID: String? { headers["x-request-id"] }
        /// Until asking again makes sense.
        public var pollInterval: Duration? { headers["poll-interval"].flatMap { Int($0) }.map { .seconds($0) } }
        /// The call was made before with this idempotency key: this is the answer of then.
        public var isReplayed: Bool { headers["idempotency-replayed"] == "true" }
    }

    /// The service answered, and the answer is of another form than the contract says.
    public struct UnreadableAnswer: Error, Sendable, CustomStringConvertible {
        public let status: Int
        public let requestID: String?
        public let reason: String

        public var description: String {
            "the answer \(status)\(requestID.map { " of request \($0)" } ?? "") is not understood: \(reason)"
        }
    }
}

extension JSON {
    /// An object with all of these members, whatever they are.
    func has(_ names: String...) -> Bool {
        guard case .object(let members) = self else { return false }
        return names.allSatisfy { members[$0] != nil }
    }
}

extension Bellhop.Word {
    public var description: String { rawValue }
}

extension Bellhop.Answer: Equatable where Value: Equatable {}

/// Times as the service writes them: RFC 3339 in UTC, with milliseconds or without.
enum Moment {
    static func date(_ text: String) -> Date? {
        (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
            ?? (try? Date.ISO8601FormatStyle().parse(text))
    }

    /// To the nearest millisecond: the formatter cuts off what is behind it, and a `Date` is seldom exact.
    static func text(_ date: Date) -> String {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        return Date(timeIntervalSince1970: milliseconds / 1000 + 0.000_1)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
