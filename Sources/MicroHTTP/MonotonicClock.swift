import CMicroHTTPD

/// The monotonic time that reactors and shards measure by. Tests bring one that stands still until they move it.
struct MonotonicClock: Sendable {
    /// Nanoseconds since an arbitrary moment.
    let now: @Sendable () -> UInt64

    static let system = MonotonicClock { cmhd_monotonic_nanoseconds() }
}
