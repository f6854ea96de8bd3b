import Domain
import Values

/// Barber shops: their people, bookings, and the wait in their queues (CUT, B-1 to B-3).
///
/// One feature and not three: a change of a booking stores it, publishes it and recomputes its shop's queue in one
/// transaction, from the same rows.
enum ShopsFeature {
    static let feature = Feature(
        name: "shops", tables: [shops, barbers, bookings, history, queues, estimates], migrations: migrations,
        endpoints: shopEndpoints + bookingEndpoints + queueEndpoints, reactions: reactions, topics: [queueTopic],
        ticks: [queueTick], audits: [overlapAudit], events: ["booking:status_change", "queue:update"],
        locks: ["shop"])
}

extension LockKey {
    /// A shop with its people, its bookings and its queue.
    static func shop(_ id: ID<Shop>) -> LockKey { LockKey(kind: "shop", id: id.text) }
}
