/// DJ mode: guests of a shop choose its music, and must be there to do so (CUT D-1 to D-5, decisions 9, 10 and 13).
///
/// Presence is part of it: a vote asks for it in its own transaction. Of shops and bookings the feature knows what facts
/// tell.
enum DJFeature {
    static let feature = Feature(
        name: "dj", tables: [shops, tracks, votes, presences, attempts], migrations: migrations,
        endpoints: sessionEndpoints + voteEndpoints + presenceEndpoints, reactions: reactions, topics: [topic],
        ticks: [updatesTick, votesTick, presenceTick], audits: [audit])
}
