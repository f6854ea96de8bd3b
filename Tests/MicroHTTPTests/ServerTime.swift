import Synchronization

@testable import MicroHTTP

/// The time of servers and shards in tests, which advances only on request.
final class ServerTime: Sendable {
    /// An uptime of one hour.
    private static let start: UInt64 = 3_600_000_000_000
    private let nanoseconds = Atomic<UInt64>(start)

    var clock: MonotonicClock {
        MonotonicClock { [self] in nanoseconds.load(ordering: .sequentiallyConsistent) }
    }

    /// The time since the start.
    var passed: Duration { .nanoseconds(nanoseconds.load(ordering: .sequentiallyConsistent) - Self.start) }

    func pass(milliseconds: UInt64) {
        nanoseconds.wrappingAdd(milliseconds * 1_000_000, ordering: .sequentiallyConsistent)
    }
}

extension Server {
    /// Advances the time and waits until every reactor has acted on it.
    ///
    /// The later turns read from the connections that the first one has accepted, so their requests arrive before the
    /// time advances again.
    func pass(_ time: ServerTime, milliseconds: UInt64) async {
        time.pass(milliseconds: milliseconds)
        for _ in 0..<4 { await completeTurn() }
    }
}
