import Database
import Domain
import Values

/// Barber shops: their barbers, bookings, and the waits in their queues (R-CUT-Q-1 to R-CUT-Q-6, R-CUT-B-1 to
/// R-CUT-B-3).
///
/// It is one feature and not three, because a change of a booking stores it, publishes it and recomputes its shop's
/// queue in one transaction, from the same rows.
enum ShopsFeature {
    static let feature = Feature(
        name: "shops", set: .shops, tables: [shops, barbers, bookings, history, queues, estimates],
        migrations: migrations,
        endpoints: shopEndpoints + bookingEndpoints + queueEndpoints, reaction: reaction, topics: [queueTopic],
        ticks: [queueTick], sweeps: [retention], personSteps: [personStep], audits: [overlapAudit],
        events: ["booking:status_change", "queue:update"],
        locks: ["shop"])

    static let reaction: Reaction = { tx, fact in
        switch fact {
        case .bookingChanged(let booking, let previous): try follow(booking, previous, tx)
        case .shopQueueTouched(let shopId): try recompute(shopId, tx)
        default: break
        }
    }

    /// Recomputes the queues of open shops, whose numbers change as services approach their end.
    ///
    /// It handles a few at a time, the oldest first, because all writes wait for it. So some 700 shops of a tenant are
    /// republished within a minute. An older queue is computed when it is read.
    static let queueTick = Tick(
        name: "shops.queues", everySeconds: 5,
        due: { tenantsOfMovingShops(at: $0, computedBefore: $0.adding(seconds: -queueRestSeconds)) }
    ) { tx in
        let due = tx.now.adding(seconds: -queueRestSeconds)
        for shopId in try movingShops(computedBefore: due, limit: queuesAtOnceMax, tx) { try recompute(shopId, tx) }
    }

    /// The age from which a queue is recomputed. Together with the tick's pause it is well below
    /// ``queueAgeSecondsMax``.
    private static let queueRestSeconds: Int64 = 30
    /// Queues of one tick: at a millisecond or two each, a negligible pause of the writer.
    private static let queuesAtOnceMax = 64

    /// Performs all consequences of a change of a booking (R-CUT-B-2).
    private static func follow(_ booking: Booking, _ previous: Booking?, _ tx: Transaction) throws {
        let shop = try requireShop(booking.shopId, tx)
        try appendHistory(booking, previous: previous, tx)
        let draft = BookingNotification.draft(
            booking, previous: previous, shopName: shop.name, byCustomer: booking.userId == tx.caller.userId)
        if let draft { tx.record(.notificationRequested(draft)) }
        try noteEstimate(booking, replacing: previous, at: shop, tx)
        try publish(booking, previous, tx)
        if booking.status.isQueued || previous?.status.isQueued == true {
            tx.record(.shopQueueTouched(booking.shopId))
        }
    }

    private static func publish(_ booking: Booking, _ previous: Booking?, _ tx: Transaction) throws {
        let estimatedCompletion = booking.estimatedCompletion(medianMinutes: try medianMinutes(of: booking, tx))
        let data = JSONWriter.object { writer in
            writer.member("bookingId", booking.id)
            writer.member("status", booking.status.rawValue)
            writer.member("previousStatus", previous?.status.rawValue)
            writer.version(booking.version, in: tx.epoch)
            writer.member("estimatedCompletion", estimatedCompletion)
        }
        let audience = bookings.read.audience { column in
            switch column {
            case "user_id": booking.userId?.text
            case "shop_id": booking.shopId.text
            default: nil
            }
        }
        tx.publish("booking:status_change", audience: audience, data: data)
    }

    /// Gives an arriving customer an estimate. The wait until the service begins shows its accuracy.
    private static func noteEstimate(_ booking: Booking, replacing previous: Booking?, at shop: Shop, _ tx: Transaction)
        throws
    {
        switch booking.status {
        case .confirmed where isInLine(booking) && previous.map(isInLine) != true:
            let queue = try ShopQueue.of(shop, tx)
            guard let wait = queue.place(of: booking.id)?.wait else { return }
            // The formula's number without the new customer, as the customer would have seen it at the door.
            let formula = queue.formulaMinutes(beforeJoining: booking.tier.lane)
            try storeEstimate(wait, formula: formula, for: booking, tx)
        case .inProgress where previous?.status != .inProgress: try closeEstimate(of: booking, tx)
        case .cancelled, .noShow: try dropEstimate(of: booking, tx)
        default: return
        }
    }

    /// Whether the customer is present and may be called. A customer that came before the confirmation waits from the
    /// confirmation on.
    private static func isInLine(_ booking: Booking) -> Bool {
        booking.status == .confirmed && booking.arrivedAt != nil
    }

    /// Stores the recomputed queue, and publishes it if anything is different.
    private static func recompute(_ shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.lock(.shop(shopId))
        guard let shop = try findShop(shopId, tx) else { return }
        let queue = try ShopQueue.of(shop, tx)
        let content = queue.status.content
        try store(queue.status, content: content, tx)
        guard queue.stored?.content != content else { return }
        let audience = queues.read.audience { _ in nil }
        tx.publish(
            "queue:update", audience: audience, topic: "queue:\(shopId)", collapse: "queue:\(shopId)",
            data: QueueStatus.json(content, updatedAt: tx.now))
    }
}

extension LockKey {
    /// The lock of a shop with its barbers, its bookings and its queue.
    static func shop(_ id: ID<Shop>) -> LockKey { LockKey(kind: "shop", id: id.text) }
}
