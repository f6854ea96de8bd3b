/// A wait as a distribution's median and 90th percentile, in minutes.
public struct WaitEstimate: Sendable, Hashable {
    /// The median. It is the estimate with the least mean absolute error.
    public var p50: Double
    /// The 90th percentile: nine of ten waits are shorter.
    public var p90: Double

    /// The median as displayed: whole minutes, rounded up.
    public var p50Minutes: Int { wholeMinutes(p50) }
    /// The 90th percentile as displayed: whole minutes, rounded up.
    public var p90Minutes: Int { wholeMinutes(p90) }
}

/// The position and the estimated wait of one waiting customer.
public struct CustomerEstimate: Sendable, Hashable {
    public var id: String
    public var lane: QueueLane
    /// 1 for the next customer. The black-card lane comes before the standard lane.
    public var position: Int
    /// The wait from now on; nil if the requested barber serves no customers.
    public var wait: WaitEstimate?
}

/// The estimated waits of a shop: for a new customer in each lane, and for each waiting customer.
public struct QueueEstimate: Sendable, Hashable {
    public var standard: WaitEstimate
    public var blackCard: WaitEstimate
    /// The waiting customers, by position.
    public var customers: [CustomerEstimate]
    /// One sentence that explains how the numbers are computed.
    public var method: String
    /// The number of completed services from which the service times were learned.
    public var sampleSize: Int

    public subscript(lane: QueueLane) -> WaitEstimate { lane == .blackCard ? blackCard : standard }
}
