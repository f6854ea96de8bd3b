import Database
import Logging
import TestSupport
import Testing
import Threads
import Values

@testable import Service

/// The time that a start waits for resources of another process.
@Suite(.timed) struct StartRetryTests {
    private let passed = Locked<Duration>(.zero)

    private func patience() -> StartRetry {
        let clock = Clock(now: { Timestamp(microseconds: 0) }, uptime: { [passed] in passed.withLock { $0 } })
        return StartRetry(App.startPatience, clock: clock, logger: Logger(label: "test")) { [passed] time in
            passed.withLock { $0 += time }
        }
    }

    @Test func lockedFile_isRetriedUntilItIsFree() throws {
        var (tries, patience) = (0, patience())
        let found = try patience.attempt {
            tries += 1
            if tries < 20 { throw DatabaseError(.locked, "in use") }
            return "open"
        }
        #expect(found == "open")
        #expect(tries == 20)
    }

    @Test func lockedFile_failsTheStartAfterTwoSeconds_asTemporary() {
        var patience = patience()
        let error = #expect(throws: DatabaseError.self) {
            try patience.attempt { throw DatabaseError(.locked, "in use") }
        }
        #expect(passed.withLock { $0 } == .seconds(2))
        #expect(error.map(Operations.isTemporary) == true)
        // The time is for the whole start, so a second attempt does not wait.
        #expect(throws: DatabaseError.self) { try patience.attempt { throw DatabaseError(.locked, "in use") } }
        #expect(passed.withLock { $0 } == .seconds(2))
    }

    @Test func permanentStartErrors_areNotRetried() {
        var patience = patience()
        for code in [DatabaseError.Code.corrupt, .readOnly, .schema, .role, .url] {
            let error = #expect(throws: DatabaseError.self) { try patience.attempt { throw DatabaseError(code, "no") } }
            #expect(error.map(Operations.isTemporary) == false, "\(code)")
        }
        #expect(passed.withLock { $0 } == .zero)
    }
}
