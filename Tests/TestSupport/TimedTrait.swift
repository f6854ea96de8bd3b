import Foundation
import Testing

/// Runs each test case of a suite on the threads of tests (``TestThreads``), and notes how long it takes in the file that
/// `TEST_DURATIONS` names: one line with the seconds and the name.
///
/// The times that Swift Testing prints begin before a test gets its turn among those that run at once; these do not.
public struct TimedTrait: SuiteTrait, TestTrait, TestScoping {
    public let isRecursive = true

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let start = ContinuousClock.now
        defer { Self.note(ContinuousClock.now - start, of: test) }
        try await withTaskExecutorPreference(TestThreads.shared) { try await function() }
    }

    private static let file: Int32? = ProcessInfo.processInfo.environment["TEST_DURATIONS"].map {
        open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    }

    private static func note(_ duration: Duration, of test: Test) {
        guard let file else { return }
        let module = test.sourceLocation.fileID.prefix { $0 != "/" }
        // One write a line: lines of tests that end at the same time do not mix.
        let line = Array("\(duration / .seconds(1))\t\(module)/\(test.name)\n".utf8)
        _ = write(file, line, line.count)
    }
}

extension Trait where Self == TimedTrait {
    /// Gives each test case a thread of its own and notes how long it takes (``TimedTrait``).
    public static var timed: Self { TimedTrait() }
}
