/// A pattern that makes an audience key from a row's columns: `user:{user_id}`, `shop:{shop_id}:staff`, `everyone`.
///
/// Each segment between `:` is either a constant or exactly one column in braces. So a key can be parsed again and
/// turned into a comparison of columns. The columns of the service's own tables are TEXT. With another affinity, SQLite
/// would convert before it compares, and `5` would equal `5.0`.
public struct AudienceTemplate: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public enum Segment: Sendable, Hashable {
        case constant(String)
        case column(String)
    }

    /// The reason why a text is not a template.
    public struct Malformed: Error, Sendable, Hashable {
        public let template: String
        public let reason: String
    }

    public let description: String
    public let segments: [Segment]
    /// The columns from which the key is made, in order.
    public let columns: [String]
    /// The bytes with which each key begins: the constants before the first column.
    private let start: [UInt8]

    public init(_ text: String) throws(Malformed) {
        var segments: [Segment] = []
        for part in text.split(separator: ":", omittingEmptySubsequences: false) {
            if part.hasPrefix("{"), part.hasSuffix("}") {
                let name = String(part.dropFirst().dropLast())
                guard Self.isColumnName(name) else {
                    throw Malformed(template: text, reason: "there is no column named '\(name)'")
                }
                segments.append(.column(name))
            } else {
                let isPlain = part.utf8.allSatisfy { byte in
                    byte > 0x20 && byte < 0x7F && !"{}%".utf8.contains(byte)
                }
                guard isPlain, !part.isEmpty else {
                    throw Malformed(template: text, reason: "'\(part)' is neither a constant nor a single {column}")
                }
                segments.append(.constant(String(part)))
            }
        }
        self.segments = segments
        start = Self.start(of: segments)
        columns = segments.compactMap { if case .column(let name) = $0 { name } else { nil } }
        description = text
    }

    /// Creates a template from a literal. A malformed literal is a programmer's error. So is a column that SQL accepts
    /// only in quotes, because these templates become statements.
    public init(stringLiteral text: String) {
        do {
            try self.init(text)
            precondition(columns.allSatisfy(Self.isPlainName), "audience template \(text): quoted columns")
        } catch {
            preconditionFailure("audience template \(text): \(error.reason)")
        }
    }

    /// Returns the same template over another column.
    public func over(_ column: String) -> AudienceTemplate {
        let parts = segments.map { if case .constant(let text) = $0 { text } else { "{\(column)}" } }
        return AudienceTemplate(stringLiteral: parts.joined(separator: ":"))
    }

    /// Whether some row of this template and some row of the other could have the same key.
    ///
    /// Two templates with *different meanings* must not: a user named `admin` under `tenant:{id}` would have the key
    /// `tenant:admin`. The catalog refuses such a pair at start.
    public func mayEqual(_ other: AudienceTemplate) -> Bool {
        guard segments.count == other.segments.count else { return false }
        return zip(segments, other.segments).allSatisfy { mine, theirs in
            if case .constant(let left) = mine, case .constant(let right) = theirs { return left == right }
            return true
        }
    }

    /// Returns the key of one row; nil if a column that it needs is null.
    public func key(of row: (String) -> String?) -> String? {
        var key = ""
        for (index, segment) in segments.enumerated() {
            if index > 0 { key += ":" }
            switch segment {
            case .constant(let text): key += text
            case .column(let name):
                guard let value = row(name) else { return nil }
                AudienceKey.appendEncoded(value, to: &key)
            }
        }
        return key
    }

    /// Returns the column values of the rows with the given key; nil if no row can have it.
    public func columnValues(of key: String) -> [String]? {
        // A scope may have 10,000 keys, and most of them begin differently.
        guard key.utf8.starts(with: start) else { return nil }
        var values: [String] = []
        var rest = key.utf8[...]
        for (index, segment) in segments.enumerated() {
            if index > 0, rest.popFirst() != UInt8(ascii: ":") { return nil }
            let part = rest.prefix { $0 != UInt8(ascii: ":") }
            switch segment {
            case .constant(let text):
                guard part.elementsEqual(text.utf8) else { return nil }
            case .column:
                guard let value = AudienceKey.decode(part) else { return nil }
                values.append(value)
            }
            rest = rest[part.endIndex...]
        }
        return rest.isEmpty ? values : nil
    }

    private static func start(of segments: [Segment]) -> [UInt8] {
        var parts: [String] = []
        for segment in segments {
            guard case .constant(let text) = segment else { return Array((parts + [""]).joined(separator: ":").utf8) }
            parts.append(text)
        }
        return Array(parts.joined(separator: ":").utf8)
    }

    /// Whether a template can name the column: any name without the characters that end a segment or a name in braces.
    public static func isColumnName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && !"{}:".utf8.contains($0) }
    }

    /// Whether the name has only letters, digits and `_`, which databases accept without quotes, in either case.
    private static func isPlainName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(48...57).contains(first) else { return false }
        return name.utf8.allSatisfy { byte in
            (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
                || byte == UInt8(ascii: "_")
        }
    }
}
