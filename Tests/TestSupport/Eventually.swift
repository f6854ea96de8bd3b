import Testing

/// How long a test waits for what must come, before it calls it missing. Only a failure waits so long: beside other
/// tests, on a slow machine, what takes milliseconds can take a minute.
public let patience: Duration = .seconds(300)

/// Waits until a condition is true. The deadline only bounds a failure; whoever waits goes on as soon as it is true.
///
/// - Parameters:
///   - comment: what is waited for, for the failure's text.
///   - step: what happens before each further look, as when a clock of the test's own moves on.
public func eventually(
    _ comment: Comment, within limit: Duration = patience, sourceLocation: SourceLocation = #_sourceLocation,
    step: () -> Void = {}, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while try await !condition() {
        try #require(ContinuousClock.now < deadline, comment, sourceLocation: sourceLocation)
        step()
        try await Task.sleep(for: .milliseconds(10))
    }
}
