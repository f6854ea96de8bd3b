/// Runs `work` for all elements concurrently. Returns the results in the order of the elements.
@discardableResult
public func concurrently<Elements: Sequence, Result: Sendable>(
    _ elements: Elements, _ work: @escaping @Sendable (Elements.Element) async throws -> Result
) async throws -> [Result] where Elements.Element: Sendable {
    try await withThrowingTaskGroup(of: (Int, Result).self) { group in
        for (place, element) in elements.enumerated() { group.addTask { (place, try await work(element)) } }
        let results = try await group.reduce(into: []) { $0.append($1) }
        return results.sorted { $0.0 < $1.0 }.map(\.1)
    }
}
