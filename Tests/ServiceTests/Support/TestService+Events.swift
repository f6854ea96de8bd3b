import Database
import Realtime
import Testing

@testable import Service

extension TestService {
    /// Runs an action and expects that it adds exactly these events to the log, and no others.
    ///
    /// - Parameter expected: The number of events by name.
    @discardableResult
    func expectEvents<Result>(
        _ expected: [String: Int], sourceLocation: SourceLocation = #_sourceLocation,
        _ action: () async throws -> Result
    ) async throws -> Result {
        let before = try app.store.read { try EventLog.newestSequence(in: $0) }
        let result = try await action()
        let events = try app.store.read { try EventLog.following(before, limit: 10_000, in: $0).events }
        let published = Dictionary(grouping: events.filter { $0.isChange || !$0.audience.isEmpty }, by: \.name)
            .mapValues(\.count)
        #expect(published == expected, sourceLocation: sourceLocation)
        return result
    }
}
