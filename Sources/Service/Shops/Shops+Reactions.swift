import Database
import Domain

extension ShopsFeature {
    static let reactions = [
        Reaction.on(BookingChanged.self) { tx, change in try follow(change, tx) },
        Reaction.on(ShopQueueTouched.self) { tx, touched in try recompute(touched.shopId, tx) },
    ]

    /// With the time services come nearer to their end: the numbers of shops that are open change by themselves.
    ///
    /// A few at a time, those that wait longest first: everybody who writes waits for it. So some 700 shops of a tenant
    /// are told anew within a minute; what is older than that is computed when it is read.
    static let queueTick = Tick(name: "shops.queues", everySeconds: 5) { tx in
        let due = tx.now.adding(seconds: -queueRestSeconds)
        for shopId in try movingShops(computedBefore: due, limit: queuesAtOnceMax, tx) { try recompute(shopId, tx) }
    }

    /// A queue that was computed just now need not be again; with the tick's pause well below ``queueAgeSecondsMax``.
    private static let queueRestSeconds: Int64 = 30
    /// Queues of one tick: at a millisecond or two for each, a pause of the writer that nobody notices.
    private static let queuesAtOnceMax = 64

    /// All that a change of a booking brings with it (CUT B-2).
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
        try tell(booking, previous, tx)
        let isQueued = booking.status.isQueued || previous?.status.isQueued == true
        if isQueued { tx.record(ShopQueueTouched(shopId: booking.shopId)) }
    }

    private static func tell(_ booking: Booking, _ previous: Booking?, _ tx: Transaction) throws {
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
        tx.emit("booking:status_change", audience: audience, data: data)
    }

    /// Who arrives is told a wait; when the service begins, the wait shows how good that was.
    private static func noteEstimate(_ booking: Booking, _ previous: Booking?, _ shop: Shop, _ tx: Transaction) throws {
        switch booking.status {
        case .confirmed where isInLine(booking) && previous.map(isInLine) != true:
            let queue = try ShopQueue.of(shop, tx)
            guard let wait = queue.place(of: booking.id)?.wait else { return }
            // What the formula tells is asked without the newcomer, as the customer would have seen it at the door.
            let told = queue.formulaMinutes(before: booking, tx)
            try storeEstimate(wait, formula: told, for: booking, tx)
        case .inProgress where previous?.status != .inProgress: try closeEstimate(of: booking, tx)
        case .cancelled, .noShow: try dropEstimate(of: booking, tx)
        default: return
        }
    }

    /// Whether the customer is there and may be called. Who came before the shop has confirmed waits from then on.
    private static func isInLine(_ booking: Booking) -> Bool {
        booking.status == .confirmed && booking.arrivedAt != nil
    }

    /// Stores the queue anew, and tells those who watch it if anything is different.
    private static func recompute(_ shopId: ID<Shop>, _ tx: Transaction) throws {
        try tx.hold(.shop(shopId))
        guard let shop = try findShop(shopId, tx) else { return }
        let known = try keptQueue(shopId, tx)
        let status = try ShopQueue.of(shop, tx).status
        let content = status.content
        try store(status, content: content, tx)
        guard known?.content != content else { return }
        let audience = queues.read.audience { _ in nil }
        tx.emit(
            "queue:update", audience: audience, topic: "queue:\(shopId.text)", collapse: "queue:\(shopId.text)",
            data: QueueStatus.json(content, updatedAt: tx.now))
    }
}

extension ShopQueue {
    /// What the plain formula told for a lane before one more customer stood in it.
    fileprivate func formulaMinutes(before booking: Booking, _ tx: Transaction) -> Int {
        let before = QueueStatus(
            shopId: shop.id, queueLength: max(0, status.queueLength - 1), barbersOnDuty: status.currentlyServing,
            inService: status.inService,
            averageServiceMinutes: QueueFormula.averageServiceMinutes(completedMinutes: samples.map(\.minutes)),
            formula: Self.formula(tx.settings), estimate: nil)
        return before.formulaMinutes(booking.tier.lane)
    }
}
