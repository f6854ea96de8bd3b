import Domain
import Values

/// DJ mode: guests choose the music of a shop while they are present (R-CUT-D-1 to R-CUT-D-5; ).
///
/// Presence is part of the feature, because a vote checks it in its own transaction.
enum DJFeature {
    static let feature = Feature(
        name: "dj", set: .shops, tables: [shops, tracks, votes, presences, attempts], migrations: migrations,
        endpoints: sessionEndpoints + voteEndpoints + presenceEndpoints, reaction: reaction, topics: [topic],
        ticks: [updatesTick, votesTick, presenceTick], personSteps: [personStep], audits: [audit],
        events: ["dj:session", "dj:queue_update", "track:added", "track:playing", "track:removed"], locks: ["dj"],
        constants: Feature.constants(
            "dj",
            [
                "tracksMax": DJLimits.tracksMax, "tracksPerUserMax": DJLimits.tracksPerUserMax,
                "updatesPerSecondMax": DJLimits.updatesPerSecondMax,
                "presenceSeconds": Int(PresenceLimits.lifetimeSeconds), "codeSeconds": Int(PresenceLimits.codeSeconds),
            ]))
}

extension LockKey {
    /// The lock of a shop's music. It is separate from the shop, so that bookings need not wait for votes.
    static func dj(_ id: ID<Shop>) -> LockKey { LockKey(kind: "dj", id: id.text) }
}
