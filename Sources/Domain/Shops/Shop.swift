import Values

public struct Shop: Sendable, Hashable {
    public var id: ID<Shop> = ""
    public var name = ""
    /// The IANA name of the shop's time zone, which decides which bookings are today's.
    public var timeZone = ""
    public var createdAt = Timestamp(microseconds: 0)
    public var updatedAt = Timestamp(microseconds: 0)

    public init() {}

    public init(id: ID<Shop>, name: String, timeZone: String, createdAt: Timestamp, updatedAt: Timestamp) {
        self.id = id
        self.name = name
        self.timeZone = timeZone
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    public static let nameBytesMax = 200
}

extension Shop: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", in: "shop_id", &id)
        members.member("name", &name)
        members.member("timeZone", &timeZone)
        members.member("createdAt", &createdAt)
        members.member("updatedAt", &updatedAt)
    }
}

public struct Barber: Sendable, Hashable {
    public var id: ID<Barber> = ""
    public var shopId: ID<Shop> = ""
    public var name: String?
    public var isOnDuty = false
    /// On duty, but temporarily taking no customers.
    public var isOnBreak = false
    public var updatedAt = Timestamp(microseconds: 0)

    public init() {}

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

extension Barber: Record, JSONObjectWritable {
    @inlinable
    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", in: "barber_id", &id)
        members.member("shopId", &shopId)
        members.member("name", &name)
        members.member("onDuty", &isOnDuty)
        members.member("onBreak", &isOnBreak)
        members.member("updatedAt", &updatedAt)
    }
}
