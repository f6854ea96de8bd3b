/// The counts of all icons in one call (CNT G1…G3, R-COUNTS-1, D-CNT-1).
///
/// The numbers are kept by the core in the transaction that changes them; this feature only shows them.
enum BadgesFeature {
    static let feature = Feature(
        name: "badges", tables: [], migrations: [], endpoints: endpoints, reactions: [], topics: [], ticks: [])
}
