/// Does work for each of the elements at the same time, and gives the results in the order in which they come.
@discardableResult
public func concurrently<Elements: Sequence, Result: Sendable>(
    _ elements: Elements, _ work: @escaping @Sendable (Elements.Element) async throws -> Result
) async throws -> [Result] where Elements.Element: Sendable {
    try await withThrowingTaskGroup(of: Result.self) { group in
        for element in elements { group.addTask { try await work(element) } }
        return try await group.reduce(into: []) { $0.append($1) }
    }
}
