import Values

/// A condition on a token's claims, as a setting writes it: `client_id=cl1`, `scope=bellhop/service`.
///
/// Conditions on the same claim are alternatives. Those on different claims must all hold.
struct ClaimCondition: Sendable {
    let path: ClaimPath
    let value: String

    /// Whether the claim is this text, number or Boolean, a list that contains it, or a `scope` with this word.
    func holds(in payload: JSONValue) -> Bool {
        guard let found = try? path.value(in: payload) else { return false }
        switch found {
        case .string(let text) where path.hasWords: return text.split(separator: " ").contains(value[...])
        case .array(let elements): return elements.contains(where: isValue)
        default: return isValue(found)
        }
    }

    private func isValue(_ found: JSONValue) -> Bool {
        switch found {
        case .string(let text): text == value
        case .integer(let number): "\(number)" == value
        case .bool(let bool): "\(bool)" == value
        default: false
        }
    }
}

extension [ClaimCondition] {
    /// The claim of the first condition that does not hold; nil if the conditions hold.
    func unmet(in payload: JSONValue) -> ClaimPath? {
        let held = filter { $0.holds(in: payload) }
        return first { condition in !held.contains { $0.path.text == condition.path.text } }?.path
    }
}
