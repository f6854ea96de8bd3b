/// The waiting customers in the order in which they are called: black card before standard; within a lane by arrival or
/// due time, then by id.
struct ServingOrder: Sendable {
    let customers: [WaitingCustomer]
    let blackCardCount: Int
    /// The number of customers of each lane that are simulated, from the front. Each lane gets up to half the limit if
    /// the other lane needs the other half.
    let blackCardReplayed: Int
    let standardReplayed: Int

    init(_ waiting: [WaitingCustomer]) {
        let due = waiting.filter { $0.readyInMinutes <= WaitLimits.dueHorizonMinutes }
        func ordered(_ lane: QueueLane) -> [WaitingCustomer] {
            due.filter { $0.lane == lane }.sorted { ($0.readyInMinutes, $0.id) < ($1.readyInMinutes, $1.id) }
        }
        let blackCard = ordered(.blackCard)
        let standard = ordered(.standard)
        customers = blackCard + standard
        blackCardCount = blackCard.count
        let half = WaitLimits.customersMax / 2
        blackCardReplayed = min(blackCard.count, max(half, WaitLimits.customersMax - standard.count))
        standardReplayed = min(standard.count, WaitLimits.customersMax - blackCardReplayed)
    }

    /// Returns the index of the last simulated customer of a lane.
    func replayedLast(_ lane: QueueLane) -> Int {
        switch lane {
        case .blackCard: max(blackCardReplayed - 1, 0)
        case .standard: max(blackCardCount + standardReplayed - 1, 0)
        }
    }
}
