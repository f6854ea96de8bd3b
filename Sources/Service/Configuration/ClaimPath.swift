import Values

/// The place of a claim in a token's payload, as a setting names it: `app_metadata.tenant`,
/// `https://app.example/tenant`, `tenants.{tenant}.roles`.
///
/// A dot leads into an object, or is a part of a name. The longest name that leads to a value is taken: first the
/// whole text, then the path. A path leads through a list into each of its objects. `{tenant}` stands for the token's
/// tenant.
struct ClaimPath: Sendable {
    /// A value on the path that should be an object, but is not.
    struct Obstacle: Error {
        let name: String
    }

    /// The part of a path that stands for the tenant.
    static let tenantMark: Substring = "{tenant}"

    let text: String
    private let parts: [Substring]

    /// Returns nil if a name between dots is empty.
    init?(_ text: String) {
        self.text = text
        parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.contains("") { return nil }
    }

    /// Whether the claim has words separated by spaces (RFC 8693 §4.2, and `scp` of some issuers).
    var hasWords: Bool { text == "scope" || text == "scp" }

    var namesTenant: Bool { parts.contains(Self.tenantMark) }

    /// Returns the value at this place; null counts as absent.
    ///
    /// - Parameter tenant: Nil if it is not known. Then a path through it leads to nothing.
    /// - Throws: ``Obstacle`` if the path leads through a value that is no object, which differs from an absent claim.
    func value(in payload: JSONValue, tenant: String? = nil) throws(Obstacle) -> JSONValue? {
        guard namesTenant else { return try Self.value(in: payload, at: 0, of: parts) }
        guard let tenant else { return nil }
        // The id may contain dots, but it is one name.
        return try Self.value(in: payload, at: 0, of: parts.map { $0 == Self.tenantMark ? tenant[...] : $0 })
    }

    private static func value(
        in found: JSONValue, at depth: Int, of path: [Substring]
    ) throws(Obstacle) -> JSONValue? {
        guard depth < path.count else { return found }
        if case .array(let elements) = found {
            var values: [JSONValue] = []
            for element in elements {
                switch try value(in: element, at: depth, of: path) {
                case nil: continue
                case .array(let more)?: values += more
                case let one?: values.append(one)
                }
            }
            return values.isEmpty ? nil : .array(values)
        }
        guard case .object(let members) = found else {
            throw Obstacle(name: path[..<depth].joined(separator: "."))
        }
        for end in (depth + 1...path.count).reversed() {
            guard let next = members[path[depth..<end].joined(separator: ".")], next != .null,
                let value = try value(in: next, at: end, of: path)
            else { continue }
            return value
        }
        return nil
    }
}
