import Database
import Domain
import Values

/// The computation of a shop's queue from its rows.
///
/// All customers in line count, including customers that are invisible to the caller, because the result consists of
/// numbers only.
struct ShopQueue {
    let shop: Shop
    let status: QueueStatus
    /// The queue as it was stored last; nil before the first time.
    let stored: ShopsFeature.StoredQueue?
    private let waiting: [WaitingCustomer]
    private let averageServiceMinutes: Double
    private let formula: QueueFormula

    /// Returns the queue. It is computed once per transaction, as long as nothing of the shop changes.
    static func of(_ shop: Shop, _ tx: Transaction) throws -> ShopQueue {
        try tx.cached("queue:\(shop.id)") { try ShopQueue(shop, tx) }
    }

    private init(_ shop: Shop, _ tx: Transaction) throws {
        self.shop = shop
        // Without a barber on duty there is no estimate, so its inputs are not read. Every reader of a closed shop
        // computes its numbers.
        let isOpen = ShopsFeature.hasBarberOnDuty(shop.id, tx)
        let (bookings, storedQueues, samples, arrivals, barbers) = try tx.db.rows(
            Self.todaysBookingQuery(of: shop, tx), ShopsFeature.storedQueueQuery(shop.id, tx),
            Self.sampleQuery(of: shop.id, where: isOpen, tx), Self.arrivalQuery(of: shop.id, where: isOpen, tx),
            ShopsFeature.barberQuery(of: shop.id, tx))
        stored = storedQueues.first
        let onDuty = barbers.filter(\.isOnDuty)
        if !onDuty.isEmpty { _ = tx.cached("samples:\(shop.id)") { samples } }
        waiting = bookings.filter { $0.status == .confirmed }.map { Self.customer($0, at: tx.now) }
        let serving = bookings.filter { $0.status == .inProgress }
        let state = ShopState(
            barbers: Self.states(of: onDuty, serving, at: tx.now), waiting: waiting, samples: samples,
            arrivals: Self.history(arrivals))
        let calibration = PercentileCalibration(factor: stored?.calibration ?? 1)
        averageServiceMinutes = QueueFormula.averageServiceMinutes(completedMinutes: samples.map(\.minutes))
        // Whether the black-card wait follows the literal formula of R-CUT-Q-4.
        formula = QueueFormula(blackCardRule: tx.settings.literalBlackCardFormula ? .literal : .capped)
        status = QueueStatus(
            shopId: shop.id, queueLength: waiting.count, barbersOnDuty: onDuty.count,
            barbersWorking: onDuty.count { !$0.isOnBreak }, inService: serving.count,
            averageServiceMinutes: averageServiceMinutes, formula: formula,
            estimate: WaitEstimator.estimate(state, calibration: calibration))
    }

    /// Returns the plain formula's number for a lane before one more customer joined it.
    func formulaMinutes(beforeJoining lane: QueueLane) -> Int {
        QueueStatus(
            shopId: shop.id, queueLength: max(0, status.queueLength - 1), barbersOnDuty: status.currentlyServing,
            barbersWorking: status.currentlyServing, inService: status.inService,
            averageServiceMinutes: averageServiceMinutes, formula: formula, estimate: nil
        ).formulaMinutes(lane)
    }

    /// Returns the position and the wait of a waiting booking; nil if it is not due yet.
    func place(of id: ID<Booking>) -> (position: Int, wait: WaitEstimate?)? {
        if let estimate = status.estimate {
            return estimate.customers.first { $0.id == id.text }.map { ($0.position, $0.wait) }
        }
        // Without a barber on duty there is an order, but no estimate.
        let due = waiting.filter { $0.readyInMinutes <= WaitLimits.dueHorizonMinutes }.sorted {
            ($0.lane == .standard ? 1 : 0, $0.readyInMinutes, $0.id)
                < ($1.lane == .standard ? 1 : 0, $1.readyInMinutes, $1.id)
        }
        return due.firstIndex { $0.id == id.text }.map { ($0 + 1, nil) }
    }

    // MARK: From rows to the estimator's input

    private static let everybody = Unscoped.reaction("all users in line are counted; only the counts are returned")

    /// Bookings of one day that are read. A shop of 64 barbers does not have more.
    static let bookingsMax = 2000

    /// Returns the query for today's confirmed bookings and those in progress (R-CUT-Q-2).
    private static func todaysBookingQuery(of shop: Shop, _ tx: Transaction) -> RowQuery<Booking> {
        let day = TimeZones.day(of: tx.now, in: shop.timeZone)
        return RowQuery(
            """
            SELECT \(ShopsFeature.bookingColumns) FROM \(ShopsFeature.bookings, within: tx.tenant, everybody)
            WHERE shop_id = \(shop.id)
                AND scheduled_start >= \(day.lowerBound) AND scheduled_start < \(day.upperBound)
                AND status IN ('confirmed', 'in-progress')
            ORDER BY scheduled_start, id LIMIT \(bookingsMax)
            """, Booking.init(row:))
    }

