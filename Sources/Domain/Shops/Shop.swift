import Values

/// A barber shop.
public struct Shop: Sendable, Hashable {
    public let id: ID<Shop>
    public let name: String
    /// The IANA name of the shop's time zone, which decides which bookings are today's.
    public let timeZone: String
    public let createdAt: Timestamp
    public let updatedAt: Timestamp

    public init(id: ID<Shop>, name: String, timeZone: String, createdAt: Timestamp, updatedAt: Timestamp) {
        self.id = id
        self.name = name
        self.timeZone = timeZone
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    public static let nameBytesMax = 200
}

extension Shop: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("name", name)
        writer.member("timeZone", timeZone)
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
    }
}

/// A barber of a shop.
public struct Barber: Sendable, Hashable {
    public let id: ID<Barber>
    public let shopId: ID<Shop>
    public let name: String?
    public let isOnDuty: Bool
    /// On duty, but temporarily taking no customers.
    public let isOnBreak: Bool
    public let updatedAt: Timestamp

    public init(
        id: ID<Barber>, shopId: ID<Shop>, name: String?, isOnDuty: Bool, isOnBreak: Bool, updatedAt: Timestamp
    ) {
        self.id = id
        self.shopId = shopId
        self.name = name
        self.isOnDuty = isOnDuty
        self.isOnBreak = isOnBreak
        self.updatedAt = updatedAt
    }

    public static let nameBytesMax = 100
}

extension Barber: JSONObjectWritable {
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("shopId", shopId)
        writer.member("name", name)
        writer.member("onDuty", isOnDuty)
        writer.member("onBreak", isOnBreak)
        writer.member("updatedAt", updatedAt)
    }
}
