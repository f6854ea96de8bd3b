import Foundation

/// The namespace of the service's models, answers and problems. The calls that return them are methods of
/// ``BellhopClient``.
///
/// All are generated from `openapi.yaml` and tolerate a newer service: unknown members are ignored, and unknown enum
/// values are kept (``Bellhop/Word``).
public enum Bellhop {
    /// Decodes models in the service's format, for apps that store some.
    public static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let moment = Moment.date(text) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "“\(text)” is not an RFC 3339 time")
            }
            return moment
        }
        return decoder
    }

    /// Encodes models in the service's format.
    public static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(Moment.text(date))
        }
        return encoder
    }

    /// An open enumeration: a newer service may send further values, which are accepted. A `switch` over them needs a
    /// `default`.
    public protocol Word: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible
    where RawValue == String {
        init(rawValue: String)
    }

    /// One page of a list.
    public protocol PageOfItems: Decodable, Sendable {
        associatedtype Item: Sendable
        var items: [Item] { get }
        /// The cursor of the next page; nil on the last page.
        var next: String? { get }
    }

    /// A page of a list without further members.
    public struct Page<Item: Codable & Sendable & Hashable>: PageOfItems, Codable, Hashable {
        public let items: [Item]
        public let next: String?

        public init(items: [Item], next: String? = nil) {
            self.items = items
            self.next = next
        }
    }

    /// The value that a call returned, with the answer's headers.
    public struct Answer<Value: Sendable>: Sendable {
        public let value: Value
        public let status: Int
        /// Names in lower case.
        public let headers: [String: String]

        /// The version of the state. As `ifNoneMatch` it requests the state only if it has changed; as `ifMatch` it
        /// permits a change of this version only.
        public var etag: String? { headers["etag"] }
        /// The last event that the state includes. A stream opened with it as `lastEventID` continues exactly there.
        public var eventPosition: String? { headers["event-position"] }
        public var location: String? { headers["location"] }
        public var requestID: String? { headers["x-request-id"] }
        /// The time to wait before polling again.
        public var pollInterval: Duration? { headers["poll-interval"].flatMap { Int($0) }.map { .seconds($0) } }
        /// Whether this answer was replayed: an earlier call had the same idempotency key.
        public var isReplayed: Bool { headers["idempotency-replayed"] == "true" }
    }

    /// The service's answer does not have the form that the contract defines.
    public struct UnreadableAnswer: Error, Sendable, CustomStringConvertible {
        public let status: Int
        public let requestID: String?
        public let reason: String

        public var description: String {
            "the response \(status)\(requestID.map { " of request \($0)" } ?? "") cannot be decoded: \(reason)"
        }
    }
}

extension JSON {
    /// Returns whether this is an object with all of these members, whatever their values.
    package func has(_ names: String...) -> Bool {
        guard case .object(let members) = self else { return false }
        return names.allSatisfy { members[$0] != nil }
    }
}

extension Bellhop.Word {
    public var description: String { rawValue }
}

extension Bellhop.Answer: Equatable where Value: Equatable {}

/// Timestamps in the service's format: RFC 3339 in UTC, with or without milliseconds.
package enum Moment {
    package static func date(_ text: String) -> Date? {
        (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
            ?? (try? Date.ISO8601FormatStyle().parse(text))
    }

    /// Formats a date, rounded to the nearest millisecond: the formatter truncates, and a `Date` is seldom exact.
    package static func text(_ date: Date) -> String {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        return Date(timeIntervalSince1970: milliseconds / 1000 + 0.000_1)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
