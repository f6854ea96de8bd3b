import Domain
import Values

/// DJ mode: guests of a shop choose its music, and must be there to do so (CUT D-1 to D-5, decisions 9, 10 and 13).
///
/// Presence is part of it: a vote checks it in its own transaction.
enum DJFeature {
    static let feature = Feature(
        name: "dj", tables: [shops, tracks, votes, presences, attempts], migrations: migrations,
        endpoints: sessionEndpoints + voteEndpoints + presenceEndpoints, reaction: reaction, topics: [topic],
        ticks: [updatesTick, votesTick, presenceTick], audits: [audit],
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
    /// A shop's music. Apart from the shop: bookings need not wait for votes.
    static func dj(_ id: ID<Shop>) -> LockKey { LockKey(kind: "dj", id: id.text) }
}
