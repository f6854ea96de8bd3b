import Values

/// A shop was made or changed, in this transaction.
public struct ShopChanged: Fact {
    public let shopId: ID<Shop>

    public init(shopId: ID<Shop>) {
        self.shopId = shopId
    }
}
