/// Challenges and their leaderboards (CUT L-1, L-2; decision 11).
enum ChallengesFeature {
    /// - Parameter boards: nil, as `bellhop routes` asks, lists what there is without serving it.
    static func feature(_ boards: Leaderboards?) -> Feature {
        Feature(
            name: "challenges", tables: [challenges, boardRows, scores], migrations: [migration],
            endpoints: challengeEndpoints(boards) + scoreEndpoints(boards), reactions: [], topics: [leaderboardTopic],
            ticks: [tellingTick, removalTick], audits: [boardAudit, orderAudit])
    }
}
