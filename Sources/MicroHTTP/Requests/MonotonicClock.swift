import CMicroHTTPD

/// The monotonic clock of reactors and shards. Tests supply one that they move by hand.
struct MonotonicClock: Sendable {
    /// Nanoseconds since an arbitrary moment.
    let now: @Sendable () -> UInt64

    static let system = MonotonicClock { cmhd_monotonic_nanoseconds() }
}
