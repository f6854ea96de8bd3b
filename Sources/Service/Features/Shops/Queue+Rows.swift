import Database
import Domain
import Values

extension ShopsFeature {
    private static let bookkeeping = Unscoped.bookkeeping("the computed status of a shop is stored by the service")

    // MARK: The last computed queue

    struct StoredQueue {
        let content: [UInt8]
        let updatedAt: Timestamp
        /// The learned factor of percentiles.
        let calibration: Double
    }

    static func findQueue(_ shopId: ID<Shop>, _ tx: Transaction) throws -> StoredQueue? {
        try tx.db.row(
            """
            SELECT content, updated_at, calibration FROM \(queues, visibleTo: tx.scope) WHERE shop_id = \(shopId)
            """, storedQueue)
    }

    static func storedQueueQuery(_ shopId: ID<Shop>, _ tx: Transaction) -> RowQuery<StoredQueue> {
        RowQuery(
            """
            SELECT content, updated_at, calibration FROM \(queues, within: tx.tenant, bookkeeping)
            WHERE shop_id = \(shopId)
            """, storedQueue)
    }

    private static func storedQueue(_ row: Row) throws -> StoredQueue {
        StoredQueue(content: try row.bytes(0), updatedAt: try row.moment(1), calibration: try row.real(2))
    }

    static func store(_ status: QueueStatus, content: [UInt8], _ tx: Transaction) throws {
        tx.dropCached("queue:\(status.shopId)")
        let isMoving = status.currentlyServing > 0 || status.queueLength > 0 || status.inService > 0
        try tx.db.runWithCommit([
            """
            INSERT INTO \(queues, within: tx.tenant, bookkeeping)
                (tenant, shop_id, content, updated_at, is_moving, calibration)
            VALUES (\(tx.tenant), \(status.shopId), \(String(decoding: content, as: UTF8.self)),
                \(tx.now), \(isMoving), 1)
            ON CONFLICT (tenant, shop_id) DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at,
                is_moving = excluded.is_moving
            """
        ])
    }

    /// Returns shops whose numbers change without a write: open shops, because of the passing time, and closed shops
    /// when a day with bookings begins. The least recently computed come first. Shops whose time of computation is in
    /// the future, because the clock was set back, are included.
    static func movingShops(computedBefore due: Timestamp, limit: Int, _ tx: Transaction) throws -> [ID<Shop>] {
        try tx.db.rows(
            """
            SELECT shop_id FROM \(queues, within: tx.tenant, bookkeeping) AS queue
            WHERE \(movingCondition(at: tx.now, computedBefore: due))
            ORDER BY updated_at LIMIT \(limit)
            """
        ) { try $0.id(0) }
    }

    /// Returns a query of the tenants with shops whose numbers change without a write.
    static func tenantsOfMovingShops(at now: Timestamp, computedBefore due: Timestamp) -> SQL {
        """
        SELECT tenant FROM \(queues, unscoped: bookkeeping) AS queue
        WHERE \(movingCondition(at: now, computedBefore: due))
        """
    }

    private static func movingCondition(at now: Timestamp, computedBefore due: Timestamp) -> SQL {
        // Today's bookings are within the longest day, of 25 hours, whatever the shop's time zone.
        let (first, last) = (now.adding(seconds: -25 * 3600), now.adding(seconds: 25 * 3600))
        return """
            NOT (queue.updated_at > \(due) AND queue.updated_at <= \(now)) AND (queue.is_moving = 1 OR EXISTS (
                SELECT 1 FROM \(bookings, unscoped: bookkeeping) AS booking
                WHERE booking.tenant = queue.tenant AND booking.shop_id = queue.shop_id
                    AND booking.scheduled_start >= \(first) AND booking.scheduled_start < \(last)
                    AND booking.status IN ('confirmed', 'in-progress')))
            """
    }

    // MARK: Estimates given to customers

    /// Stores the estimate with which a customer joined.
    static func storeEstimate(_ wait: WaitEstimate, formula: Int, for booking: Booking, _ tx: Transaction) throws {
        try tx.db.run(
            """
            INSERT INTO \(estimates, within: tx.tenant, bookkeeping)
                (tenant, booking_id, shop_id, lane, p50, p90, formula, joined_at)
            VALUES (\(tx.tenant), \(booking.id), \(booking.shopId), \(booking.tier.lane.rawValue),
                \(wait.p50), \(wait.p90), \(Double(formula)), \(tx.now))
            ON CONFLICT (tenant, booking_id) DO NOTHING
            """)
    }

    /// Stores the actual wait when the service begins, which shows the accuracy of the estimate.
    static func closeEstimate(of booking: Booking, _ tx: Transaction) throws {
        guard let startedAt = booking.startedAt else { return }
        let outcome = try tx.db.row(
            """
            UPDATE \(estimates, within: tx.tenant, bookkeeping)
            SET waited_minutes = (\(startedAt) - joined_at) / 60000000.0
            WHERE booking_id = \(booking.id) AND waited_minutes IS NULL
            RETURNING lane, p50, p90, formula, waited_minutes
            """, outcome)
        guard let outcome else { return }
        let stored = try tx.db.rows(storedQueueQuery(booking.shopId, tx)).first
        var calibration = PercentileCalibration(factor: stored?.calibration ?? 1)
        calibration.add(outcome)
        dropComputed(booking.shopId, tx)
        try tx.db.run(
            """
            UPDATE \(queues, within: tx.tenant, bookkeeping) SET calibration = \(calibration.factor)
            WHERE shop_id = \(booking.shopId)
            """)
    }

    /// Deletes the estimate of a customer that leaves unserved, because there is no wait to compare.
    static func dropEstimate(of booking: Booking, _ tx: Transaction) throws {
        try tx.db.run(
            """
            DELETE FROM \(estimates, within: tx.tenant, bookkeeping)
            WHERE booking_id = \(booking.id) AND waited_minutes IS NULL
            """)
    }

    private static func outcome(_ row: Row) throws -> EstimateOutcome {
        guard let lane = QueueLane(rawValue: try row.text(0)) else {
            throw DatabaseError(.corrupt, "a stored estimate has an unknown lane")
        }
        return EstimateOutcome(
            lane: lane, p50: try row.real(1), p90: try row.real(2), formula: try row.real(3), waited: try row.real(4))
    }

    /// The number of latest outcomes. Older ones would describe the shop as it no longer is.
    private static let outcomesMax = 5000

    static func accuracy(of shopId: ID<Shop>, _ tx: Transaction) throws -> EstimateAccuracy {
        EstimateAccuracy(
            try tx.db.rows(
                """
                SELECT lane, p50, p90, formula, waited_minutes FROM \(estimates, visibleTo: tx.scope)
                WHERE shop_id = \(shopId) AND waited_minutes IS NOT NULL
                ORDER BY joined_at DESC LIMIT \(outcomesMax)
                """, outcome))
    }
}
