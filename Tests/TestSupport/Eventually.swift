import Testing

/// How long a test waits for what must come, before it calls it missing. Only a failure waits so long: beside other
/// tests, on a slow machine, what takes milliseconds can take a minute.
public let patience: Duration = .seconds(300)

/// Waits until a condition is true. The deadline only bounds a failure: the test goes on as soon as the condition is true.
///
/// - Parameters:
///   - comment: what is waited for, for the failure's text.
///   - step: what happens before each further look, as when a clock of the test's own moves on.
public func eventually(
    _ comment: Comment, within limit: Duration = patience, sourceLocation: SourceLocation = #_sourceLocation,
    step: () -> Void = {}, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    // Most conditions are true within a millisecond or two.
    var pause = 1
    while try await !condition() {
        try #require(ContinuousClock.now < deadline, comment, sourceLocation: sourceLocation)
        step()
        try await Task.sleep(for: .milliseconds(pause))
        pause = min(2 * pause, 10)
    }
}
