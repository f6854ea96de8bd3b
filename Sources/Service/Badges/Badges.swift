import Database

/// The counts of all icons in one call (CNT G1…G3, R-COUNTS-1, D-CNT-1).
///
/// The numbers are kept by the core in the transaction that changes them; this feature only shows them.
enum BadgesFeature {
    /// - Parameter conversations: what of a caller's unread messages is in which conversation, as rows of an id and a
    ///   number. The catalog brings it: features know none another.
    static func feature(conversations: @escaping @Sendable (Caller) -> SQL) -> Feature {
        Feature(
            name: "badges", tables: [], migrations: [], endpoints: endpoints(conversations), reactions: [], topics: [],
            ticks: [])
    }
}
