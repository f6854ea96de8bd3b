import Foundation

/// A JSON document with convenient access: `answer.json["badges"]["bell"].int`.
///
/// Subscripts never trap: an absent member reads as ``null``, so a chain of them ends in nil.
public enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    /// Parses one document; throws `DecodingError` if it is malformed.
    public init(parsing data: Data) throws {
        // JSONDecoder is not used: it would try one type after another, and throw for each mismatch.
        do {
            try self.init(JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed))
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "The data is not valid JSON.", underlyingError: error))
        }
    }

    /// Converts a value that JSONSerialization produced.
    private init(_ value: Any) {
        switch value {
        case let text as String: self = .string(text)
        case let members as [String: Any]: self = .object(members.mapValues(JSON.init))
        case let elements as [Any]: self = .array(elements.map(JSON.init))
        case let number as NSNumber: self.init(number)
        default: self = .null
        }
    }

    private init(_ number: NSNumber) {
        // Only Booleans have the C type `char`: JSON's numbers are wider.
        if String(cString: number.objCType) == "c" {
            self = .bool(number.boolValue)
            return
        }
        // Numbers with many digits come as NSDecimalNumber, whose own conversion is off in the last digit.
        let decimal = (number as? NSDecimalNumber).flatMap { Double($0.stringValue) }
        let double = decimal ?? number.doubleValue
        self = (Int64(exactly: number) ?? Int64(exactly: double)).map(JSON.integer) ?? .number(double)
    }

    public init(parsing text: String) throws {
        try self.init(parsing: Data(text.utf8))
    }

    public subscript(_ name: String) -> JSON {
        if case .object(let members) = self { members[name] ?? .null } else { .null }
    }

    public subscript(_ index: Int) -> JSON {
        if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { .null }
    }

    public var isNull: Bool { self == .null }
    public var bool: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    public var string: String? { if case .string(let text) = self { text } else { nil } }
    public var array: [JSON]? { if case .array(let elements) = self { elements } else { nil } }
    public var object: [String: JSON]? { if case .object(let members) = self { members } else { nil } }

    public var int: Int? {
        switch self {
        case .integer(let value): Int(exactly: value)
        case .number(let value): Int(exactly: value)
        default: nil
        }
    }

    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// The document as bytes, with sorted keys, so that equal documents have equal bytes.
    public var data: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a non-finite number cannot be encoded; it becomes null.
        return (try? encoder.encode(self)) ?? Data("null".utf8)
    }

    public var text: String { String(decoding: data, as: UTF8.self) }
}

extension JSON: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .bool(flag)
        } else if let integer = try? container.decode(Int64.self) {
            self = .integer(integer)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let elements = try? container.decode([JSON].self) {
            self = .array(elements)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let flag): try container.encode(flag)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let text): try container.encode(text)
        case .array(let elements): try container.encode(elements)
        case .object(let members): try container.encode(members)
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(nilLiteral _: ()) { self = .null }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}

extension JSON: CustomStringConvertible {
    public var description: String { text }
}
