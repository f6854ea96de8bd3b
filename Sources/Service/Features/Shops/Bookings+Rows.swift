import Database
import Domain
import Values

extension ShopsFeature {
    static let bookingColumns = Booking.columns()

    @discardableResult
    static func requireBooking(_ id: ID<Booking>, _ tx: Transaction) throws -> Booking {
        try tx.db.row(
            "SELECT \(bookingColumns) FROM \(bookings, visibleTo: tx.scope) WHERE id = \(id)", Booking.init(row:)
        ).required("booking")
    }

    // MARK: Writing

    static func insert(_ booking: Booking, _ tx: Transaction) throws {
        dropComputed(booking.shopId, tx)
        try tx.db.run(
            """
            INSERT INTO \(bookings, writableBy: tx.scope)
                (tenant, ends_at, \(bookingColumns))
            VALUES (\(tx.tenant), \(booking.endsAt), \(booking.values))
            """)
    }

    static func update(_ booking: Booking, _ tx: Transaction) throws {
        dropComputed(booking.shopId, tx)
        try change(
            """
            UPDATE \(bookings, writableBy: tx.scope) SET barber_id = \(booking.barberId),
                scheduled_start = \(booking.scheduledStart), ends_at = \(booking.endsAt),
                duration_minutes = \(booking.durationMinutes), status = \(booking.status.rawValue),
                version = \(booking.version), arrived_at = \(booking.arrivedAt), started_at = \(booking.startedAt),
                completed_at = \(booking.completedAt), updated_at = \(booking.updatedAt)
            WHERE id = \(booking.id)
            """, tx)
    }

    // MARK: Overlaps

    /// Refuses a booking that overlaps another one of its barber. It is checked at creation, at confirmation and
    /// whenever time or barber change, in the write transaction, under the lock of the shop.
    ///
    /// Requests that wait for confirmation reserve their time too. Otherwise a hundred customers could request nine
    /// o'clock, and ninety-nine would be refused later.
    ///
    /// - Throws: 409 `booking.overlap`.
    static func checkOverlap(of booking: Booking, _ tx: Transaction) throws {
        guard booking.isReserving else { return }
        guard try !tx.db.exists(overlap(of: booking, tenant: tx.tenant)) else {
            throw Failure(
                .conflict, "booking.overlap", "The barber already has a booking at that time.",
                fields: [Failure.Field("/scheduledStart", "overlaps another booking of the barber")])
        }
    }

    static func overlap(of booking: Booking, tenant: ID<Tenant>) -> SQL {
        // No booking is longer than eight hours. Bookings that began earlier have ended, and that part of the index
        // need not be read.
        let earliest = booking.scheduledStart.adding(minutes: -Int64(BookingLimits.durationMinutes.upperBound))
        return """
            SELECT 1 FROM \(bookings, within: tenant, .reaction("an overlap counts even if the caller may not read the other booking"))
            WHERE shop_id = \(booking.shopId) AND barber_id = \(booking.barberId)
                AND status IN ('pending', 'confirmed', 'in-progress') AND source = 'online'
                AND scheduled_start > \(earliest) AND scheduled_start < \(booking.endsAt)
                AND ends_at > \(booking.scheduledStart) AND id <> \(booking.id)
            LIMIT 1
            """
    }

    /// Finds every pair of bookings that reserve one barber's time at once. A sound database has no such pair.
    static let overlapAudit = Audit(name: "bookings") { db in
        // The same bound as for one booking. Without it, each booking would be compared with all pending ones of its
        // barber.
        let longest = BookingLimits.durationMinutes.upperBound * 60_000_000
        let all: SQL = "\(bookings, unscoped: .audit("the check reads the bookings of all tenants"))"
        return try db.rows(
            """
            SELECT a.tenant, a.shop_id, a.barber_id, a.id, b.id
            FROM \(all) AS a JOIN \(all) AS b
                ON b.tenant = a.tenant AND b.shop_id = a.shop_id AND b.barber_id = a.barber_id AND b.id > a.id
                AND b.scheduled_start < a.ends_at AND b.ends_at > a.scheduled_start
                AND b.scheduled_start > a.scheduled_start - \(longest)
            WHERE a.status IN ('pending', 'confirmed', 'in-progress') AND a.source = 'online'
                AND b.status IN ('pending', 'confirmed', 'in-progress') AND b.source = 'online'
            LIMIT 100
            """
        ) { row in
            "\(try row.text(0))/\(try row.text(1)): \(try row.text(2)) has \(try row.text(3)) and \(try row.text(4)) at once"
        }
    }