    /// Returns the latest completed services, latest first.
    static func samples(of shopId: ID<Shop>, _ tx: Transaction) throws -> [ServiceSample] {
        try tx.cached("samples:\(shopId)") { try tx.db.rows(sampleQuery(of: shopId, where: "true", tx)) }
    }

    private static func sampleQuery(
        of shopId: ID<Shop>, where condition: SQL, _ tx: Transaction
    ) -> RowQuery<ServiceSample> {
        RowQuery(
            """
            SELECT completed_at - started_at, duration_minutes
            FROM \(ShopsFeature.bookings, within: tx.tenant, everybody)
            WHERE shop_id = \(shopId) AND completed_at IS NOT NULL
                AND started_at IS NOT NULL AND \(condition)
            ORDER BY completed_at DESC LIMIT \(WaitLimits.samplesMax)
            """
        ) {
            ServiceSample(minutes: Double(try $0.integer(0)) / 60_000_000, plannedMinutes: Double(try $0.integer(1)))
        }
    }

    private static func states(of barbers: [Barber], _ serving: [Booking], at now: Timestamp) -> [BarberState] {
        // An off-duty barber only finishes the current service, which does not occupy the others.
        var unassigned = serving.filter { $0.barberId == nil }
        let isPaused = barbers.allSatisfy(\.isOnBreak)
        return barbers.map { barber in
            // Bookings without a named barber are assigned to the first otherwise free barber.
            let own =
                serving.first { $0.barberId == barber.id } ?? (unassigned.isEmpty ? nil : unassigned.removeFirst())
            // A break has no known end. Customers do not wait for it unless all barbers are on a break.
            let rest = isPaused ? WaitLimits.breakRestMinutes(elapsed: now.minutes(since: barber.updatedAt)) : nil
            return BarberState(
                id: barber.id.text, duty: barber.isOnBreak ? .onBreak(endsInMinutes: rest) : .working,
                service: own.map {
                    BarberState.Service(
                        elapsedMinutes: now.minutes(since: $0.startedAt ?? now),
                        plannedMinutes: Double($0.durationMinutes))
                })
        }
    }

    /// Returns a customer. A present customer has waited since the arrival; another is expected at the booked time.
    private static func customer(_ booking: Booking, at now: Timestamp) -> WaitingCustomer {
        let ready = booking.arrivedAt.map { -now.minutes(since: $0) } ?? booking.scheduledStart.minutes(since: now)
        return WaitingCustomer(
            id: booking.id.text, lane: booking.tier.lane, readyInMinutes: ready, barberId: booking.barberId?.text,
            plannedMinutes: Double(booking.durationMinutes))
    }

    /// The arrivals of one tier, and the number of hours in which there were any.
    private typealias Arrivals = (tier: String, count: Int, hours: Int)

    /// Returns the query for the arrivals of the last four weeks, by tier.
    private static func arrivalQuery(of shopId: ID<Shop>, where condition: SQL, _ tx: Transaction) -> RowQuery<Arrivals>
    {
        RowQuery(
            """
            SELECT tier, count(*), count(DISTINCT scheduled_start / 3600000000)
            FROM \(ShopsFeature.bookings, within: tx.tenant, everybody)
            WHERE shop_id = \(shopId)
                AND scheduled_start >= \(tx.now.adding(seconds: -28 * 86_400))
                AND scheduled_start <= \(tx.now) AND started_at IS NOT NULL AND \(condition)
            GROUP BY tier
            """
        ) { (try $0.text(0), try $0.integer(1), try $0.integer(2)) }
    }

    /// Returns the black-card arrivals. The shop counts as open in the hours in which a customer arrived. Its opening
    /// hours are unknown, and hours at night would make the rate too low.
    private static func history(_ arrivals: [Arrivals]) -> ArrivalHistory {
        var history = ArrivalHistory()
        history.count = arrivals.first { $0.tier == Booking.Tier.blackCard.rawValue }?.count ?? history.count
        history.openMinutes = Double((arrivals.map(\.hours).max() ?? 0) * 60)
        return history
    }
}

extension ShopsFeature {
    static func medianMinutes(of booking: Booking, _ tx: Transaction) throws -> Double {
        WaitEstimator.medianServiceMinutes(
            try ShopQueue.samples(of: booking.shopId, tx), plannedMinutes: Double(booking.durationMinutes))
    }
}
