import Domain
import Foundation
import MicroHTTP

extension ShopsFeature {
    static let shopEndpoints = [
        Endpoint(.get, "/v1/shops", access: .bearer, list),
        Endpoint(.get, "/v1/shops/{id}", access: .bearer, show),
        Endpoint(.put, "/v1/shops/{id}", access: .staffOrService, replace),
        Endpoint(.get, "/v1/shops/{id}/barbers", access: .bearer, showBarbers),
        Endpoint(.put, "/v1/shops/{id}/barbers/{barberId}", access: .staffOrService, replaceBarber),
        Endpoint(.delete, "/v1/shops/{id}/barbers/{barberId}", access: .staffOrService, removeBarber),
    ]

    /// The most that a page may have.
    static let pageMax = 100

    private static func list(_ call: Call) throws -> Answer {
        let page = try call.query(["limit", "cursor"]).page(limitMax: pageMax)
        return .read { tx in
            let found = try listShops(after: page.after, limit: page.limit + 1, tx)
            let items = found.prefix(page.limit)
            return Response.page(items, next: found.count > page.limit ? items.last?.id.text : nil, call)
        }
    }

    private static func show(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, Shop.self)
        return .read { tx in Response.json(200, JSONWriter.bytes(try requireShop(id, tx))) }
    }

    /// `PUT /v1/shops/{id}`: 201 for a new shop, 200 for a change.
    private static func replace(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, Shop.self)
        var fields = try call.fields()
        let name = fields.string("name", bytesMax: Shop.nameBytesMax)
        let zone = fields.string("timeZone", bytesMax: 64)
        if !zone.isEmpty, !TimeZones.isKnown(zone) {
            fields.reject("timeZone", "must be the name of a time zone, such as Europe/Berlin")
        }
        try fields.finish()
        return .write { tx in
            let known = try findShop(id, tx)
            let shop = Shop(
                id: id, name: name, timeZone: zone, createdAt: known?.createdAt ?? tx.now, updatedAt: tx.now)
            try store(shop, tx)
            tx.record(ShopQueueTouched(shopId: id))
            return Response.json(known == nil ? 201 : 200, JSONWriter.bytes(shop))
        }
    }

    // MARK: Barbers

    private static func showBarbers(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let id = try call.pathID(0, Shop.self)
        return .read { tx in
            _ = try requireShop(id, tx)
            return Response.page(try listBarbers(of: id, tx), next: nil, call)
        }
    }

    /// `PUT /v1/shops/{id}/barbers/{barberId}`: on duty, on a break. What is left out is false; a name stays.
    private static func replaceBarber(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let shopId = try call.pathID(0, Shop.self)
        let id = try call.pathID(1, Barber.self)
        var fields = try call.fields()
        let isOnDuty = fields.bool("onDuty")
        let isOnBreak = fields.optionalBool("onBreak") ?? false
        let name = fields.optionalString("name", bytesMax: Barber.nameBytesMax)
        try fields.finish()
        return .write { tx in
            _ = try requireShop(shopId, tx)
            let known = try findBarber(id, of: shopId, tx)
            if known == nil, try listBarbers(of: shopId, tx).count >= barbersMax {
                throw Failure(.conflict, "shop.full", "A shop has at most \(barbersMax) barbers.")
            }
            let barber = Barber(
                id: id, shopId: shopId, name: name ?? known?.name, isOnDuty: isOnDuty, isOnBreak: isOnBreak,
                updatedAt: tx.now)
            try store(barber, tx)
            tx.record(ShopQueueTouched(shopId: shopId))
            return Response.json(known == nil ? 201 : 200, JSONWriter.bytes(barber))
        }
    }

    /// `DELETE /v1/shops/{id}/barbers/{barberId}`: for one who has no bookings any more.
    private static func removeBarber(_ call: Call) throws -> Answer {
        _ = try call.query([])
        let shopId = try call.pathID(0, Shop.self)
        let id = try call.pathID(1, Barber.self)
        return .write { tx in
            _ = try requireShop(shopId, tx)
            guard try findBarber(id, of: shopId, tx) != nil else { throw Failure.notFound("barber") }
            guard try !hasActiveBookings(id, of: shopId, tx) else {
                throw Failure(
                    .conflict, "barber.booked", "The barber has bookings: move or cancel them first.")
            }
            try removeBarber(id, of: shopId, tx)
            tx.record(ShopQueueTouched(shopId: shopId))
            return .noContent
        }
    }
}

/// Time zones by their IANA names. Abbreviations are refused: `EST` names an offset without its summer time.
enum TimeZones {
    static func isKnown(_ name: String) -> Bool {
        name == "UTC" || (name.contains("/") && TimeZone(identifier: name) != nil)
    }

    /// The day that a moment falls on in a zone: from its midnight to the next.
    static func day(of now: Timestamp, in zone: String) -> Range<Timestamp> {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone) ?? .gmt
        let moment = Date(timeIntervalSince1970: Double(now.seconds))
        let start = calendar.startOfDay(for: moment)
        // Days have 23 to 25 hours: the calendar knows.
        let next = calendar.date(byAdding: .day, value: 1, to: start) ?? start.addingTimeInterval(86_400)
        // Where clocks go forward at midnight a day begins at one o'clock, and the next one does not.
        return timestamp(start)..<timestamp(calendar.startOfDay(for: next))
    }

    /// The day that a text such as `2026-01-10` names in a zone; nil if it names none.
    static func day(named text: String, in zone: String) -> Range<Timestamp>? {
        guard text.utf8.count == 10, Timestamp(rfc3339: text + "T12:00:00Z") != nil else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone) ?? .gmt
        let parts = text.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 3,
            let date = calendar.date(from: DateComponents(year: parts[0], month: parts[1], day: parts[2], hour: 12))
        else { return nil }
        return day(of: timestamp(date), in: zone)
    }

    private static func timestamp(_ date: Date) -> Timestamp {
        Timestamp(microseconds: Int64(date.timeIntervalSince1970.rounded()) * 1_000_000)
    }
}