    static func hasActiveBookings(_ barberId: ID<Barber>, of shopId: ID<Shop>, _ tx: Transaction) throws -> Bool {
        try tx.db.exists(
            """
            SELECT 1 FROM \(bookings, within: tx.tenant, .reaction("only the existence of bookings is returned"))
            WHERE shop_id = \(shopId) AND barber_id = \(barberId)
                AND status IN ('pending', 'confirmed', 'in-progress') LIMIT 1
            """)
    }

    // MARK: Lists

    /// Returns the cursor of a page: the start and the id of its last booking.
    static func position(of booking: Booking) -> String { "\(booking.scheduledStart.microseconds) \(booking.id)" }

    private static func afterCondition(_ position: String) -> SQL? {
        let parts = position.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let start = Int64(parts[0]) else { return nil }
        return "(scheduled_start, id) < (\(start), \(parts[1]))"
    }

    /// Lists bookings, latest start first.
    static func listBookings(
        _ conditions: [SQL?], in day: Range<Timestamp>?, after: String?, limit: Int, _ tx: Transaction
    ) throws -> [Booking] {
        let place: [SQL?] = [
            day.map { "scheduled_start >= \($0.lowerBound) AND scheduled_start < \($0.upperBound)" },
            after.flatMap(afterCondition),
        ]
        return try tx.db.rows(
            """
            SELECT \(bookingColumns) FROM \(bookings, visibleTo: tx.scope)
            WHERE \(SQL.all(conditions + place)) ORDER BY scheduled_start DESC, id DESC LIMIT \(limit)
            """, Booking.init(row:))
    }

    // MARK: History

    static func appendHistory(_ booking: Booking, previous: Booking?, _ tx: Transaction) throws {
        var entry = HistoryEntry()
        entry.version = booking.version
        entry.at = tx.now
        entry.actorId = tx.caller.userId
        entry.actorRole = tx.caller.role
        entry.from = previous?.status
        entry.to = booking.status
        entry.scheduledStart = booking.scheduledStart
        entry.durationMinutes = booking.durationMinutes
        entry.barberId = booking.barberId
        try tx.db.run(
            """
            INSERT INTO \(history, within: tx.tenant, .bookkeeping("the history records every change of a booking"))
                (tenant, booking_id, user_id, shop_id, \(historyColumns))
            VALUES (\(tx.tenant), \(booking.id), \(booking.userId), \(booking.shopId), \(entry.values))
            """)
    }

    /// One line of a booking's history.
    struct HistoryEntry: Record, JSONObjectWritable {
        var version = 0
        var at = Timestamp(microseconds: 0)
        var actorId: ID<User> = ""
        var actorRole = ""
        var from: BookingStatus?
        var to = BookingStatus.pending
        var scheduledStart = Timestamp(microseconds: 0)
        var durationMinutes = 0
        var barberId: ID<Barber>?

        mutating func visit(_ members: inout some MemberVisitor) {
            members.member("version", &version)
            members.member("at", &at)
            members.member("actorId", &actorId)
            members.member("actorRole", &actorRole)
            members.member("from", in: "previous_status", &from)
            members.member("to", in: "status", &to)
            members.member("scheduledStart", &scheduledStart)
            members.member("durationMinutes", &durationMinutes)
            members.member("barberId", &barberId)
        }
    }

    private static let historyColumns = HistoryEntry.columns()

    /// Lists the history, oldest first.
    static func listHistory(
        of id: ID<Booking>, after version: Int, limit: Int, _ tx: Transaction
    ) throws -> [HistoryEntry] {
        try tx.db.rows(
            """
            SELECT \(historyColumns) FROM \(history, visibleTo: tx.scope)
            WHERE booking_id = \(id) AND version > \(version) ORDER BY version LIMIT \(limit)
            """, HistoryEntry.init(row:))
    }
}
