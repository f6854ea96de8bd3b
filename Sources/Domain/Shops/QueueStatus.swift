import Values

/// The public status of a shop's queue: the numbers of R-CUT-Q-1 to R-CUT-Q-4, and the more precise estimate.
public struct QueueStatus: Sendable, Hashable {
    public enum State: String, Sendable, Hashable {
        case open
        /// All barbers on duty are on a break. The estimate assumes that the break ends within a quarter of an hour.
        case paused
        /// No barber is on duty, so a wait of 0 has no meaning.
        case unstaffed
    }

    public var shopId: ID<Shop>
    /// Today's confirmed bookings.
    public var queueLength: Int
    /// Barbers on duty.
    public var currentlyServing: Int
    /// The barbers on duty without those on a break.
    var barbersWorking: Int
    /// Bookings in progress.
    public var inService: Int
    /// In whole minutes, rounded up.
    public var averageWaitMinutes: Int
    var standardMinutes: Int
    var blackCardMinutes: Int
    /// Nil if no barber will serve.
    public var estimate: QueueEstimate?

    public init(
        shopId: ID<Shop>, queueLength: Int, barbersOnDuty: Int, barbersWorking: Int, inService: Int,
        averageServiceMinutes: Double,
        formula: QueueFormula, estimate: QueueEstimate?
    ) {
        self.shopId = shopId
        self.queueLength = queueLength
        self.inService = inService
        self.estimate = estimate
        currentlyServing = barbersOnDuty
        self.barbersWorking = barbersWorking
        averageWaitMinutes = formula.averageWaitMinutes(
            queueLength: queueLength, barbers: barbersOnDuty, averageServiceMinutes: averageServiceMinutes)
        let waits = formula.estimatedWaitTimes(averageWaitMinutes: averageWaitMinutes)
        standardMinutes = waits.standard
        blackCardMinutes = waits.blackCard
    }

    public var state: State { barbersWorking > 0 ? .open : currentlyServing > 0 ? .paused : .unstaffed }

    /// Returns the result of the plain formula for a lane.
    public func formulaMinutes(_ lane: QueueLane) -> Int { lane == .blackCard ? blackCardMinutes : standardMinutes }

    /// All members but `updatedAt`, without the braces. Equal bytes mean that nothing changed for clients.
    public var content: [UInt8] {
        JSONWriter.members { writer in
            writer.member("shopId", shopId)
            writer.member("queueLength", queueLength)
            writer.member("avgWaitTime", averageWaitMinutes)
            writer.member("currentlyServing", currentlyServing)
            writer.member("inService", inService)
            writer.member("state", state.rawValue)
            writer.member("estimatedWaitTimes") { writer in
                writer.member("standard", standardMinutes)
                writer.member("blackCard", blackCardMinutes)
            }
            writer.key("estimate")
            guard let estimate else { return writer.null() }
            writer.object { writer in
                for lane in QueueLane.allCases {
                    writer.key(lane.rawValue)
                    writer.value(estimate[lane])
                }
                writer.member("method", estimate.method)
                writer.member("sampleSize", estimate.sampleSize)
            }
        }
    }

    /// Returns the whole object.
    public static func json(_ content: [UInt8], updatedAt: Timestamp) -> [UInt8] {
        JSONWriter.object { writer in
            writer.members(content)
            writer.member("updatedAt", updatedAt)
        }
    }
}

extension WaitEstimate: JSONObjectWritable {
    /// Writes the estimate in whole minutes, rounded up.
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("p50", p50Minutes)
        writer.member("p90", p90Minutes)
    }
}
