import Values

/// The place of a claim in a token's payload, as a setting names it: `app_metadata.tenant`,
/// `https://app.example/tenant`.
///
/// A dot leads into an object, or is a part of a name. The longest name that leads to a value is taken: first the
/// whole text, then the path.
struct ClaimPath: Sendable {
    /// A value on the path that should be an object, but is not.
    struct Obstacle: Error {
        let name: String
    }

    let text: String
    private let parts: [Substring]

    /// Returns nil if a name between dots is empty.
    init?(_ text: String) {
        self.text = text
        parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.contains("") { return nil }
    }

    /// Returns the value at this place; null counts as absent.
    ///
    /// - Throws: ``Obstacle`` if the path leads through a value that is not an object, which differs from an absent
    ///   claim.
    func value(in payload: JSONValue) throws(Obstacle) -> JSONValue? { try value(in: payload, at: 0) }

    private func value(in found: JSONValue, at depth: Int) throws(Obstacle) -> JSONValue? {
        guard depth < parts.count else { return found }
        guard case .object(let members) = found else {
            throw Obstacle(name: parts[..<depth].joined(separator: "."))
        }
        for end in (depth + 1...parts.count).reversed() {
            guard let next = members[parts[depth..<end].joined(separator: ".")], next != .null,
                let value = try value(in: next, at: end)
            else { continue }
            return value
        }
        return nil
    }
}
