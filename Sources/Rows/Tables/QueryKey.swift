import Values

/// A query key, compared by the bytes of its parts.
public struct QueryKey: Sendable, Hashable {
    let parts: [String]

    public init(_ parts: [String]) { self.parts = parts }

    public static func == (left: Self, right: Self) -> Bool {
        left.parts.count == right.parts.count && zip(left.parts, right.parts).allSatisfy { $0.hasBytes(of: $1) }
    }

    public func hash(into hasher: inout Hasher) {
        for part in parts { hasher.combine(ID<QueryKey>(part)) }
    }
}
