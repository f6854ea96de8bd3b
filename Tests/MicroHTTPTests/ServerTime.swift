import Synchronization
import TestSupport

@testable import MicroHTTP

/// The time of servers and shards in tests: it passes when a test says so.
final class ServerTime: Sendable {
    /// A machine that has been up for an hour.
    private static let start: UInt64 = 3_600_000_000_000
    private let nanoseconds = Atomic<UInt64>(start)

    var clock: MonotonicClock {
        MonotonicClock { [self] in nanoseconds.load(ordering: .sequentiallyConsistent) }
    }

    /// What has passed since the start.
    var passed: Duration { .nanoseconds(nanoseconds.load(ordering: .sequentiallyConsistent) - Self.start) }

    func pass(milliseconds: UInt64) {
        nanoseconds.wrappingAdd(milliseconds * 1_000_000, ordering: .sequentiallyConsistent)
    }
}

extension Server {
    /// Lets time pass and waits until every reactor has acted on it.
    ///
    /// The later turns read from the connections that the first one has accepted: their requests arrive before more time
    /// passes.
    func pass(_ time: ServerTime, milliseconds: UInt64) async {
        time.pass(milliseconds: milliseconds)
        for _ in 0..<4 { await completeTurn() }
    }
}
