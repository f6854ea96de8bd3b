import Database
import Domain
import MicroHTTP
import Values

extension ShopsFeature {
    static let queueEndpoints = [
        Endpoint(.get, "/v1/shops/{id}/queue", access: .bearer, effort: .instant, showQueue),
        Endpoint(.get, "/v1/shops/{id}/queue/entries", access: .bearer, showEntries),
        Endpoint(.post, "/v1/shops/{id}/queue/entries", access: .staffOrService, adds: true, addWalkIn),
        Endpoint(.get, "/v1/shops/{id}/queue/accuracy", access: .staffOrService, showAccuracy),
    ]

    /// A topic that any user can watch. Its first event is the state.
    static let queueTopic = TopicKind(prefix: "queue") { tx, id in
        ("queue:update", try presentQueue(ID(id), tx))
    }

    /// The maximum age of an answer (R-CUT-Q-5).
    static let queueAgeSecondsMax: Int64 = 60

    private static func showQueue(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in Response.json(200, try presentQueue(id, tx)) }
    }

    /// Returns the stored numbers. If nothing has changed at the shop for a minute, they are recomputed.
    private static func presentQueue(_ id: ID<Shop>, _ tx: Transaction) throws -> [UInt8] {
        if let stored = try findQueue(id, tx), stored.updatedAt <= tx.now,
            stored.updatedAt.adding(seconds: queueAgeSecondsMax) > tx.now
        {
            return QueueStatus.json(stored.content, updatedAt: stored.updatedAt)
        }
        let queue = try ShopQueue.of(requireShop(id, tx), tx)
        return QueueStatus.json(queue.status.content, updatedAt: tx.now)
    }

    /// `GET …/queue/entries`: the part of the line that the caller may see; customers see their own place.
    private static func showEntries(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in
            let queue = try ShopQueue.of(try requireShop(id, tx), tx)
            let visible = try listBookings(
                ["shop_id = \(id)", "status IN ('confirmed', 'in-progress')"],
                in: TimeZones.day(of: tx.now, in: queue.shop.timeZone), after: nil, limit: ShopQueue.bookingsMax, tx)
            let entries = visible.map { booking -> QueueEntry in
                let place = queue.place(of: booking.id)
                return QueueEntry(booking: booking, position: place?.position, wait: place?.wait)
            }
            return Response.list(entries.sorted { $0.rank < $1.rank })
        }
    }

    /// `POST …/queue/entries`: adds a customer without a booking to the line.
    private static func addWalkIn(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let walkIn = try call.body(WalkIn.init(reading:))
        return .write(locking: .shop(id)) { tx in
            try requireShop(id, tx)
            // The bookings' policy lets all users write their own bookings. Without this check, the staff of another
            // shop could put themselves, confirmed, into this shop's line.
            guard actor(in: id, tx) == .staff else {
                throw Failure.forbidden("Only the shop may add a customer to its queue.", code: "booking.staff_only")
            }
            try requireBarber(walkIn.barberId, of: id, tx)
            let booking = Booking(
                id: tx.makeID(Booking.self), userId: walkIn.userId, shopId: id, barberId: walkIn.barberId,
                service: walkIn.service, scheduledStart: tx.now, durationMinutes: walkIn.durationMinutes,
                tier: walkIn.tier, status: .confirmed, source: .walkIn, customerName: walkIn.customerName,
                arrivedAt: tx.now, createdAt: tx.now, updatedAt: tx.now)
            return try add(booking, tx)
        }
    }

    /// `GET …/queue/accuracy`: the accuracy of past estimates, compared with the plain formula's.
    private static func showAccuracy(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in
            try requireShop(id, tx)
            let accuracy = try accuracy(of: id, tx)
            return Response.json { writer in
                for lane in QueueLane.allCases {
                    writer.key(lane.rawValue)
                    write(accuracy[lane], to: &writer)
                }
                writer.key("overall")
                write(accuracy.overall, to: &writer)
            }
        }
    }

    private static func write(_ lane: EstimateAccuracy.Lane, to writer: inout JSONWriter) {
        func write(_ summary: ErrorSummary, _ share: StaticString, _ writer: inout JSONWriter) {
            writer.member("n", summary.n)
            writer.member("meanAbsoluteError", summary.meanAbsoluteError)
            writer.member("bias", summary.bias)
            writer.member(share, summary.shareUnderBound)
        }
        writer.object { writer in
            write(lane.estimate, "shareUnderP90", &writer)
            writer.member("formula") { write(lane.formula, "shareUnderEstimate", &$0) }
            writer.member("improvement", lane.improvement)
        }
    }
}

/// One customer of the line.
private struct QueueEntry: JSONWritable {
    let booking: Booking
    /// Nil for a customer in service, or not due yet.
    let position: Int?
    let wait: WaitEstimate?

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("bookingId", booking.id)
            writer.member("userId", booking.userId)
            writer.member("customerName", booking.customerName)
            writer.member("status", booking.status.rawValue)
            writer.member("lane", booking.tier.lane.rawValue)
            writer.member("position", position)
            writer.member("wait", wait)
            writer.member("barberId", booking.barberId)
            writer.member("service", booking.service)
            writer.member("scheduledStart", booking.scheduledStart)
            writer.member("arrivedAt", booking.arrivedAt)
            writer.member("startedAt", booking.startedAt)
        }
    }

    /// The sort key: customers in service, then the line, then customers expected later.
    var rank: (Int, Int, Timestamp, ID<Booking>) {
        let group = booking.status == .inProgress ? 0 : position == nil ? 2 : 1
        return (group, position ?? 0, booking.scheduledStart, booking.id)
    }
}
