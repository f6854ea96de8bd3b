/// The waiting customers in the order of being called: black card before standard, within a lane by arrival or due
/// time, then id.
struct ServingOrder: Sendable {
    let customers: [WaitingCustomer]
    let blackCardCount: Int
    /// Of each lane the first ones, up to half the limit each where the other lane needs it, are replayed.
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

    /// The index of the last customer of a lane who is replayed.
    func replayedLast(_ lane: QueueLane) -> Int {
        switch lane {
        case .blackCard: max(blackCardReplayed - 1, 0)
        case .standard: max(blackCardCount + standardReplayed - 1, 0)
        }
    }
}
