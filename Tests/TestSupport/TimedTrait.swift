import Foundation
import Testing

/// Runs each test case of a suite on the threads of ``TestThreads`` and records its duration. The file that
/// `TEST_DURATIONS` names receives one line per test case, with the seconds and the name.
///
/// The times that Swift Testing prints start before a test gets a thread; these times do not.
public struct TimedTrait: SuiteTrait, TestTrait, TestScoping {
    public let isRecursive = true

    public func provideScope(
        for test: Test, testCase _: Test.Case?, performing function: @Sendable () async throws -> Void
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
        // Each line is one write, so that lines of tests that end at the same time do not mix.
        let line = Array("\(duration / .seconds(1))\t\(module)/\(test.name)\n".utf8)
        _ = write(file, line, line.count)
    }
}

extension Trait where Self == TimedTrait {
    /// Runs each test case on the threads of ``TestThreads`` and records its duration (``TimedTrait``).
    public static var timed: Self { TimedTrait() }
}
