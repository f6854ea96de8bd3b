import Database
import Domain
import MicroHTTP
import Values

extension ShopsFeature {
    static let shopEndpoints = [
        Endpoint(.get, "/v1/shops", access: .bearer, query: ["limit", "cursor"], list),
        Endpoint(.get, "/v1/shops/{id}", access: .bearer, show),
        Endpoint(.put, "/v1/shops/{id}", access: .staffOrService, adds: true, replace),
        Endpoint(.get, "/v1/shops/{id}/barbers", access: .bearer, showBarbers),
        Endpoint(.put, "/v1/shops/{id}/barbers/{barberId}", access: .staffOrService, adds: true, replaceBarber),
        Endpoint(.delete, "/v1/shops/{id}/barbers/{barberId}", access: .staffOrService, removeBarber),
    ]

    /// The maximum size of a page.
    static let pageMax = 100

    private static func list(_ call: Call) throws -> Answer {
        let page = try call.page(limitMax: pageMax)
        return .read { tx in page.response(try listShops(after: page.after, limit: page.rowsMax, tx), by: \.id.text) }
    }

    private static func show(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .query(query(id, visibleTo: call.caller.scope)) { rows in
            Response.json(200, try rows.row(Shop.init(row:)).required("shop"))
        }
    }

    /// `PUT /v1/shops/{id}`: 201 for a new shop, 200 for a change.
    private static func replace(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let (name, zone) = try call.body { fields in
            let name = fields.string("name", bytesMax: Shop.nameBytesMax)
            let zone = fields.string("timeZone", bytesMax: 64)
            if !zone.isEmpty, !TimeZones.isKnown(zone) {
                fields.reject("timeZone", "must be the IANA name of a time zone, such as Europe/Berlin")
            }
            return (name, zone)
        }
        return .write(locking: .shop(id)) { tx in
            let known = try findShop(id, tx)
            let shop = Shop(
                id: id, name: name, timeZone: zone, createdAt: known?.createdAt ?? tx.now, updatedAt: tx.now)
            try store(shop, tx)
            tx.record(.shopChanged(id))
            tx.record(.shopQueueTouched(id))
            return Response.json(known == nil ? 201 : 200, shop)
        }
    }

    // MARK: Barbers

    private static func showBarbers(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in
            try requireShop(id, tx)
            return Response.list(try listBarbers(of: id, tx))
        }
    }

    /// `PUT /v1/shops/{id}/barbers/{barberId}`: sets whether a barber is on duty and on a break. Flags that are left
    /// out become false; the name stays.
    private static func replaceBarber(_ call: Call) throws -> Answer {
        let shopId = try call.pathID(0, Shop.self)
        let id = try call.pathID(1, Barber.self)
        let (isOnDuty, isOnBreak, name) = try call.body { fields in
            (
                fields.bool("onDuty"), fields.optionalBool("onBreak") ?? false,
                fields.optionalString("name", bytesMax: Barber.nameBytesMax)
            )
        }
        return .write(locking: .shop(shopId)) { tx in
            let known = try findBarber(id, of: shopId, tx)
            if known == nil, try listBarbers(of: shopId, tx).count >= barbersMax {
                throw Failure(.conflict, "shop.full", "A shop can have at most \(barbersMax) barbers.")
            }
            let barber = Barber(
                id: id, shopId: shopId, name: name ?? known?.name, isOnDuty: isOnDuty, isOnBreak: isOnBreak,
                updatedAt: tx.now)
            try store(barber, tx)
            tx.record(.shopQueueTouched(shopId))
            return Response.json(known == nil ? 201 : 200, barber)
        }
    }

    /// `DELETE /v1/shops/{id}/barbers/{barberId}`: for a barber without bookings.
    private static func removeBarber(_ call: Call) throws -> Answer {
        let shopId = try call.pathID(0, Shop.self)
        let id = try call.pathID(1, Barber.self)
        return .write(locking: .shop(shopId)) { tx in
            guard try findBarber(id, of: shopId, tx) != nil else { throw Failure.notFound("barber") }
            guard try !hasActiveBookings(id, of: shopId, tx) else {
                throw Failure(.conflict, "barber.booked", "The barber still has bookings. Move or cancel them first.")
            }
            try removeBarber(id, of: shopId, tx)
            tx.record(.shopQueueTouched(shopId))
            return .noContent
        }
    }
}
