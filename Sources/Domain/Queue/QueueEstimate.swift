/// A wait as a distribution's median and 90th percentile, in minutes.
public struct WaitEstimate: Sendable, Hashable {
    /// As likely to be longer as to be shorter: the estimate with the least mean absolute error.
    public var p50: Double
    /// Nine waits of ten are shorter.
    public var p90: Double

    /// The median as it is shown: whole minutes, rounded up.
    public var p50Minutes: Int { wholeMinutes(p50) }
    /// The 90th percentile as it is shown: whole minutes, rounded up.
    public var p90Minutes: Int { wholeMinutes(p90) }
}

/// The position and the estimated wait of one waiting customer.
public struct CustomerEstimate: Sendable, Hashable {
    public var id: String
    public var lane: QueueLane
    /// 1 for the next customer; the black-card lane stands before the standard lane.
    public var position: Int
    /// The wait from now on; nil when the requested barber serves nobody.
    public var wait: WaitEstimate?
}

/// The estimated waits of a shop: for a newcomer in each lane, and for each waiting customer.
public struct QueueEstimate: Sendable, Hashable {
    public var standard: WaitEstimate
    public var blackCard: WaitEstimate
    /// In the order of their positions.
    public var customers: [CustomerEstimate]
    /// One sentence on how the numbers come about.
    public var method: String
    /// How many completed services the service times were learned from.
    public var sampleSize: Int

    public subscript(lane: QueueLane) -> WaitEstimate { lane == .blackCard ? blackCard : standard }
}
