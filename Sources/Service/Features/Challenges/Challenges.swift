import Domain
import Values

/// Challenges and their leaderboards (R-CUT-L-1, R-CUT-L-2; R-11).
enum ChallengesFeature {
    /// Creates the feature.
    ///
    /// - Parameter boards: Nil lists the feature without serving it, for `bellhop routes`.
    static func feature(_ boards: Leaderboards?) -> Feature {
        Feature(
            name: "challenges", set: .challenges, tables: [challenges, boardRows, scores, tops], migrations: migrations,
            endpoints: challengeEndpoints(boards) + scoreEndpoints(boards), topics: [leaderboardTopic],
            ticks: [updateTick, removalTick], personSteps: [personStep(boards)], audits: [boardAudit, orderAudit],
            events: ["leaderboard:update"],
            locks: ["challenge"],
            constants: Feature.constants(
                "leaderboards",
                [
                    "entriesMax": LeaderboardLimits.entriesMax, "topDefault": LeaderboardLimits.topDefault,
                    "topMax": LeaderboardLimits.topMax, "aroundDefault": LeaderboardLimits.aroundDefault,
                    "aroundMax": LeaderboardLimits.aroundMax, "watchedTop": LeaderboardLimits.watchedTop,
                    "updateSeconds": Int(LeaderboardLimits.updatePauseSeconds),
                ]))
    }
}

extension LockKey {
    /// The lock of a challenge with its leaderboard.
    static func challenge(_ id: ID<Challenge>) -> LockKey { LockKey(kind: "challenge", id: id.text) }
}
