import Testing

/// How long a test waits before it fails. Only a failure takes this long: on a slow machine that runs other tests,
/// work of milliseconds can take a minute.
public let patience: Duration = .seconds(300)

/// Waits until a condition is true. The deadline only bounds a failure: the test continues as soon as the condition
/// holds.
///
/// - Parameters:
///   - comment: the awaited state, for the text of the failure.
///   - step: an action before each further check, such as advancing a test's clock.
public func eventually(
    _ comment: Comment, within limit: Duration = patience, sourceLocation: SourceLocation = #_sourceLocation,
    step: () -> Void = {}, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    // Most conditions become true within a millisecond or two.
    var pause = 1
    while try await !condition() {
        try #require(ContinuousClock.now < deadline, comment, sourceLocation: sourceLocation)
        step()
        try await Task.sleep(for: .milliseconds(pause))
        pause = min(2 * pause, 10)
    }
}
