import Database
import Domain
import Values

extension ShopsFeature {
    static let reactions = [
        Reaction.on(BookingChanged.self) { tx, change in try follow(change, tx) },
        Reaction.on(ShopQueueTouched.self) { tx, touched in try recompute(touched.shopId, tx) },
    ]

    /// Recomputes the queues of open shops, whose numbers change as services come nearer to their end.
    ///
    /// A few at a time, the oldest first, since all writes wait for it. So some 700 shops of a tenant are published
    /// anew within a minute; a queue that is older is computed when it is read.
    static let queueTick = Tick(name: "shops.queues", everySeconds: 5) { tx in
        let due = tx.now.adding(seconds: -queueRestSeconds)
        for shopId in try movingShops(computedBefore: due, limit: queuesAtOnceMax, tx) { try recompute(shopId, tx) }
    }

    /// The age from which a queue is computed again; with the tick's pause well below ``queueAgeSecondsMax``.
    private static let queueRestSeconds: Int64 = 30
    /// Queues of one tick: at a millisecond or two for each, an unnoticeable pause of the writer.
    private static let queuesAtOnceMax = 64

    /// All consequences of a change of a booking (CUT B-2).
    private static func follow(_ change: BookingChanged, _ tx: Transaction) throws {
        let (booking, previous) = (change.booking, change.previous)
        let shop = try requireShop(booking.shopId, tx)
        try appendHistory(booking, previous: previous, tx)
        let byCustomer = booking.userId == tx.caller.userId
        if let draft = BookingNotification.draft(
            booking, previous: previous, shopName: shop.name, byCustomer: byCustomer)
        {
            tx.record(NotificationRequested(draft: draft))
        }
        try noteEstimate(booking, previous, shop, tx)
        try publish(booking, previous, tx)
        let isQueued = booking.status.isQueued || previous?.status.isQueued == true
        if isQueued { tx.record(ShopQueueTouched(shopId: booking.shopId)) }
    }

    private static func publish(_ booking: Booking, _ previous: Booking?, _ tx: Transaction) throws {
        let timed = try TimedBooking(booking, tx)
        let data = JSONWriter.object { writer in
            writer.member("bookingId", booking.id)
            writer.member("status", booking.status.rawValue)
            writer.member("previousStatus", previous?.status.rawValue)
            writer.member("version", booking.version)
            writer.member("estimatedCompletion", timed.estimatedCompletion)
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

    /// A customer who arrives is given an estimate; the wait until the service begins shows its accuracy.
    private static func noteEstimate(_ booking: Booking, _ previous: Booking?, _ shop: Shop, _ tx: Transaction) throws {
        switch booking.status {
        case .confirmed where isInLine(booking) && previous.map(isInLine) != true:
            let queue = try ShopQueue.of(shop, tx)
            guard let wait = queue.place(of: booking.id)?.wait else { return }
            // The formula's number without the newcomer, as the customer would have seen it at the door.
            let formula = queue.formulaMinutes(before: booking, tx)
            try storeEstimate(wait, formula: formula, for: booking, tx)
        case .inProgress where previous?.status != .inProgress: try closeEstimate(of: booking, tx)
        case .cancelled, .noShow: try dropEstimate(of: booking, tx)
        default: return
        }
    }

    /// Whether the customer is there and may be called. A customer who came before the confirmation waits from then on.
    private static func isInLine(_ booking: Booking) -> Bool {
        booking.status == .confirmed && booking.arrivedAt != nil
    }

    /// Stores the queue anew, and publishes it if anything is different.
    private static func recompute(_ shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.lock(.shop(shopId))
        guard let shop = try findShop(shopId, tx) else { return }
        let known = try storedQueue(shopId, tx)
        let status = try ShopQueue.of(shop, tx).status
        let content = status.content
        try store(status, content: content, tx)
        guard known?.content != content else { return }
        let audience = queues.read.audience { _ in nil }
        tx.publish(
            "queue:update", audience: audience, topic: "queue:\(shopId.text)", collapse: "queue:\(shopId.text)",
            data: QueueStatus.json(content, updatedAt: tx.now))
    }
}

extension ShopQueue {
    /// The plain formula's number for a lane before one more customer joined it.
    fileprivate func formulaMinutes(before booking: Booking, _ tx: Transaction) -> Int {
        let before = QueueStatus(
            shopId: shop.id, queueLength: max(0, status.queueLength - 1), barbersOnDuty: status.currentlyServing,
            inService: status.inService,
            averageServiceMinutes: QueueFormula.averageServiceMinutes(completedMinutes: samples.map(\.minutes)),
            formula: Self.formula(tx.settings), estimate: nil)
        return before.formulaMinutes(booking.tier.lane)
    }
}
