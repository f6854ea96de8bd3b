/// Runs `work` for all elements concurrently. Returns the results in the order of the elements.
@discardableResult
public func concurrently<Elements: Sequence, Result: Sendable>(
    _ elements: Elements, _ work: @escaping @Sendable (Elements.Element) async throws -> Result
) async throws -> [Result] where Elements.Element: Sendable {
    try await withThrowingTaskGroup(of: Result.self) { group in
        for element in elements { group.addTask { try await work(element) } }
        return try await group.reduce(into: []) { $0.append($1) }
    }
}
